-- SPDX-License-Identifier: Apache-2.0
-- Ollama's own API.

local json = require "sba.util.json"
local json_place = require "sba.util.json_place"
local wire = require "sba.model.wire"

---@type model.dialect
local ollama = { provider = "ollama", path = "/api/chat", accept = "application/x-ndjson" }

-- Tokens asked for at most, unless the Modelfile sets it.
local WINDOW <const> = 32768
-- The same if the trained length is not known.
local UNKNOWN_WINDOW <const> = 8192
-- A command may take long, and loading a model again takes minutes.
local KEEP_ALIVE <const> = "30m"

function ollama.list(endpoint) return endpoint:list "/api/tags" end

function ollama.describe(endpoint, served)
  local about, failure = endpoint:ask("/api/show", json.encode { model = served.name })
  if not about and not failure.status then return nil, failure end
  about = about or {}
  local info, modelfile = json.table_of(about.model_info), "\n" .. tostring(about.parameters)
  local trained = wire.tokens(info[tostring(info["general.architecture"]) .. ".context_length"])
  local window = wire.tokens(tonumber(modelfile:match "\nnum_ctx%s+(%d+)")) -- bounded: it has no other way
  if not window then window = trained and WINDOW or UNKNOWN_WINDOW end
  local capabilities, has_tools = about.capabilities, nil
  if json.is_array(capabilities) then has_tools = json.contains(capabilities, "tools") end
  return { context_length = math.min(window, trained or window), supports_tools = has_tools }
end

function ollama.message(message)
  local sent = {
    role = message.role, content = message.content or "",
    tool_name = message.tool_name, tool_call_id = message.tool_call_id,
  }
  if message.thinking and message.thinking ~= "" then sent.thinking = message.thinking end
  for i, call in ipairs(message.tool_calls or {}) do
    local arguments = json.verbatim(call.written or json.encode(call.arguments))
    local called = { index = i - 1, name = call.called or call.name, arguments = arguments }
    sent.tool_calls = sent.tool_calls or {}
    sent.tool_calls[i] = { id = call.id, ["function"] = called }
  end
  return json.encode(sent)
end

function ollama.body(session, ask)
  local fields = { model = session.model, stream = true, keep_alive = KEEP_ALIVE, truncate = false }
  fields.options = {
    num_ctx = session.num_ctx, num_predict = ask.max_tokens, temperature = ask.temperature,
  }
  if ask.schema then fields.format, fields.think = json.verbatim(ask.schema), false end
  return wire.body(session, fields, ask)
end

-- The last line counts too: some models say all their calls there.
---@param builder model.builder
---@param value table a line
---@param line? string as it was written, where it was JSON
function ollama.add(builder, value, line)
  local message = json.table_of(value.message)
  builder:served_by(value.model)
  builder:content(message.content)
  builder:thinking(message.thinking)
  local places = line and next(json.table_of(message.tool_calls)) and json_place.of(line)
  builder:calls_of(message.tool_calls, places and function(i)
    return places:text(("/message/tool_calls/%d/function/arguments"):format(i - 1))
  end)
  if value.done ~= true then return end
  builder:counted(wire.tokens(value.prompt_eval_count), wire.tokens(value.eval_count))
  builder:ended(value.done_reason)
  builder:ended "stop" -- where it gave no reason
  builder.is_over = true
end

return ollama
