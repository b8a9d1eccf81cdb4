-- SPDX-License-Identifier: Apache-2.0
-- The OpenAI-compatible API.

local http = require "sba.util.http"
local json = require "sba.util.json"
local table_of = json.table_of
local wire = require "sba.model.wire"

---@type inference.dialect
local openai = { provider = "openai", path = "/chat/completions", accept = "text/event-stream" }

local WINDOW <const> = 32768 -- tokens, where nobody says; a server that has fewer refuses and says so

-- The endpoint's base gets a /v1 where only that answers.
function openai.list(endpoint)
  local base, first = endpoint.base, nil
  for _, suffix in ipairs(endpoint.exact and { "" } or { "", "/v1" }) do
    endpoint.base = base .. suffix
    local served, failure = endpoint:list("/models", "data", { "id" })
    if served then return served end
    first = first or failure
    if base:find("/v1$") or failure.status ~= 404 and failure.cause ~= "bad_answer" then break end
  end
  endpoint.base = base
  return nil, first
end

-- Also asks whether the template has a place for tools: llama.cpp silently leaves them out otherwise.
local function llama_properties(endpoint, entry)
  if entry.owned_by ~= "llamacpp" then return nil end
  local root = setmetatable({ base = endpoint.base:gsub("/v1$", "") }, { __index = endpoint }) -- the path is beside /v1
  local answer = root:ask("/props") or {}
  local supports_tools = table_of(answer.chat_template_caps).supports_tools
  if type(supports_tools) ~= "boolean" then supports_tools = nil end
  return wire.tokens(table_of(answer.default_generation_settings).n_ctx), supports_tools
end

function openai.describe(endpoint, served)
  local entry = served.entry
  local running, supports_tools = llama_properties(endpoint, entry)
  local window = running or wire.tokens(entry.max_model_len) or wire.tokens(entry.context_length) or wire.tokens(entry.context_window)
  return { context_length = window or WINDOW, supports_tools = supports_tools }
end

function openai.message(message)
  local sent = { role = message.role, content = message.content or "", tool_call_id = message.tool_call_id }
  for i, call in ipairs(message.tool_calls or {}) do
    sent.tool_calls = sent.tool_calls or {}
    sent.tool_calls[i] = { id = call.id, type = "function", ["function"] = {
      name = call.called or call.name, arguments = call.written or json.encode(call.arguments),
    } }
  end
  return json.encode(sent)
end

function openai.body(session, ask)
  local fields = {
    model = session.model, stream = true, stream_options = { include_usage = true }, temperature = ask.temperature,
    [session.refused.max_tokens_unsupported and "max_completion_tokens" or "max_tokens"] = ask.max_tokens, tool_choice = ask.tool_choice,
  }
  if ask.schema then
    fields.response_format = { type = "json_schema", json_schema = { name = "reply", schema = json.verbatim(ask.schema) } }
  end
  return wire.body(fields, ask)
end

local function text_of(value)
  return type(value) == "string" and value ~= "" and value or nil
end

-- Some servers send every parallel call as index 0: another id with a name opens a new one.
local function call_of(builder, calls, index, id, name)
  local call
  if index then call = calls.by_index[index] elseif id then call = calls.by_id[id] else call = calls.last end
  if not call or id and name and call.id and call.id ~= id then
    call = builder:add_call {}
    calls.last = call
    if index then calls.by_index[index] = call end
    if id then calls.by_id[id] = call end
  end
  call.id, call.name = call.id or id, call.name or name
  return call
end

local function add_fragment(builder, calls, fragment)
  local called = table_of(fragment["function"])
  local call = call_of(builder, calls, math.tointeger(fragment.index), text_of(fragment.id), text_of(called.name))
  local arguments = called.arguments
  if type(arguments) == "table" then arguments = json.encode(arguments) end
  if type(arguments) == "string" then builder:add_arguments(call, arguments) end
end

-- value: one chunk, or a whole answer.
local function add(builder, calls, outcome, value)
  local usage, choice = table_of(value.usage), table_of(table_of(value.choices)[1])
  outcome.prompt_tokens = wire.tokens(usage.prompt_tokens) or outcome.prompt_tokens
  outcome.completion_tokens = wire.tokens(usage.completion_tokens) or outcome.completion_tokens
  outcome.done_reason = text_of(choice.finish_reason) or outcome.done_reason
  local message = table_of(choice.delta or choice.message)
  for _, fragment in ipairs(table_of(message.tool_calls)) do add_fragment(builder, calls, table_of(fragment)) end
  builder:add_content(message.content)
  builder:add_content(message.refusal)
  builder:add_thinking(text_of(message.reasoning_content) or message.reasoning)
end

local function texts_of(exchange)
  if http.is_stream(exchange) then return wire.events(function() return exchange:line() end) end
  local whole, failure = http.read(exchange)
  return function()
    local text = whole
    whole = nil
    return text, not text and failure or nil
  end
end

function openai.read(endpoint, exchange, builder)
  local calls = { by_index = {}, by_id = {} }
  return endpoint:read(texts_of(exchange), builder, function(...) add(builder, calls, ...) end)
end

return openai
