-- SPDX-License-Identifier: Apache-2.0
-- Requests to an endpoint for models, and the JSON in its answers: one object, NDJSON (Ollama), or server-sent events.

local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"

local wire = {}

---@class inference.endpoint
---@field name string the variable that names it, or "the sidecar"
---@field base string URL without a final slash
---@field exact? boolean nothing is added to the base
---@field query? string with its question mark
---@field key? string bearer token
---@field http native.http.client
---@field timeout { connect: number, first: number, idle: number, probe: number } seconds
local endpoint = {}
endpoint.__index = endpoint

---@class inference.failure: http.failure
---@field code "timeout"|"cancelled"|"context_cut"|"inference_unavailable"
---@field cause string a code of sba.util.http, one of the spellings below, "too_large", "model_missing", ...
---@field once? boolean tried once more at most
---@field context_length? integer of a context_cut
---@field prompt_tokens? integer of a context_cut
---@field repeated? string why a stream was stopped
---@field used? table estimated tokens and duration_ms after a timeout or signal

---@class inference.served
---@field name string
---@field entry table of the list

---@class inference.dialect
---@field provider string
---@field path string of the chat
---@field accept string
---@field list fun(endpoint: inference.endpoint): inference.served[]?, inference.failure?
---@field describe fun(endpoint: inference.endpoint, served: inference.served): inference.description?, inference.failure?
---@field message fun(message: inference.message): string as JSON
---@field body fun(session: inference.session, ask: inference.ask): string[] parts of JSON
---@field read fun(endpoint: inference.endpoint, exchange: native.http.exchange, builder: table): inference.outcome?, inference.failure?

---@class inference.description
---@field context_length integer tokens
---@field supports_tools? boolean nil: not known

local MOST_TOKENS <const> = 1000000000
local LARGEST <const> = 8 * 1024 * 1024 -- bytes of one JSON text; tiny values take some 40 times their size in memory

---@param fields table
---@return inference.endpoint
function wire.endpoint(fields) return setmetatable(fields, endpoint) end

---A server's number of tokens, if it is one from 1.
---@param value any
---@return integer?
function wire.tokens(value)
  local count = math.type(value) == "integer" and value or math.type(value) == "float" and math.tointeger(value)
  return count and count > 0 and count <= MOST_TOKENS and count or nil
end

local own_codes <const> = { timeout = true, cancelled = true, context_cut = true }
local of_answers <const> = { bad_answer = true, too_large = true, cut_off = true } -- their messages name no server

---@return string
function endpoint:place() return http.place(self.base) end

---@param failure { code: string, message: string }
---@return inference.failure
function endpoint:failure(failure)
  if failure.cause then return failure end
  local cause, message, place = failure.code, failure.message, self:place()
  if of_answers[cause] and not message:find(place, 1, true) then message = ("%s: %s"):format(place, message) end
  local result = http.failure(cause, message, { cause = cause, repeated = failure.repeated })
  if not own_codes[cause] then result.code = "inference_unavailable" end
  return result
end

-- Causes, and what servers say, in lower case; the first that fits counts.
local spellings <const> = {
  { "tools_unsupported", "does not support tools", "requires --enable-auto-tool-choice", "tools param requires --jinja" },
  -- Ollama; llama.cpp's server, now and before
  { "call_unparsed", "error parsing tool call", "does not match the expected", "failed to parse input at pos" },
  { "think_unsupported", "does not support thinking" },
  { "temperature_unsupported", "'temperature'" }, -- of models that take one value only
  { "context_cut", "exceed_context_size_error", "context_length_exceeded", "exceeds the available context size",
    "maximum context length", -- vLLM's also speaks of max_tokens then
    "longer than the context length", "exceeds the context length" }, -- Ollama's own engine
  { "max_tokens_too_large", "max_tokens is too large", "maximum allowed number of output tokens" },
  { "max_tokens_unsupported", "max_completion_tokens" },
  { "quota", "insufficient_quota" },
  { "tool_choice_unsupported", "tool_choice" },
  { "schema_unsupported", "response_format", "json_schema", "grammar" },
}

local function cause_of(words)
  for _, spelling in ipairs(spellings) do
    for i = 2, #spelling do
      if words:find(spelling[i], 1, true) then return spelling[1] end
    end
  end
end

local function judged(failure)
  local details, status, words = failure.details, failure.status, failure.words
  local cause = cause_of(("%s %s %s"):format(words, details.code, details.type):lower())
  failure.transient = not cause and (failure.transient or status == 409)
  failure.once = not cause and status == 500 or nil -- mostly a fault of the server that stays
  failure.cause = cause or status == 404 and "model_missing" or "refused"
  failure.code = own_codes[failure.cause] and failure.cause or "inference_unavailable"
  failure.context_length = wire.tokens(details.n_ctx) or wire.tokens(tonumber(words:match "maximum context length is (%d+)"))
  failure.prompt_tokens = wire.tokens(details.n_prompt_tokens)
    or wire.tokens(tonumber(words:match "has (%d+) input tokens" or words:match "%((%d+) in the messages"))
  return failure
end

---@param status integer
---@param body any decoded, or a string
---@return inference.failure
function endpoint:refusal(status, body)
  return judged(http.refused(self:place(), status, body))
end

---GET, or POST of a body. Returns the exchange if its status is 200.
---@param path string
---@param accept string
---@param body? string|string[]
---@param first_timeout? number seconds
---@return native.http.exchange?, inference.failure?
function endpoint:send(path, accept, body, first_timeout)
  local timeout = self.timeout
  local exchange, status = http.send(self.http, {
    method = body and "POST" or "GET", url = self.base .. path .. (self.query or ""), body = body,
    headers = {
      "Content-Type: application/json", "Accept: " .. accept, self.key and "Authorization: Bearer " .. self.key or nil,
    },
    connect_timeout = timeout.connect, first_timeout = first_timeout or timeout.first, idle_timeout = timeout.idle,
  })
  if not exchange then return nil, self:failure(status) end
  if status == 200 then return exchange end
  return nil, judged(http.refusal(exchange, status, self:place()))
end

-- is_cut: the answer ended in the text.
local function object_of(self, bytes, is_cut)
  local value, problem
  if #bytes > LARGEST then
    problem = { code = "too_large", message = ("sent a line of more than %d bytes"):format(LARGEST) }
  else
    value, problem = json.decode_repaired(bytes)
    if json.is_object(value) then return value end
    problem = is_cut and { code = "cut_off", message = "the answer ended in the middle of a line" }
      or http.not_json(self:place(), bytes, problem)
  end
  return nil, self:failure(problem)
end

---GET, or POST of a body, for one JSON object.
---@param path string
---@param body? string
---@return table?, inference.failure?
function endpoint:ask(path, body)
  local exchange <close>, failure = self:send(path, "application/json", body, self.timeout.probe)
  if not exchange then return nil, failure end
  local bytes, unread = http.read(exchange)
  if not bytes then return nil, self:failure(unread) end
  return object_of(self, bytes)
end

---@param path string
---@param member string of the answer
---@param names string[] the two members of an entry that may hold its name
---@return inference.served[]?, inference.failure?
function endpoint:list(path, member, names)
  local answer, failure = self:ask(path)
  if not answer then return nil, failure end
  if not json.is_array(answer[member]) then
    return nil, self:failure { code = "bad_answer", message = "sent no list of models" }
  end
  local served = {}
  for _, entry in ipairs(answer[member]) do
    entry = json.table_of(entry)
    local name = entry[names[1]] or entry[names[2]]
    if type(name) == "string" then served[#served + 1] = { name = name, entry = entry } end
  end
  return served
end

---A request's body in parts, so that a long conversation is not copied.
---@param fields table all but messages and tools
---@param ask inference.ask
---@return string[]
function wire.body(fields, ask)
  fields.tools = ask.tools and json.verbatim(ask.tools)
  local parts = { json.encode(fields):sub(1, -2), ',"messages":[' }
  for i, message in ipairs(ask.messages) do
    if i > 1 then parts[#parts + 1] = "," end
    parts[#parts + 1] = message
  end
  parts[#parts + 1] = "]}"
  return parts
end

---@alias inference.lines fun(): string?, boolean|table? as of http.events
---@alias inference.texts fun(): string?, boolean|table? a JSON text and whether it was cut off; nil at the end; or nil and a failure

---@param lines inference.lines
---@return inference.texts
function wire.ndjson(lines)
  return function()
    local line, ended
    repeat line, ended = lines() until not line or line:find "%S"
    if not line then return nil, ended or nil end
    return line, not ended
  end
end

---The JSON texts up to "[DONE]". The field "error" of some servers comes as { error = ... }.
---@param lines inference.lines
---@return inference.texts
function wire.events(lines)
  local next_event = http.events(lines)
  return function()
    local event, failure
    repeat event, failure = next_event() until not event or event.data ~= "" or event.error
    if not event or event.data == "[DONE]" then return nil, failure end
    if event.error then return json.encode { error = json.decode_repaired(event.error) or event.error } end
    return event.data, event.is_cut
  end
end

-- An error in a stream, after the status 200.
local function broken(self, value)
  local failure = self:refusal(502, value)
  failure.status = nil
  failure.message = ("%s broke off its reply: %s"):format(self:place(), http.shown(failure.words))
  return failure
end

---@class inference.outcome
---@field done_reason? string nil: the reply is not whole
---@field is_over? boolean
---@field prompt_tokens? integer
---@field completion_tokens? integer

---@param next_text inference.texts
---@param builder table of sba.model.reply
---@param add fun(outcome: inference.outcome, value: table, text: string) value: of the text
---@return inference.outcome?, inference.failure?
function endpoint:read(next_text, builder, add)
  local outcome, has_begun = {}, false
  while not outcome.is_over do
    local text, is_cut = next_text()
    if not text and not is_cut then break end
    local value, failure
    if text then value, failure = object_of(self, text, is_cut) else failure = self:failure(is_cut) end
    if failure then
      -- In the middle of a reply something between the server and the runner broke the JSON.
      failure.transient = failure.transient or has_begun and failure.cause == "bad_answer"
      return nil, failure
    end
    if value.error and value.error ~= json.null then return nil, broken(self, value) end
    add(outcome, value, text)
    if builder.failure then return nil, self:failure(builder.failure) end
    has_begun = true
  end
  if outcome.done_reason then return outcome end
  return nil, self:failure(interrupt.reason() or { code = "cut_off", message = "the reply was cut off" })
end

return wire
