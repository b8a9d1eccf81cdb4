-- SPDX-License-Identifier: Apache-2.0
-- Reads a journal: what an earlier run did, for --resume, and what a model and the gateway said, for --replay. journal.lua writes it.

local changes = require "sba.run.undo"
local file = require "native.file"
local lines = require "sba.util.lines"
local json = require "sba.util.json"
local result_schema = require "sba.result.result_schema"
local schema_check = require "sba.util.schema_check"
local secret = require "sba.util.secret"

local past = {}

local LIMIT <const> = 1 << 40 -- bytes; what one run could write, another must be able to read
local LONGEST_HEAD <const> = 4096 -- bytes of a line, within which index, check and status stand
local ENTRY_PREFIX <const> = '{"event":"step.finished","entry":'

---@class journal.history what an earlier run did
---@field started_wall integer
---@field entries table<integer, { text: string, entry: table }> of finished steps, by index from 1
---@field begun table<integer, string|true> steps that had begun and not ended: when
---@field interrupted? { id: string, type: string, output?: string } the last of them, with what it had said
---@field changes? { index: integer, plan: native.plan, committed?: boolean } of the last step; committed: it has ended well
---@field append? { index: integer, size?: integer } the step that last began to append to a file, and the file's size before
---@field planned? table<string, true> the temporary names in all plans, as the journal writes them
---@field undone? string what came of undoing them, for the model
---@field left? { index: integer, message: string } what could not be undone, for the step that is run again
---@field result? table the result's fields without steps; the job succeeded
---@field failed? integer the step that had failed and runs again
---@field resumes { after: integer, why: string }[] where a run ended and the next one went on: after how many exchanges, and why
---@field exchanges { messages?: table[], reply: table }[] with the model, in order
---@field asked table[] the results of all questions of steps, of those too that run again
---@field session? { model: string, context_length: integer, tools: agent.tool[], instructions?: string, facts?: string,
--- agents_md?: string } tools: the gateway's
---@field skills? { found: table[], missing: string[] } of the orchestrator
---@field reported? boolean it was told the result

local words <const>, count <const> = { type = "string" }, { type = "integer", minimum = 0 }
local LAST_TIME <const> = 253402300799999 -- milliseconds since 1970: the end of the year 9999

local function object(properties, required)
  return { type = "object", properties = properties, required = required }
end

-- The result without its steps, which have lines of their own.
local finished_fields = {}
for _, name in ipairs(result_schema.required) do
  if name ~= "steps" then finished_fields[#finished_fields + 1] = name end
end

-- What a line must hold to be relied on: people edit journals, and write recordings.
local schemas = {
  job = object({
    job_sha256 = words, started_wall = { type = "integer", minimum = 0, maximum = LAST_TIME },
  }, { "job_sha256", "started_wall" }),
  ["step.started"] = object({
    index = count, id = words, type = words, check = count, arguments = { type = "object" },
  }, { "index", "id", "type" }),
  ["step.changes"] = changes.schema,
  ["step.finished"] = object({ entry = result_schema.properties.steps.items }, { "entry" }),
  ["job.finished"] = object({ result = object(result_schema.properties, finished_fields) }, { "result" }),
  ["model.session"] = object({
    model = words, context_length = { type = "integer", minimum = 1 }, instructions = words, facts = words, agents_md = words,
    tools = { type = "array", items = object({
      kind = { enum = { "gateway" } }, name = words, tool = words, description = words, parameters = words,
    }, { "kind", "name", "tool", "description", "parameters" }) },
  }, { "model", "context_length" }),
  ["model.exchange"] = object({
    messages = { type = "array", items = object({ role = words, content = words }, { "role" }) },
    reply = object {
      content = words, thinking = words, said = words, unreadable = words, is_like_a_call = { type = "boolean" }, done_reason = words,
      prompt_tokens = count, completion_tokens = count, duration_ms = count, notes = { type = "array", items = words },
      tool_calls = { type = "array", items = object({
        id = words, name = words, arguments = { type = "object" }, mistake = words, size = count,
        written = words, called = words,
      }, { "name", "arguments" }) },
    },
  }, { "reply" }),
  ["model.compacted"] = object({ tokens_before = count, tokens_after = count }, { "tokens_before", "tokens_after" }),
  skills = object({
    found = { type = "array", items = object({ id = words, name = words, text = words }, { "id", "name", "text" }) },
    missing = { type = "array", items = words },
  }, { "found", "missing" }),
}

--- What is wrong with a value, in one line, or nil.
local function mistake_in(value, wanted)
  local errors = wanted and select(2, schema_check.check(value, wanted, { total = 0, limit = 1 })) or {}
  return errors[1] and schema_check.line(errors[1], "line")
end

local readers = {}

function readers.job(history, line, _, expected)
  if history.started_wall then return "a second job begins" end
  if expected.job_sha256 and line.job_sha256 ~= expected.job_sha256 then return "it belongs to another job" end
  history.started_wall = line.started_wall
end

--- A run had ended, or was killed, and the next one goes on.
readers["job.resumed"] = function(history)
  local result = history.result
  local why = result and type(result.failure_message) == "string" and ("%s: %s"):format(result.failure_code, result.failure_message)
  table.insert(history.resumes, { after = #history.exchanges, why = why or "the runner was killed" })
  history.result, history.reported, history.goes_back = nil, nil, true
end

--- Forgets the steps from one on: they run again.
local function forget_from(history, index)
  for i = #history.entries, index, -1 do history.entries[i] = nil end
end

readers["model.compacted"] = function() end

--- What the next step of a direct job is: one of the job's, or after them the check of a criterion.
local function expected_step(expected, index)
  local step = expected.steps[index]
  if step then return step.id, step.type end
  return nil, "run_command", expected.checks[index - #expected.steps]
end

--- The step of a line, where it is the next one. In an agent's job the model says which steps there are.
local function next_step(history, about, expected)
  local index = about.index + 1
  if history.goes_back and index <= #history.entries then
    forget_from(history, index)
    history.begun = {}
  end
  history.goes_back = nil
  if index ~= #history.entries + 1 then return nil, "the step is not the next one" end
  if not expected.steps then return index end
  local id, type, check = expected_step(expected, index)
  if type ~= about.type or check ~= about.check or not check and id ~= about.id then return nil, "the job has no such step" end
  return index
end

readers["step.started"] = function(history, line, _, expected)
  local index, reason = next_step(history, line, expected)
  if not index then return reason end
  history.begun[index], history.changes = type(line.at) == "string" and line.at or true, nil
  history.interrupted = { id = line.id, type = line.type }
end

readers["step.changes"] = function(history, line)
  local index = #history.entries + 1
  if line.index ~= index - 1 or not history.begun[index] then return "the step had not begun" end
  history.changes = { index = index, plan = line }
  history.planned = history.planned or {}
  for _, change in ipairs(line.changes) do
    if change.other then history.planned[change.other] = true end
    if change.aside then history.planned[change.aside] = true end
  end
end

readers["step.append"] = function(history, line)
  local index = #history.entries + 1
  if line.index ~= index - 1 or not history.begun[index] then return "the step had not begun" end
  if line.size ~= nil and math.type(line.size) ~= "integer" then return "its size cannot be read" end
  history.append = { index = index, size = line.size }
end

--- The text of a line's entry: a part of the line, unless something follows it there.
local function text_of_entry(line, text)
  for name in pairs(line) do
    if name ~= "event" and name ~= "entry" then return json.encode(line.entry, result_schema.properties.steps.items) end
  end
  return text:sub(#ENTRY_PREFIX + 1, -2)
end

readers["step.interrupted"] = function() end

readers["step.finished"] = function(history, line, text, expected)
  local entry = line.entry
  if text:sub(1, #ENTRY_PREFIX) ~= ENTRY_PREFIX then return "its entry is missing" end
  local index, reason = next_step(history, entry, expected)
  if not index then return reason end
  if not history.begun[index] and entry.status ~= "skipped" then return "the step had not begun" end
  local failed = not expected.brief and (entry.status == "failure" or entry.status == "timeout")
  if failed and not (entry.error and entry.error_code) then return "its error is missing" end
  local module = entry.result ~= nil and expected.catalogue and expected.catalogue.get(entry.type)
  local mistake = module and mistake_in(entry.result, module.result)
  if mistake then return mistake end
  if entry.status ~= "skipped" then -- which has ended nothing: what an earlier run had begun of it is still to be undone
    history.begun[index], history.append = nil, nil
    if history.changes and entry.status == "success" then history.changes.committed = true else history.changes = nil end
  end
  if entry.type == "ask_model" and entry.result then table.insert(history.asked, entry.result) end
  history.entries[index] = { text = text_of_entry(line, text), entry = entry }
end

readers["model.session"] = function(history, line)
  history.session = {
    model = line.model, context_length = line.context_length, tools = line.tools or {}, instructions = line.instructions,
    facts = line.facts, agents_md = line.agents_md,
  }
end

readers["model.exchange"] = function(history, line)
  secret.clean(line, schemas["model.exchange"])
  for _, call in ipairs(line.reply.tool_calls or {}) do
    if call.written and json.kind((json.decode(call.written))) ~= "object" then return "what a call's model wrote is not JSON" end
  end
  table.insert(history.exchanges, { messages = line.messages, reply = line.reply })
end

function readers.skills(history, line)
  history.skills = { found = line.found, missing = line.missing }
end

readers["job.reported"] = function(history)
  if not history.result then return "the job was not over" end
  history.reported = true
end

readers["job.finished"] = function(history, line, _, expected)
  local succeeded = line.result.status == "success"
  if succeeded and expected.steps and #history.entries < #expected.steps then return "steps are missing" end
  history.result = line.result
end

--- What the end of a job must know of a finished step, without decoding the whole: memory may be short.
local function brief(text)
  if text:sub(1, #ENTRY_PREFIX) ~= ENTRY_PREFIX then return nil end
  local head = text:sub(#ENTRY_PREFIX + 1, LONGEST_HEAD)
  local index, status, check = head:match '^{"index":(%d+),', head:match ',"status":"(%a+)"', head:match ',"check":(%d+)'
  if not index or not status then return nil end
  return { event = "step.finished", entry = { index = tonumber(index), status = status, check = tonumber(check) } }
end

--- Reads one line into the history; returns why it cannot.
local function read_line(history, text, expected)
  local short = expected.brief and brief(text)
  if short then return readers["step.finished"](history, short, text, expected) end
  local line, failure = json.decode_own(text)
  if failure then return failure.message end
  local reader = type(line) == "table" and (readers[line.event] or line.event == "journal.failed")
  if not reader then return "it is not an event of a journal" end
  if line.event == "journal.failed" then return not history.result and "what was done then could not be written" or nil end
  if not history.started_wall and line.event ~= "job" then return "the journal does not begin with its job" end
  local follows = not history.result or line.event == "job.reported" or line.event == "job.resumed" and history.result.status ~= "success"
  if not follows then return "the job was over" end
  return mistake_in(line, schemas[line.event]) or reader(history, line, text, expected)
end

--- Of a direct job the steps stay that succeeded. Checks run again, for what they check may have changed.
local function keep_successes(history, steps)
  for index, old in ipairs(history.entries) do
    if index > #steps or old.entry.status ~= "success" then
      history.failed = index <= #steps and old.entry.status ~= "skipped" and index or nil
      return forget_from(history, index)
    end
  end
end

---Reads a journal as far as it is whole: a torn last line does not count.
---@param path string for messages
---@param expected table as past.read; brief: the journal is this job's own, and of steps no more than their status is wanted
---@param ... any what util.lines gives, for its lines
---@return journal.history? history, native.failure? failure
function past.parse(path, expected, ...)
  local history, number = { entries = {}, begun = {}, exchanges = {}, resumes = {}, asked = {} }, 0
  for _, text, is_whole in ... do
    if not is_whole then break end
    number = number + 1
    local reason = read_line(history, text, expected)
    if reason then
      local message = ("the journal %s cannot be used, line %d: %s; without --resume the job starts anew"):format(path, number, reason)
      return nil, { code = "invalid_journal", message = message }
    end
  end
  return number > 0 and history or nil
end

--- Reads what an earlier run left. A torn last line does not count.
---@param path string
---@param expected { job_sha256: string, steps?: table[], checks: integer[], catalogue: table } steps: of a direct job; checks: the
---criteria that have one
---@return journal.history? history, native.failure? failure nil without failure: there is nothing to go on from
function past.read(path, expected)
  local bytes, failure = file.read(path, LIMIT)
  if not bytes then return nil, failure.code ~= "not_found" and failure or nil end
  local history
  history, failure = past.parse(path, expected, lines(bytes))
  if not history then return nil, failure end
  if not history.result or history.result.status ~= "success" then
    readers["job.resumed"](history)
    if expected.steps then keep_successes(history, expected.steps) end
  end
  return history
end

--- Keeps what a call to the gateway came to, for a replay calls nothing there; and how long steps took.
local function keep_call(recording, line)
  local entry = line.entry
  recording.durations[entry.index + 1] = entry.duration_ms
  if entry.type == "call_tool" then recording.entries[entry.index + 1] = entry end
end

local recorded_readers = {
  ["model.session"] = readers["model.session"], ["model.exchange"] = readers["model.exchange"], ["step.finished"] = keep_call,
  skills = readers.skills, ["job.finished"] = function(recording, line) recording.result = line.result end,
  ["job.resumed"] = readers["job.resumed"],
}

local function read_recorded(recording, text, job_sha256)
  local line, failure = json.decode_own(text)
  if type(line) ~= "table" then return failure and failure.message or "it is not an event of a journal" end
  if line.event == "job" then
    recording.version = type(line.version) == "string" and line.version or nil
    return line.job_sha256 ~= job_sha256 and "it belongs to another job" or nil
  end
  local reader = recorded_readers[line.event]
  return reader and (mistake_in(line, schemas[line.event]) or reader(recording, line)) or nil
end

--- Reads the conversation of a journal, or a script of one: lines of model.exchange, each with a reply at least.
---@param path string
---@param job_sha256 string
---@return { version?: string, durations: table<integer, integer>,
--- exchanges: table[], entries: table<integer, table>, session?: table, skills?: table }? recording
---entries: of calls to the gateway
---@return native.failure? failure
function past.recording(path, job_sha256)
  local bytes, failure = file.read(path, LIMIT)
  if not bytes then return nil, failure end
  local recording, number = { exchanges = {}, entries = {}, durations = {}, resumes = {} }, 0
  for _, text in lines(bytes) do
    number = number + 1
    local reason = text ~= "" and read_recorded(recording, text, job_sha256)
    if reason then
      return nil, { code = "invalid_journal", message = ("the recording %s, line %d: %s"):format(path, number, reason) }
    end
  end
  return recording
end

return past
