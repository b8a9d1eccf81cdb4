-- SPDX-License-Identifier: Apache-2.0
-- Requests to an inference endpoint. The failures are those of sba.util.http, with a code that a job may have and a finer cause.

local chunks = require "sba.util.chunks"
local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local url = require "sba.util.url"

local wire = {}

---@class inference.endpoint
---@field name string the variable that names it, or "the sidecar"
---@field base string URL without a slash at its end
---@field exact? boolean the base is not to be completed
---@field query? string what follows the path of every request, with its question mark
---@field key? string sent as a bearer token
---@field http native.http.client
---@field timeout { connect: number, first: number, idle: number, probe: number } seconds

---@class inference.failure: http.failure
---@field code "timeout"|"cancelled"|"context_cut"|"inference_unavailable"
---@field cause string finer: "connection_refused", "cut_off", "too_large", "bad_answer", "busy", "rate_limited", "quota", "refused",
---                    "model_missing", "tools_unsupported", "call_unparsed", "think_unsupported", "max_tokens_unsupported",
---                    "max_tokens_too_large", "temperature_unsupported", "tool_choice_unsupported",
---                    "format_unsupported", "grammar_refused", "server_failed", ...
---@field once? boolean tried once more at most
---@field context_length? integer of a context_cut: what the server says it has
---@field prompt_tokens? integer of a context_cut: what the server counted
---@field repeated? string what a stream repeated until it was stopped
---@field tries? integer how often the request was sent

local MOST_TOKENS <const> = 1000000000

---A number of tokens that a server gives; nil where it is none, or less than one.
---@param value any
---@return integer?
function wire.tokens(value)
  local count = math.type(value) == "integer" and value or math.type(value) == "float" and math.tointeger(value)
  return count and count > 0 and count <= MOST_TOKENS and count or nil
end

local own_codes = { timeout = true, cancelled = true, context_cut = true }

---Makes an inference failure of one of native.http, of sba.util.http, or of the modules here.
---@param endpoint inference.endpoint
---@param failure { code: string, message: string }
---@return inference.failure
function wire.failure(endpoint, failure)
  if failure.cause then return failure end
  local message, place = failure.message, url.shown(endpoint.base)
  if failure.code == "bad_answer" or failure.code == "too_large" or failure.code == "cut_off" then
    if not message:find(place, 1, true) then message = ("%s: %s"):format(place, message) end
  end
  return http.failure(own_codes[failure.code] and failure.code or "inference_unavailable", message, {
    cause = failure.code, transient = http.failure(failure.code, message).transient, repeated = failure.repeated,
  })
end

-- Causes by the server's words, in lower case; the first match counts.
local spellings = {
  { "does not support tools", "tools_unsupported" },
  { "requires --enable-auto-tool-choice", "tools_unsupported" },
  { "tools param requires --jinja", "tools_unsupported" },
  { "error parsing tool call", "call_unparsed" }, -- Ollama
  { "does not match the expected", "call_unparsed" }, -- llama.cpp's server
  { "failed to parse input at pos", "call_unparsed" }, -- the same, before
  { "does not support thinking", "think_unsupported" },
  { "'temperature'", "temperature_unsupported" }, -- of models that take one value only
  { "exceed_context_size_error", "context_cut" },
  { "context_length_exceeded", "context_cut" },
  { "exceeds the available context size", "context_cut" },
  { "maximum context length", "context_cut" }, -- vLLM's also speaks of max_tokens then
  { "longer than the context length", "context_cut" },
  { "exceeds the context length", "context_cut" }, -- Ollama's own engine
  { "max_tokens is too large", "max_tokens_too_large" },
  { "maximum allowed number of output tokens", "max_tokens_too_large" },
  { "max_completion_tokens", "max_tokens_unsupported" },
  { "insufficient_quota", "quota" },
  { "tool_choice", "tool_choice_unsupported" },
  { "response_format", "format_unsupported" },
  { "json_schema", "format_unsupported" },
  { "grammar", "grammar_refused" },
}

-- Causes by the status, if the words name none.
local statuses = {
  [404] = "model_missing", [408] = "slow_answer", [409] = "busy", [429] = "rate_limited", [500] = "server_failed",
  [502] = "server_failed", [503] = "busy", [504] = "server_failed", [529] = "busy",
}

--- Turns a refusal into an inference failure.
local function judged(failure)
  local details, status, cause = failure.details, failure.status, nil
  local all = (failure.words .. " " .. tostring(details.code or "") .. " " .. tostring(details.type or "")):lower()
  for _, spelling in ipairs(spellings) do
    cause = all:find(spelling[1], 1, true) and spelling[2]
    if cause then break end
  end
  failure.transient = not cause and (failure.transient or status == 409)
  failure.once = not cause and status == 500 or nil -- mostly a fault of the server that stays
  failure.cause = cause or statuses[status] or "refused"
  failure.code = own_codes[failure.cause] and failure.cause or "inference_unavailable"
  failure.context_length = wire.tokens(details.n_ctx)
    or wire.tokens(tonumber(failure.words:match "maximum context length is (%d+)"))
  failure.prompt_tokens = wire.tokens(details.n_prompt_tokens)
    or wire.tokens(tonumber(failure.words:match "has (%d+) input tokens"))
    or wire.tokens(tonumber(failure.words:match "%((%d+) in the messages"))
  return failure
end

---The failure that an error status means.
---@param endpoint inference.endpoint
---@param status integer
---@param body any decoded, or a string
---@param retry_after? string
---@return inference.failure
function wire.refusal(endpoint, status, body, retry_after)
  return judged(http.refused(url.shown(endpoint.base), status, body, retry_after))
end

--- Sends a request; returns the exchange if its status is 200.
local function send(endpoint, request, accept)
  request.connect_timeout, request.idle_timeout = endpoint.timeout.connect, endpoint.timeout.idle
  request.headers = { "Content-Type: application/json", "Accept: " .. accept }
  if endpoint.key then request.headers[3] = "Authorization: Bearer " .. endpoint.key end
  local exchange, status = http.send(endpoint.http, request)
  if not exchange then return nil, wire.failure(endpoint, status) end
  if status == 200 then return exchange end
  return nil, judged(http.refusal(exchange, status, url.shown(endpoint.base)))
end

---Asks for one JSON object: GET, or POST of a body.
---@param endpoint inference.endpoint
---@param path string
---@param body? string
---@return table?, inference.failure?
function wire.ask(endpoint, path, body)
  local exchange, failure = send(endpoint, {
    method = body and "POST" or "GET", url = endpoint.base .. path .. (endpoint.query or ""), body = body,
    first_timeout = endpoint.timeout.probe,
  }, "application/json")
  if not exchange then return nil, failure end
  return wire.object(endpoint, exchange)
end

---The rest of an answer as one JSON object.
---@param endpoint inference.endpoint
---@param exchange native.http.exchange
---@return table?, inference.failure?
function wire.object(endpoint, exchange)
  local bytes, failure = http.read(exchange)
  exchange:close()
  if not bytes then return nil, wire.failure(endpoint, failure) end
  local value, problem = json.decode_repaired(bytes)
  if json.is_object(value) then return value end
  return nil, wire.failure(endpoint, http.not_json(url.shown(endpoint.base), bytes, problem))
end

---The body of a request, in parts, so that a long conversation is not copied.
---@param fields table what is short
---@param ask inference.ask
---@param more? string further members as JSON, with a comma before each
---@return string[]
function wire.body(fields, ask, more)
  local parts = { json.encode(fields):sub(1, -2), ',"messages":[' }
  chunks.add_list(parts, ask.messages)
  parts[#parts + 1] = "]" .. (ask.tools and ',"tools":' .. ask.tools or "") .. (more or "") .. "}"
  return parts
end

---Posts a request whose answer is streamed.
---@param endpoint inference.endpoint
---@param path string
---@param body string[] parts
---@param accept string content type
---@return native.http.exchange?, inference.failure?
function wire.post(endpoint, path, body, accept)
  return send(endpoint, {
    method = "POST", url = endpoint.base .. path .. (endpoint.query or ""), body = body, first_timeout = endpoint.timeout.first,
  }, accept)
end

--- The failure of a stream that ends with an error, after the status 200.
local function broken(endpoint, value)
  local failure = wire.refusal(endpoint, 502, value)
  failure.status = nil
  failure.message = ("%s broke off its reply: %s"):format(url.shown(endpoint.base), http.shown(failure.words))
  return failure
end

--- The failure of a stream that cannot be read on. Text that is not JSON in the middle of a reply counts as cut off there:
--- something between the server and the runner broke it.
local function unread(endpoint, failed, begun)
  local failure = wire.failure(endpoint, failed)
  failure.transient = failure.transient or begun and failure.cause == "bad_answer"
  return failure
end

---@class inference.outcome
---@field done_reason? string nil: the reply is not whole
---@field is_over? boolean nothing more is to be read
---@field prompt_tokens? integer
---@field completion_tokens? integer

---Reads a reply to its end.
---@param endpoint inference.endpoint
---@param next_value fun(): table?, table?, string? see sba.model.stream
---@param builder table of inference.reply
---@param add fun(outcome: inference.outcome, value: table, text?: string) gives the builder what a value, and its text, say
---@return inference.outcome?, inference.failure?
function wire.read(endpoint, next_value, builder, add)
  local outcome, begun = {}, false
  while not outcome.is_over do
    local value, failed, text = next_value()
    if failed then return nil, unread(endpoint, failed, begun) end
    if not value then break end
    if value.error and value.error ~= json.null then return nil, broken(endpoint, value) end
    add(outcome, value, text)
    if builder.failure then return nil, wire.failure(endpoint, builder.failure) end
    begun = true
  end
  if outcome.done_reason then return outcome end
  return nil, wire.failure(endpoint, interrupt.reason() or { code = "cut_off", message = "the reply was cut off" })
end

return wire
