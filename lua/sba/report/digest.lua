-- SPDX-License-Identifier: Apache-2.0
-- Reads from a journal what a report shows: the job's ids, and the model's turns with the steps that each one started.
-- A damaged journal is used up to the damage.

local json = require "sba.util.json"
local lines = require "sba.util.lines"
local secret = require "sba.util.secret"

local digest = {}

local STEP_FINISHED <const> = '{"event":"step.finished",' -- the result holds these entries; they are not read again

---@class report.turn
---@field at? string time of the reply, RFC 3339
---@field content string
---@field thinking string
---@field calls { name: string, arguments: table, id?: string, step?: integer }[] step: index from 1 of what it became
---@field prompt_tokens? integer
---@field completion_tokens? integer
---@field duration_ms? integer

---@class report.digest
---@field job_id? string
---@field task_id? string
---@field job_sha256? string
---@field model? string
---@field turns report.turn[]
---@field calls table<integer, { type: string, arguments: table }> by index of the step, from 1
---@field checks table<integer, boolean> which steps are checks of the runner, by index from 1
---@field begun? { id: string, type: string, started_at?: string } the step that began last and has not ended
---@field last? string when the last event was that says so
---@field problem? string why the rest of the journal is missing

local function words(value) return type(value) == "string" and secret.redact(value) or "" end

local function list(value) return type(value) == "table" and value or {} end

local function read_calls(value)
  local calls = {}
  for _, call in ipairs(list(value)) do
    if type(call) == "table" and type(call.name) == "string" then
      calls[#calls + 1] = { name = call.name, arguments = secret.clean(list(call.arguments), {}), id = call.id }
    end
  end
  return calls
end

--- Records that a call became a step: what the model wrote may be in other words than what was run.
local function became(self, call, index)
  call.step = index
  if self.types[index] ~= "call_tool" then call.arguments = self.arguments[index] or call.arguments end
  self.calls[index] = { type = self.types[index] or call.name, arguments = call.arguments }
end

--- The answers in a request tell which step each call of the previous turn became.
local function link_answers(self, messages)
  local turn, by_id = self.turns[#self.turns], {}
  for _, call in ipairs(turn and turn.calls or {}) do by_id[call.id or 0] = call end
  for _, message in ipairs(list(messages)) do
    local step = type(message) == "table" and message.step
    local call, index = step and by_id[message.tool_call_id or 0], self.index_of[step or 0]
    if call and index then became(self, call, index) end
  end
end

--- The model never got answers to the last turn's calls. They are matched with its steps in order, while the names agree.
local function link_last(self)
  local turn = self.turns[#self.turns]
  local index = turn and turn.first_step
  for _, call in ipairs(turn and turn.calls or {}) do
    while self.checks[index] do index = index + 1 end
    if not call.step and self.types[index] and (self.types[index] == call.name or self.types[index] == "call_tool") then
      became(self, call, index)
      index = index + 1
    end
  end
end

local readers = {}

function readers.job(self, line)
  self.job_id, self.task_id, self.job_sha256 = line.job_id, line.task_id, line.job_sha256
end

readers["model.session"] = function(self, line) self.model = words(line.model) end

readers["step.started"] = function(self, line)
  if math.type(line.index) ~= "integer" or type(line.id) ~= "string" then return end
  self.begun = { id = line.id, type = words(line.type), started_at = type(line.at) == "string" and line.at or nil }
  self.types[line.index + 1], self.index_of[line.id] = line.type, line.index + 1
  self.checks[line.index + 1] = line.check ~= nil
  if type(line.arguments) == "table" then self.arguments[line.index + 1] = secret.clean(line.arguments, {}) end
  if line.check then self.calls[line.index + 1] = { type = line.type, arguments = self.arguments[line.index + 1] or {} } end
end

readers["model.exchange"] = function(self, line)
  local reply = list(line.reply)
  link_answers(self, line.messages)
  self.turns[#self.turns + 1] = {
    at = line.at, content = words(reply.content), thinking = words(reply.thinking), calls = read_calls(reply.tool_calls),
    prompt_tokens = math.tointeger(reply.prompt_tokens), completion_tokens = math.tointeger(reply.completion_tokens),
    duration_ms = math.tointeger(reply.duration_ms), first_step = #self.types + 1,
  }
end

local function read_line(self, text)
  if text:sub(1, #STEP_FINISHED) == STEP_FINISHED then
    self.begun = nil
    return
  end
  local line, failure = json.decode_own(text)
  if type(line) ~= "table" then return failure and failure.message or "it is not an event" end
  if type(line.at) == "string" then self.last = line.at end
  local reader = readers[line.event]
  if reader then reader(self, line) end
end

---@param bytes string
---@return report.digest
function digest.read(bytes)
  local self = { turns = {}, calls = {}, types = {}, checks = {}, arguments = {}, index_of = {} }
  local number = 0
  for _, text, is_whole in lines(bytes) do
    if not is_whole then
      self.problem = "its last line is incomplete, which happens when the runner is killed"
      break
    end
    number = number + 1
    local reason = read_line(self, text)
    if reason then
      self.problem = ("line %d: %s; the lines after it are ignored"):format(number, reason)
      break
    end
  end
  link_last(self)
  return self
end

return digest
