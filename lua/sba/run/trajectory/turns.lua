-- SPDX-License-Identifier: Apache-2.0
-- Makes the steps of a trajectory from the events of a journal. A turn of the model is held until the next one begins, because the
-- journal has the answers to its calls with the next request. What the runner did by itself is a step with an llm_call_count of 0.

local array = require "sba.util.json".array
local bundle = require "native.bundle"
local describe = require "sba.run.describe"
local document = require "sba.run.trajectory.document"
local excerpt = require "sba.util.excerpt"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local schemas = require "sba.inference.schemas"
local secret = require "sba.util.secret"
local tools = require "sba.run.agent.tools"

local turns = {}
turns.__index = turns

local MOST_SHOWN <const> = 16 * 1024 -- bytes of a step's output that no model was shown
local none <const>, own <const> = {}, { enum = {} }
local tools_schema <const> = { items = { properties = { kind = own, name = own, tool = own } } } -- as they are called
local USUAL_ENDS <const> = { stop = true, tool_calls = true }

---@class trajectory.turn a turn of the model whose answers are not known yet
---@field step table as ATIF has it
---@field names string[] of its calls
---@field entries table[] of the job's steps that began after it

---@class trajectory.turns
---@field line? table of the job
---@field session? table the model.session
---@field tools agent.tool[] that the model has
---@field by_name table<string, agent.tool>
---@field result? table the result's fields without steps, where the job was over
---@field arguments table<string, table> of the job's own steps, by id
---@field skipped integer steps that did not run
---@field failure? native.failure why a step could not be written

---@param catalogue table the step types
---@param writer trajectory.document
---@param arguments_of fun(line: table): table<string, table> the arguments of the job's own steps by their ids, given the job's line
---@return trajectory.turns
function turns.new(catalogue, writer, arguments_of)
  return setmetatable({
    catalogue = catalogue, writer = writer, arguments_of = arguments_of, arguments = {}, skipped = 0, tools = {}, by_name = {},
  }, turns)
end

local TIME <const> = "^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ$"

local function head_of(self)
  local line, session = self.line, self.session
  return {
    session_id = type(line.job_id) == "string" and line.job_id ~= "" and line.job_id or nil,
    version = type(line.version) == "string" and line.version or bundle.version,
    model_name = session and session.model, tool_definitions = session and schemas.tools(self.tools),
    extra = session and { context_length = session.context_length },
  }
end

--- Writes a step. People edit journals: a time that is none is left out.
local function emit(self, step)
  if self.failure then return end
  local _
  local at = step.timestamp
  if type(at) ~= "string" or not at:find(TIME) then step.timestamp = nil end
  if self.writer.count == 0 then _, self.failure = self.writer:begin(head_of(self)) end
  if not self.failure then _, self.failure = self.writer:step(step) end
end

--- What came of a step, as a model is told it.
local function outcome(entry)
  local text = entry.output or entry.result ~= nil and json.encode(entry.result) or ""
  if entry.error then text = ("failed (%s): %s\n%s"):format(entry.error_code or entry.status, entry.error, text) end
  return (excerpt.of(text, MOST_SHOWN))
end

local function about(entry)
  return entry and {
    step = entry.id, status = entry.status, exit_code = entry.exit_code, duration_ms = entry.duration_ms, error_code = entry.error_code,
  }
end

local function what(entry, arguments)
  local ok, words = pcall(describe, { type = entry.type, arguments = arguments })
  return ok and words ~= "" and entry.type .. " " .. words or entry.type
end

--- 0 tokens are unknown.
local function known(count) return math.type(count) == "integer" and count > 0 and count or nil end

--- The model and the tokens of an ask_model that was answered.
local function question(entry)
  local result = entry.type == "ask_model" and entry.result
  if type(result) ~= "table" or type(result.model) ~= "string" then return nil end
  local prompt_tokens, completion_tokens = known(result.prompt_tokens), known(result.completion_tokens)
  local metrics = prompt_tokens and { prompt_tokens = prompt_tokens, completion_tokens = completion_tokens }
  return { model_name = result.model, metrics = metrics }
end

--- A step that no model called: of a direct job, or a check. ask_model is a request to a model all the same.
local function own_step(self, entry)
  local arguments = self.arguments[entry.id] or {}
  local asked = question(entry)
  return {
    timestamp = entry.started_at, source = "agent", message = what(entry, arguments), model_name = asked and asked.model_name,
    tool_calls = array { { tool_call_id = entry.id, function_name = entry.type, arguments = arguments } },
    observation = document.observation { { source_call_id = entry.id, content = entry.text, extra = about(entry) } },
    metrics = asked and asked.metrics,
    llm_call_count = asked and 1 or 0, extra = entry.check and { check = entry.check } or nil,
  }
end

--- The results of the calls that were answered. Answers come in the order of the calls.
local function answered(turn, answers, by_id)
  local results, taken = {}, {}
  for i, answer in ipairs(answers) do
    local call = turn.step.tool_calls and turn.step.tool_calls[i]
    local entry = by_id[answer.step or 0]
    results[i] = { source_call_id = call and call.tool_call_id, content = answer.content or "", extra = about(entry) }
    if entry then taken[entry] = true end
  end
  return results, taken
end

--- No request has the answers to the calls of the last turn. Its steps are in the order of the calls; no call made a check.
local function add_unanswered(self, turn, results, taken)
  local made, next_entry = {}, 1
  for _, entry in ipairs(turn.entries) do
    if not entry.check then made[#made + 1] = entry end
  end
  for i = #results + 1, turn.step.tool_calls and #turn.step.tool_calls or 0 do
    local call, entry = turn.step.tool_calls[i], made[next_entry]
    local kind = (self.by_name[call.function_name] or none).kind
    if entry and (entry.type == call.function_name or entry.type == "call_tool" and kind == "gateway") then
      results[#results + 1] = { source_call_id = call.tool_call_id, content = entry.text, extra = about(entry) }
      taken[entry], next_entry = true, next_entry + 1
    end
  end
end

--- Writes the turn that was held, with its answers, and the runner's own steps since.
local function close_turn(self, answers)
  local turn = self.turn
  if not turn then return end
  self.turn = nil
  local by_id = {}
  for _, entry in ipairs(turn.entries) do by_id[entry.id] = entry end
  local results, taken = answered(turn, answers or {}, by_id)
  if not answers then add_unanswered(self, turn, results, taken) end
  turn.step.observation = document.observation(results)
  emit(self, turn.step)
  for _, entry in ipairs(turn.entries) do
    if not taken[entry] then emit(self, own_step(self, entry)) end
  end
end

--- Writes what happened to the conversation since the last turn.
local function say_changes(self)
  local resumed, compacted = self.resumed, self.compacted
  self.resumed, self.compacted = nil, nil
  if resumed then
    emit(self, { timestamp = resumed.at, source = "system", message = "The run was interrupted. It continues here." })
  end
  if not compacted then return end
  emit(self, {
    timestamp = compacted.at, source = "system",
    message = ("The conversation was shortened to fit the model's context: about %d tokens before, %d after.")
      :format(compacted.tokens_before, compacted.tokens_after),
    extra = { context_management = {
      type = "compaction", boundary = "replace", tokens_before = compacted.tokens_before, tokens_after = compacted.tokens_after,
    } },
  })
end

--- The calls of a reply. Only the names of tools that there are hold no text from outside.
local function calls_of(self, reply)
  local calls = array {}
  for i, call in ipairs(reply.tool_calls or {}) do
    local name = self.by_name[call.name] and call.name or secret.redact(call.name)
    calls[i] = { tool_call_id = call.id or "call-" .. i, function_name = name, arguments = call.arguments }
  end
  return #calls > 0 and calls or nil
end

local function metrics_of(reply)
  return {
    prompt_tokens = known(reply.prompt_tokens), completion_tokens = known(reply.completion_tokens),
    extra = reply.duration_ms and { duration_ms = reply.duration_ms },
  }
end

local function extra_of(reply)
  local extra = {
    notes = reply.notes and #reply.notes > 0 and reply.notes or nil, unreadable = reply.unreadable,
    done_reason = not USUAL_ENDS[reply.done_reason or "stop"] and reply.done_reason or nil,
  }
  return next(extra) and extra or nil
end

local readers = {}

function readers.job(self, line)
  self.line, self.arguments = line, self.arguments_of(line)
end

readers["job.resumed"] = function(self, line) self.resumed = line end

readers["model.session"] = function(self, line)
  self.session = line
  self.tools, self.by_name = tools.list(self.catalogue, secret.clean(line.tools, tools_schema))
end

readers["model.compacted"] = function(self, line) self.compacted = line end

readers["model.exchange"] = function(self, line)
  local answers, others = {}, {}
  for _, message in ipairs(line.messages or {}) do
    local list = message.role == "tool" and answers or others
    list[#list + 1] = message
  end
  local at = not self.turn and interrupt.timestamp(self.line.started_wall) or nil -- of what is said first
  close_turn(self, answers)
  say_changes(self)
  for _, message in ipairs(others) do
    local source = message.role == "system" and "system" or "user"
    emit(self, { timestamp = at, source = source, message = message.content or "" })
  end
  local reply = line.reply
  self.turn = { entries = {}, step = {
    timestamp = line.at, source = "agent", message = reply.content or "", tool_calls = calls_of(self, reply),
    reasoning_content = reply.thinking ~= "" and reply.thinking or nil, metrics = metrics_of(reply), llm_call_count = 1,
    extra = extra_of(reply),
  } }
end

--- Keeps of an entry what a trajectory shows, or writes it where no turn is open.
local function add_entry(self, entry)
  entry.text = outcome(entry)
  entry.output, entry.result = nil, entry.type == "ask_model" and entry.result or nil
  if self.turn then
    table.insert(self.turn.entries, entry)
    return
  end
  say_changes(self)
  emit(self, own_step(self, entry))
end

readers["step.started"] = function(self, line)
  self.begun, self.arguments[line.id] = line, line.arguments or self.arguments[line.id]
end

readers["step.finished"] = function(self, line)
  line.entry.check = self.begun and self.begun.id == line.entry.id and math.tointeger(self.begun.check) or nil
  self.begun = nil
  if line.entry.status == "skipped" then self.skipped = self.skipped + 1 else add_entry(self, line.entry) end
  if not self.turn then self.arguments[line.entry.id] = nil end
end

readers["job.finished"] = function(self, line) self.result = line.result end

---Takes an event of the journal. Others than those that a trajectory shows are passed over.
---@param line table
function turns:add(line)
  local reader = readers[line.event]
  if reader then reader(self, line) end
end

local function ending(self)
  local result = self.result
  if not result then return "The journal ends here, and the job was not over.", { status = "interrupted" } end
  local skipped = self.skipped > 0 and (" Steps that did not run: %d."):format(self.skipped) or ""
  if result.status == "success" then return "The job ended well." .. skipped, { status = result.status } end
  return ("The job ended: %s: %s.%s"):format(result.failure_code, result.failure_message, skipped),
    { status = result.status, failure_code = result.failure_code }
end

---Writes what is held. A job that did not end well, or did nothing, has a last step that says so.
function turns:finish()
  local begun = self.begun
  if begun then
    add_entry(self, { id = begun.id, type = begun.type, started_at = begun.at, status = "interrupted",
      error_code = "interrupted", error = "the runner was ended while this step ran" })
  end
  close_turn(self)
  say_changes(self)
  local result = self.result
  if result and result.status == "success" and self.writer.count > 0 then return end
  local message, extra = ending(self)
  emit(self, { timestamp = result and result.finished_at, source = "system", message = message, extra = extra })
end

return turns
