-- SPDX-License-Identifier: Apache-2.0
-- Reads from a journal what a report shows: the job's ids, and the model's turns with the steps that each one started.
-- A damaged journal is used up to the damage.

local lines = require "sba.util.lines"
local past = require "sba.run.past"
local secret = require "sba.util.secret"

local digest = {}

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

local function read_calls(list)
  local calls = {}
  for i, call in ipairs(list or {}) do
    calls[i] = { name = call.name, arguments = secret.clean(call.arguments, {}), id = call.id }
  end
  return calls
end

--- Records that a call became a step: what the model wrote may be in other words than what was run.
local function became(self, call, index)
  local step = self.started[index]
  call.step = index
  if step.type ~= "call_tool" then call.arguments = step.arguments or call.arguments end
  self.calls[index] = { type = step.type, arguments = call.arguments }
end

--- The answers in a request tell which step each call of the previous turn became.
local function link_answers(self, turn, messages)
  local by_id = {}
  for _, call in ipairs(turn and turn.calls or {}) do by_id[call.id or 0] = call end
  for _, message in ipairs(messages or {}) do
    local call, index = by_id[message.tool_call_id or 0], self.index_of[message.step or 0]
    if call and index then became(self, call, index) end
  end
end

--- The model never got answers to the last turn's calls. They are matched in order with the steps that no turn has, while the names agree.
local function link_last(self, turn)
  local index = 1
  for _, call in ipairs(turn and turn.calls or {}) do
    while self.calls[index] do index = index + 1 end
    local step = self.started[index]
    if not call.step and step and (step.type == call.name or step.type == "call_tool") then became(self, call, index) end
  end
end

local function read_turns(self, exchanges)
  local turns = self.turns
  for number, exchange in ipairs(exchanges) do
    local reply = exchange.reply
    link_answers(self, turns[number - 1], exchange.messages)
    turns[number] = {
      at = exchange.at, content = reply.content or "", thinking = reply.thinking or "", calls = read_calls(reply.tool_calls),
      prompt_tokens = reply.prompt_tokens, completion_tokens = reply.completion_tokens, duration_ms = reply.duration_ms,
    }
  end
  link_last(self, turns[#turns])
end

--- The step that began last and has not ended.
local function running(found)
  local index, step = next(found.begun)
  return index and { id = step.id, type = secret.redact(step.type), started_at = step.at } or nil
end

---@param bytes string
---@return report.digest
function digest.read(bytes)
  local found = past.new()
  found.started = {}
  local problem, is_torn = found:fold({ brief = true }, lines(bytes))
  local job, self = found.job or {}, {
    turns = {}, calls = {}, checks = {}, index_of = {}, started = found.started, last = found.last, begun = running(found),
    model = found.session and secret.redact(found.session.model), problem = problem,
  }
  if problem and not is_torn then self.problem = problem .. "; the lines after it are ignored" end
  self.job_id, self.task_id, self.job_sha256 = job.job_id, job.task_id, job.job_sha256
  for index, step in pairs(found.started) do
    step.type, step.arguments = secret.redact(step.type), secret.clean(step.arguments, {})
    self.index_of[step.id], self.checks[index] = index, step.check ~= nil
    if step.check then self.calls[index] = { type = step.type, arguments = step.arguments or {} } end
  end
  read_turns(self, found.exchanges)
  return self
end

return digest
