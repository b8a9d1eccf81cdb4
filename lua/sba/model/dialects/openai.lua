-- SPDX-License-Identifier: Apache-2.0
-- The OpenAI-compatible API.

local json = require "sba.util.json"
local table_of = json.table_of
local wire = require "sba.model.wire"

---@type model.dialect
local openai = { provider = "openai", path = "/chat/completions", accept = "text/event-stream" }

-- Tokens, where nobody says; a server that has fewer refuses and says so.
local WINDOW <const> = 32768

-- The endpoint's base gets a /v1 where only that answers.
function openai.list(endpoint)
  local base, first = endpoint.base, nil
  for _, suffix in ipairs(endpoint.exact and { "" } or { "", "/v1" }) do
    endpoint.base = base .. suffix
    local served, failure = endpoint:list "/models"
    if served then return served end
    first = first or failure
    if base:find("/v1$") or failure.status ~= 404 and failure.cause ~= "bad_answer" then break end
  end
  endpoint.base = base
  return nil, first
end

-- Of llama.cpp, where neither the weights nor its operator chose one. It is high for calls: agents
-- ask for 0 to 0.2.
local BUILT_IN <const>, LOW <const> = 0.8, 0.2

local function temperature(settings, template)
  local usual = tonumber(table_of(settings.params).temperature) or 0
  if math.abs(usual - BUILT_IN) > 1e-6 or type(template) ~= "string" then return nil end
  -- A model that thinks goes in circles with a low one.
  return not template:find "think" and LOW or nil
end

-- Also asks whether the template has a place for tools: llama.cpp silently leaves them out
-- otherwise.
local function llama_properties(endpoint, entry)
  if entry.owned_by ~= "llamacpp" then return nil end
  -- The path is beside /v1.
  local root = setmetatable({ base = endpoint.base:gsub("/v1$", "") }, { __index = endpoint })
  local answer = root:ask "/props" or {}
  local settings = table_of(answer.default_generation_settings)
  local has_tools = table_of(answer.chat_template_caps).supports_tools
  if type(has_tools) ~= "boolean" then has_tools = nil end
  return wire.tokens(settings.n_ctx), has_tools, temperature(settings, answer.chat_template)
end

-- What is loaded comes before what the model could have.
local WINDOWS <const> = {
  "loaded_context_length", "max_model_len", "context_length", "context_window",
  "max_context_length", "max_context",
}

function openai.describe(endpoint, served)
  local entry = served.entry
  local window, has_tools, low = llama_properties(endpoint, entry)
  -- llama.cpp behind a router has it here.
  window = window or wire.tokens(table_of(entry.meta).n_ctx)
  for _, name in ipairs(WINDOWS) do window = window or wire.tokens(entry[name]) end
  return { context_length = window or WINDOW, supports_tools = has_tools, temperature = low }
end

---@param message model.message
---@param session model.session
---@return string json
function openai.message(message, session)
  local refused, field = session.refused, session.thinking_field
  local content, thinking = message.content or "", message.thinking or ""
  if refused.content and message.tool_calls and content == "" then content = nil end
  local sent = { role = message.role, content = content, tool_call_id = message.tool_call_id }
  if field and not refused[field] and thinking ~= "" then sent[field] = thinking end
  if not refused.reasoning_details then sent.reasoning_details = message.thinking_parts end
  for i, call in ipairs(message.tool_calls or {}) do
    local arguments = call.written or json.encode(call.arguments)
    sent.tool_calls = sent.tool_calls or {}
    sent.tool_calls[i] = {
      id = call.id, type = "function", extra_content = call.extra,
      ["function"] = { name = call.called or call.name, arguments = arguments },
    }
  end
  return json.encode(sent)
end

function openai.body(session, ask)
  local bound = session.refused.max_tokens and "max_completion_tokens" or "max_tokens"
  local fields = {
    model = session.model, stream = true, stream_options = { include_usage = true },
    temperature = ask.temperature, [bound] = ask.max_tokens,
  }
  if ask.schema then
    local schema = { name = "reply", schema = json.verbatim(ask.schema) }
    fields.response_format = { type = "json_schema", json_schema = schema }
  end
  return wire.body(session, fields, ask)
end

local function add_message(builder, message)
  builder:calls_of(message.tool_calls)
  local old = table_of(message.function_call)
  if next(old) then builder:call { index = 0, name = old.name, arguments = old.arguments } end
  builder:content(message.content)
  builder:content(message.refusal)
  builder:thinking_parts(message.reasoning_details)
  -- Some say the same thought in both.
  for _, field in ipairs { "reasoning_content", "reasoning", "reasoning_text" } do
    local thought = message[field]
    if type(thought) == "string" and thought ~= "" then return builder:thinking(thought, field) end
  end
end

---@param builder model.builder
---@param value table a chunk, or a whole answer
function openai.add(builder, value)
  local is_first, usage = builder.size == 0, table_of(value.usage)
  builder:served_by(value.model)
  -- One reply is asked for: some have its text in one choice, and its calls in another.
  for _, choice in ipairs(table_of(value.choices)) do
    choice = table_of(choice)
    if not next(usage) then usage = table_of(choice.usage) end
    add_message(builder, table_of(choice.delta))
    -- A whole answer; some streams say all again at their end.
    if is_first then add_message(builder, table_of(choice.message)) end
    builder:content(choice.text)
    builder:ended(choice.finish_reason)
  end
  local cached = wire.tokens(table_of(usage.prompt_tokens_details).cached_tokens)
  builder:counted(wire.tokens(usage.prompt_tokens), wire.tokens(usage.completion_tokens), cached)
end

return openai
