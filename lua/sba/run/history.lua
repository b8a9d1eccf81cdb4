-- SPDX-License-Identifier: Apache-2.0
-- Reads a journal: what an earlier run did, for --resume, and what a model and the gateway said, for --replay. journal.lua writes it.

local file = require "native.file"
local is_array = require "sba.util.json".is_array
local lines = require "sba.util.lines"
local read_json = require "sba.util.json".decode
local schema = require "sba.util.schema"
local secret = require "sba.util.secret"

local past = {}

local LIMIT <const> = 1 << 40 -- bytes; what one run could write, another must be able to read
local DEPTH <const> = 90 -- of JSON; a job's own depth and what a result adds
local ENTRY_PREFIX <const> = '{"event":"step.finished","entry":'

---@class journal.history what an earlier run did
---@field started_wall integer
---@field entries table<integer, { text: string, entry: table }> of finished steps, by index from 1
---@field begun table<integer, boolean> steps that had begun and not ended
---@field changes? { index: integer, plan: native.plan, committed?: boolean } of the last step; committed: it has ended well
---@field undone? string what came of undoing them, for the model
---@field left? { index: integer, message: string } what could not be undone, for the step that is run again
---@field result? table the result's fields without steps; the job was over
---@field exchanges { messages?: table[], reply: table }[] with the model, in order
---@field session? { model: string, context_length: integer, tools: agent.tool[], instructions?: string } tools: the gateway's
---@field skills? { found: table[], missing: string[] } of the orchestrator
---@field reported? boolean it was told the result

local readers = {}

function readers.job(history, line, _, expected)
  if history.started_wall then return "a second job begins" end
  if line.job_sha256 ~= expected.job_sha256 then return "it is of another job" end
  if math.type(line.started_wall) ~= "integer" then return "started_wall is missing" end
  history.started_wall = line.started_wall
end

readers["job.resumed"] = function() end

--- The step of a line, where it is the next one. In an agent's job the model says which steps there are.
local function next_step(history, about, expected)
  local index = math.type(about.index) == "integer" and about.index + 1 or 0
  if index ~= #history.entries + 1 then return nil, "the step is not the next one" end
  if not expected.steps then return index end
  local step = expected.steps[index]
  if not step or step.id ~= about.id or step.type ~= about.type then return nil, "the job has no such step" end
  return index
end

readers["step.started"] = function(history, line, _, expected)
  local index, reason = next_step(history, line, expected)
  if not index then return reason end
  history.begun[index], history.changes = true, nil
end

readers["step.changes"] = function(history, line)
  local _, errors = schema.check(line, require "sba.patch.changes".schema, { total = 0, limit = 1 })
  if errors[1] then return schema.line(errors[1]) end
  local index = #history.entries + 1
  if line.index ~= index - 1 or not history.begun[index] then return "the step had not begun" end
  history.changes = { index = index, plan = line }
end

readers["step.finished"] = function(history, line, text, expected)
  local entry = line.entry
  if type(entry) ~= "table" or text:sub(1, #ENTRY_PREFIX) ~= ENTRY_PREFIX then return "its entry is missing" end
  local index, reason = next_step(history, entry, expected)
  if not index then return reason end
  if not history.begun[index] and entry.status ~= "skipped" then return "the step had not begun" end
  history.begun[index] = nil
  if history.changes and entry.status == "success" then history.changes.committed = true else history.changes = nil end
  history.entries[index] = { text = text:sub(#ENTRY_PREFIX + 1, -2), entry = entry }
end

local function is_tool(tool)
  if type(tool) ~= "table" then return false end
  for _, field in ipairs { "name", "tool", "description", "parameters" } do
    if type(tool[field]) ~= "string" then return false end
  end
  return tool.kind == "gateway"
end

readers["model.session"] = function(history, line)
  if type(line.model) ~= "string" or math.type(line.context_length) ~= "integer" then return "the model is missing" end
  local tools = line.tools or {}
  if type(tools) ~= "table" then return "its tools cannot be read" end
  for _, tool in ipairs(tools) do
    if not is_tool(tool) then return "its tools cannot be read" end
  end
  if line.instructions ~= nil and type(line.instructions) ~= "string" then return "its instructions cannot be read" end
  history.session = {
    model = line.model, context_length = line.context_length, tools = tools, instructions = line.instructions,
  }
end

local words <const>, count <const> = { type = "string" }, { type = "integer", minimum = 0 }

-- What of an exchange is relied on: people write and edit recordings.
local exchange_schema = {
  type = "object", required = { "reply" },
  properties = {
    messages = {
      type = "array", items = { type = "object", required = { "role" }, properties = { role = words, content = words } },
    },
    reply = {
      type = "object",
      properties = {
        content = words, thinking = words, unreadable = words, done_reason = words,
        prompt_tokens = count, completion_tokens = count, duration_ms = count,
        tool_calls = {
          type = "array",
          items = {
            type = "object", required = { "name", "arguments" },
            properties = { id = words, name = words, arguments = { type = "object" }, mistake = words },
          },
        },
      },
    },
  },
}

readers["model.exchange"] = function(history, line)
  local _, errors = schema.check(line, exchange_schema, { total = 0, limit = 1 })
  if errors[1] then return schema.line(errors[1]) end
  secret.clean(line, exchange_schema)
  table.insert(history.exchanges, { messages = line.messages, reply = line.reply })
end

function readers.skills(history, line)
  if not is_array(line.found) or not is_array(line.missing) then return "the skills are missing" end
  history.skills = { found = line.found, missing = line.missing }
end

readers["job.reported"] = function(history)
  if not history.result then return "the job was not over" end
  history.reported = true
end

readers["job.finished"] = function(history, line, _, expected)
  if type(line.result) ~= "table" then return "its result is missing" end
  if expected.steps and #history.entries ~= #expected.steps then return "steps are missing" end
  history.result = line.result
end

--- Reads one line into the history; returns why it cannot.
local function read_line(history, text, expected)
  local line, failure = read_json(text, { size = #text, depth = DEPTH })
  if failure then return failure.message end
  local reader = type(line) == "table" and (readers[line.event] or line.event == "journal.failed")
  if not reader then return "it is no event of a journal" end
  if line.event == "journal.failed" then return not history.result and "what was done then could not be written" or nil end
  if not history.started_wall and line.event ~= "job" then return "the journal does not begin with its job" end
  if history.result and line.event ~= "job.reported" then return "the job was over" end
  return reader(history, line, text, expected)
end

--- Reads what an earlier run left. A torn last line does not count.
---@param path string
---@param expected { job_sha256: string, steps?: table[] } steps: of a direct job
---@return journal.history? history, native.failure? failure nil without failure: there is nothing to go on from
function past.read(path, expected)
  local bytes, failure = file.read(path, LIMIT)
  if not bytes then return nil, failure.code ~= "not_found" and failure or nil end
  local history, number = { entries = {}, begun = {}, exchanges = {} }, 0
  for _, text, is_whole in lines(bytes) do
    if not is_whole then break end
    number = number + 1
    local reason = read_line(history, text, expected)
    if reason then
      local message = ("the journal %s does not fit, line %d: %s; without --resume the job begins anew"):format(path, number, reason)
      return nil, { code = "invalid_journal", message = message }
    end
  end
  return number > 0 and history or nil
end

--- Keeps what a call to the gateway came to: a replay calls nothing there.
local function keep_call(recording, line)
  local entry = line.entry
  if type(entry) ~= "table" or math.type(entry.index) ~= "integer" then return "its entry is missing" end
  if entry.type == "call_tool" then recording.entries[entry.index + 1] = entry end
end

local recorded_readers = {
  ["model.session"] = readers["model.session"], ["model.exchange"] = readers["model.exchange"], ["step.finished"] = keep_call,
  skills = readers.skills,
}

local function read_recorded(recording, text, job_sha256)
  local line, failure = read_json(text, { size = #text, depth = DEPTH })
  if type(line) ~= "table" then return failure and failure.message or "it is no event of a journal" end
  if line.event == "job" and line.job_sha256 ~= job_sha256 then return "it is of another job" end
  local reader = recorded_readers[line.event]
  return reader and reader(recording, line) or nil
end

--- Reads the conversation of a journal, or a script of one: lines of model.exchange, each with a reply at least.
---@param path string
---@param job_sha256 string
---@return { exchanges: table[], entries: table<integer, table>, session?: table, skills?: table }? recording
---entries: of calls to the gateway
---@return native.failure? failure
function past.recording(path, job_sha256)
  local bytes, failure = file.read(path, LIMIT)
  if not bytes then return nil, failure end
  local recording, number = { exchanges = {}, entries = {} }, 0
  for text in bytes:gmatch("[^\n]+") do
    number = number + 1
    local reason = read_recorded(recording, text, job_sha256)
    if reason then
      return nil, { code = "invalid_journal", message = ("the recording %s, line %d: %s"):format(path, number, reason) }
    end
  end
  return recording
end

return past
