-- SPDX-License-Identifier: Apache-2.0
-- The OpenAI-compatible API: {base}/chat/completions. A dialect, as ollama is one: list, describe, body, read.

local json = require "sba.util.json"
local reply = require "sba.inference.reply"
local stream = require "sba.inference.stream"
local table_of = json.table_of
local wire = require "sba.inference.wire"

local chat_completions = { name = "chat_completions", provider = "openai", path = "/chat/completions", accept = "text/event-stream" }

local WINDOW <const> = 32768 -- tokens, where nobody says; a server that has fewer refuses and says so

local function models_of(answer)
  local served = {}
  for _, entry in ipairs(answer.data) do
    if type(entry) == "table" and type(entry.id) == "string" then served[#served + 1] = { name = entry.id, entry = entry } end
  end
  return served
end

---The models of an endpoint, whose base may lack the /v1 that it should end with.
---@param endpoint inference.endpoint its base gets the /v1 where only that answers
---@return inference.served[]?, inference.failure?
function chat_completions.list(endpoint)
  local base, first = endpoint.base, nil
  for _, suffix in ipairs(endpoint.exact and { "" } or { "", "/v1" }) do
    endpoint.base = base .. suffix
    local answer, failure = wire.ask(endpoint, "/models")
    if answer and json.is_array(answer.data) then return models_of(answer) end
    if answer then failure = wire.failure(endpoint, { code = "bad_answer", message = "sent no list of models" }) end
    first = first or failure
    if base:find("/v1$") or failure.status ~= 404 and failure.cause ~= "bad_answer" then break end
  end
  endpoint.base = base
  return nil, first
end

--- The window of a llama.cpp server, and whether its template has a place for tools, which it leaves out in silence otherwise. It tells
--- both beside its /v1.
local function llama_properties(endpoint, entry)
  if entry.owned_by ~= "llamacpp" then return nil end
  local root = setmetatable({ base = endpoint.base:gsub("/v1$", "") }, { __index = endpoint })
  local answer = wire.ask(root, "/props") or {}
  local supports_tools = table_of(answer.chat_template_caps).supports_tools
  if type(supports_tools) ~= "boolean" then supports_tools = nil end
  return math.tointeger(table_of(answer.default_generation_settings).n_ctx), supports_tools
end

---@param endpoint inference.endpoint
---@param served inference.served
---@return inference.description
function chat_completions.describe(endpoint, served)
  local entry = served.entry
  local running, supports_tools = llama_properties(endpoint, entry)
  local window = running or math.tointeger(entry.max_model_len) or math.tointeger(entry.context_length)
    or math.tointeger(entry.context_window)
  return { context_length = window or WINDOW, window_known = window ~= nil, supports_tools = supports_tools }
end

local function wire_calls(calls)
  local list = json.array {}
  for i, call in ipairs(calls) do
    list[i] = { id = call.id, type = "function", ["function"] = {
      name = call.called or call.name, arguments = call.written or json.encode(call.arguments),
    } }
  end
  return list
end

---A message as JSON.
---@param message inference.message
---@return string
function chat_completions.message(message)
  local shown = { role = message.role, content = message.content or "", tool_call_id = message.tool_call_id }
  if message.tool_calls and #message.tool_calls > 0 then shown.tool_calls = wire_calls(message.tool_calls) end
  return json.encode(shown)
end

---@param session table model, no_max_tokens
---@param ask inference.ask
---@return string[] parts of the JSON
function chat_completions.body(session, ask)
  local fields = {
    model = session.model, stream = true, stream_options = { include_usage = true }, temperature = ask.temperature,
    [session.no_max_tokens and "max_completion_tokens" or "max_tokens"] = ask.max_tokens, tool_choice = ask.tool_choice,
  }
  return wire.body(fields, ask, ask.schema
    and (',"response_format":{"type":"json_schema","json_schema":{"name":"reply","schema":%s}}'):format(ask.schema))
end

local function text_of(value)
  return type(value) == "string" and value ~= "" and value or nil
end

--- The calls of a stream, put together from their fragments.
local assembly = {}
assembly.__index = assembly

local function new_assembly()
  return setmetatable({ list = {}, by_index = {}, by_id = {} }, assembly)
end

function assembly:open(index, id)
  local slot = { id = id, fragments = {}, watched = reply.watch_arguments() }
  self.list[#self.list + 1] = slot
  if index then self.by_index[index] = slot end
  if id then self.by_id[id] = slot end
  return slot
end

--- The call that a fragment belongs to. Some servers send every parallel call as index 0: another id with a name opens a new one.
function assembly:slot(index, id, name)
  local slot = index and self.by_index[index]
  if not index then slot = id and self.by_id[id] or not id and self.list[#self.list] or nil end
  local is_another = slot and id and name and slot.id and slot.id ~= id
  if not slot or is_another then return self:open(index, id) end
  slot.id = slot.id or id
  return slot
end

--- Adds a fragment.
function assembly:add(fragment)
  local called = table_of(fragment["function"])
  local index, id, name = math.tointeger(fragment.index), text_of(fragment.id), text_of(called.name)
  local slot = self:slot(index, id, name)
  slot.name = slot.name or name
  local arguments = called.arguments
  if type(arguments) == "table" then arguments = json.encode(arguments) end
  if type(arguments) ~= "string" then return true end
  slot.fragments[#slot.fragments + 1] = arguments
  local repeated = slot.watched:add(arguments)
  if repeated then return nil, reply.repeats(repeated) end
  return true
end

--- Hands the calls to the reply.
function assembly:finish(builder)
  for _, slot in ipairs(self.list) do
    local ok, failure = builder:add_call { id = slot.id, name = slot.name, arguments = table.concat(slot.fragments) }
    if not ok then return nil, failure end
  end
  return true
end

local function add_text(builder, message)
  local ok, failure = builder:add_content(message.content)
  if ok then ok, failure = builder:add_content(message.refusal) end
  if ok then ok, failure = builder:add_thinking(text_of(message.reasoning_content) or message.reasoning) end
  return ok, failure
end

local function note_usage(outcome, usage)
  outcome.prompt_tokens = math.tointeger(usage.prompt_tokens) or outcome.prompt_tokens
  outcome.completion_tokens = math.tointeger(usage.completion_tokens) or outcome.completion_tokens
end

--- Adds what one chunk, or a whole answer, says.
local function add(builder, calls, outcome, value)
  note_usage(outcome, table_of(value.usage))
  local choice = table_of(table_of(value.choices)[1])
  local message = table_of(choice.delta or choice.message)
  for _, fragment in ipairs(table_of(message.tool_calls)) do
    local ok, failure = calls:add(table_of(fragment))
    if not ok then return nil, failure end
  end
  outcome.done_reason = text_of(choice.finish_reason) or outcome.done_reason
  return add_text(builder, message)
end

--- An answer that is no stream is read as one of a single chunk.
local function values_of(endpoint, exchange)
  local kind = exchange:header("Content-Type") or ""
  if kind:lower():find("text/event-stream", 1, true) then
    return stream.events(function() return exchange:line() end)
  end
  local value, failure = wire.object(endpoint, exchange)
  return function()
    local given = value
    value = nil
    return given, failure
  end
end

---Reads a reply to its end.
---@param endpoint inference.endpoint
---@param exchange native.http.exchange
---@param builder table of inference.reply
---@return inference.outcome?, inference.failure?
function chat_completions.read(endpoint, exchange, builder)
  local calls = new_assembly()
  local outcome, failure = wire.read(endpoint, values_of(endpoint, exchange), function(...) return add(builder, calls, ...) end)
  if not outcome then return nil, failure end
  local ok, failed = calls:finish(builder)
  if not ok then return nil, wire.failure(endpoint, failed) end
  return outcome
end

return chat_completions
