-- SPDX-License-Identifier: Apache-2.0
-- Sends the requests of one conversation to one model, in the dialect of its endpoint. Transient failures are tried again; features
-- that the endpoint refuses are left out from then on.

local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local reply = require "sba.model.reply"
local retry = require "sba.util.retry"
local schemas = require "sba.model.schemas"
local secret = require "sba.util.secret"
local text = require "native.text"
local secrets_are_known = require "native.secret".is_known
local text_protocol = require "sba.model.text_protocol"
local wire = require "sba.model.wire"

---@class inference.session
---@field model string as the job names it
---@field context_length integer tokens for prompt and reply; the caller keeps within it. It shrinks where the server has fewer
---@field supports_tools? boolean nil: not known yet; false: calls come as text, which makes no difference to the caller
---@field schema_kind "full"|"simple"|false what binds a reply in which calls come as text, as far as the server can
---@field place string the endpoint, for people
local session = {}
session.__index = session

---@class inference.message never changed once it was sent
---@field role "system"|"user"|"assistant"|"tool"
---@field content string
---@field thinking? string of a reply, given back to servers that want it
---@field tool_calls? inference.call[] of a reply
---@field tool_call_id? string of a result
---@field tool_name? string of a result

---@class inference.tool
---@field name string of A-Za-z0-9_-, at most 64
---@field description string
---@field parameters table|string JSON Schema: a table, our own keywords and all, or JSON text
---@field called? string[] other names that models have for it
---@field exact? boolean a name that is only near to its own does not mean it

---@class inference.request
---@field messages inference.message[]
---@field tools? inference.tool[] at least one; the same table at every request: its text is made once
---@field accepted? inference.tool[] those that a reply may call, where they are more than it is shown
---@field json_schema? table the content is to be JSON that fits; not together with tools
---@field status? string what changes with every request; it becomes the end of the last message
---@field max_tokens? integer of the reply
---@field tool_choice? "required" the reply is to hold a call, where the server can see to it
---@field temperature? number nil: the server's own, or 0 where a schema binds the reply
---@field on_text? fun(piece: string) is given the content as it comes; after a broken stream it comes again from its beginning

---@class inference.ask a request as a dialect writes it
---@field messages string[] JSON of each
---@field tools? string JSON
---@field tool_choice? "required"
---@field schema? string JSON
---@field max_tokens? integer
---@field temperature? number

---@param fields table dialect, endpoint, place, model, others, context_length, supports_tools, policy, on_wait
---@return inference.session
function session.new(fields)
  fields.num_ctx, fields.window, fields.schema_kind = fields.context_length, fields.context_length, "full"
  fields.calls, fields.ids, fields.unread = 0, {}, 0
  fields.written = setmetatable({}, { __mode = "k" })
  return setmetatable(fields, session)
end

local ours <const> = { properties = { tool_calls = { enum = {} }, done_reason = { enum = {} } } }

local function joined(message, more)
  local copy = {}
  for name, value in pairs(message) do copy[name] = value end
  copy.content = (message.content or "") .. "\n\n" .. more
  return copy
end

--- The messages as they are sent. Many chat templates refuse two user messages in a row, and one after a tool's result: neighbours
--- become one message, and the status is part of the last.
local function alternating(messages, status)
  local result = {}
  for _, message in ipairs(messages) do
    local last = result[#result]
    if last and message.role == "user" and last.role == "user" then
      result[#result] = joined(last, message.content or "")
    else
      result[#result + 1] = message
    end
  end
  if status then result[#result] = joined(result[#result], status) end
  return result
end

--- Each message as JSON. Those that were sent before are not written again.
local function written(self, messages)
  local list = {}
  for i, message in ipairs(messages) do
    self.written[message] = self.written[message] or self.dialect.message(message)
    list[i] = self.written[message]
  end
  return list
end

local function ask_of(self, request)
  local ask, messages, tools = { max_tokens = request.max_tokens }, request.messages, request.tools
  if self.longest_reply and ask.max_tokens then ask.max_tokens = math.min(ask.max_tokens, self.longest_reply) end
  if tools and self.supports_tools == false then
    messages = text_protocol.messages(messages, tools)
    ask.schema = self.schema_kind and text_protocol.schema(tools, self.schema_kind) or nil
  elseif tools then
    ask.tools, ask.tool_choice = schemas.tools(tools), not self.no_tool_choice and request.tool_choice or nil
  elseif request.json_schema and self.schema_kind then
    ask.schema = json.encode(request.json_schema)
  end
  if not self.no_temperature then ask.temperature = request.temperature or ask.schema and 0 or nil end
  ask.messages = written(self, alternating(messages, request.status))
  return ask
end

local function tokens_of(list)
  local total = 0
  for _, part in ipairs(list) do
    local words, dense, other = text.tokens(part)
    total = total + words + dense + other
  end
  return math.ceil(total)
end

--- A request that was ended by the job's time or a signal was not for nothing: what it used, as far as can be said here.
local function abandoned(failure, ask, builder, started)
  if failure.code ~= "timeout" and failure.code ~= "cancelled" then return nil, failure end
  failure.used = {
    prompt_tokens = tokens_of(ask.messages) + tokens_of { ask.tools }, completion_tokens = tokens_of(builder:pieces()),
    duration_ms = math.floor((interrupt.now() - started) * 1000 + 0.5),
  }
  return nil, failure
end

local function exchange_once(self, ask, request)
  local dialect, started, builder = self.dialect, interrupt.now(), reply.new(request.on_text)
  local exchange, failure = wire.post(self.endpoint, dialect.path, dialect.body(self, ask), dialect.accept)
  if not exchange then return abandoned(failure, ask, builder, started) end
  local open <close> = exchange
  local tools = request.accepted or request.tools
  local outcome, failed = dialect.read(self.endpoint, open, builder)
  local repeated = failed and (failed.repeated or failed.cause == "cut_off" and dialect.aborts_repetition and builder:repeated_at_end())
  if failed and not repeated then return abandoned(failed, ask, builder, started) end
  local result = repeated and builder:stopped(repeated) or builder:finish(outcome, tools, tools and not ask.tools, self)
  result.duration_ms = math.floor((interrupt.now() - started) * 1000 + 0.5)
  return result
end

-- What is left out of the requests from then on, by the refusal that names it. Maximum tokens get another name.
local left_out <const> = {
  think_unsupported = "no_think", temperature_unsupported = "no_temperature", tool_choice_unsupported = "no_tool_choice",
  max_tokens_unsupported = "no_max_tokens",
}

-- How else the session adapts to a refusal before the request is sent again. Each returns whether it changed anything.
local remedies = {}

function remedies.tools_unsupported(self, ask)
  if not ask.tools then return false end
  self.supports_tools = false
  return true
end

--- A model whose replies are shorter than its window would let them be.
function remedies.max_tokens_too_large(self, ask, failure)
  local most = tonumber(failure.words:match "at most (%d+)" or failure.words:match "> (%d+)")
  self.longest_reply = math.tointeger(most) or (ask.max_tokens or 0) // 2
  return self.longest_reply > 0 and self.longest_reply < (ask.max_tokens or 0)
end

function remedies.format_unsupported(self, ask)
  if not ask.schema then return false end
  self.schema_kind = false
  return true
end

--- A server that cannot make a grammar of the schema may make one of a simpler schema.
function remedies.grammar_refused(self, ask)
  if not ask.schema then return false end
  self.schema_kind = self.schema_kind == "full" and "simple" or false
  return true
end

--- An endpoint that lists no models: another of the allowed ones may be there.
function remedies.model_missing(self)
  local other = self.others and table.remove(self.others, 1)
  self.model = other or self.model
  return other ~= nil
end

--- Adapts to a refusal. Returns whether the request is now another one.
local function adapt(self, ask, failure)
  local field, remedy = left_out[failure.cause], remedies[failure.cause]
  if remedy then return remedy(self, ask, failure) end
  if not field or self[field] then return false end
  self[field] = true
  return true
end

--- A server that could not parse its model's tool call did answer: the model is told, as of any reply that cannot be read.
local function unparsed(failure)
  return {
    content = "", thinking = "", tool_calls = json.array {}, notes = json.array { "the server could not parse the model's tool call" },
    done_reason = "stop", duration_ms = 0, unreadable = "the server could not parse the tool call: " .. http.shown(failure.words),
  }
end

local function attempt(self, request)
  while true do
    local ask = ask_of(self, request)
    local result, failure = exchange_once(self, ask, request)
    if result then return result end
    if failure.cause == "call_unparsed" and request.tools then return unparsed(failure) end
    if not adapt(self, ask, failure) then return nil, failure end
  end
end

local function learn_window(self, tokens)
  self.window, self.context_length = tokens, math.min(self.context_length, tokens)
end

--- Reads the context length of the model once it is loaded, which may be smaller than the one that was asked for.
local function read_window(self)
  self.looked = true
  local real = self.dialect.loaded_window and self.dialect.loaded_window(self.endpoint, self.model)
  if real and real > 0 and real < self.window then learn_window(self, real) end
end

--- Redacts a call's arguments. Returns whether they held a secret: then the text that the model wrote is not kept, for JSON's escapes
--- can hide a secret in it.
local function clean_call(call, schema)
  local before = json.encode(call.arguments)
  call.arguments = secret.clean(call.arguments, schema)
  local has_secret = json.encode(call.arguments) ~= before or secret.redact(call.written or "") ~= (call.written or "")
  if has_secret then call.written = nil end
  return has_secret
end

--- A reply without secrets. The names of tools, and of their arguments, are ours.
local function clean(result, tools)
  if not secrets_are_known() then return result end
  local by_name = {}
  for _, tool in ipairs(tools or {}) do by_name[tool.name] = tool end
  for _, call in ipairs(result.tool_calls) do
    local tool = by_name[call.name]
    local schema = tool and type(tool.parameters) == "table" and tool.parameters or {}
    if clean_call(call, schema) then result.said = nil end
    if not tool then call.name = secret.redact(call.name) end
  end
  return secret.clean(result, ours)
end

local MOST_UNREAD <const> = 2 -- replies with a call that nobody can read, after which calls are asked for as text

-- A token has fewer bytes than that of a text of each kind: what native.text.tokens says, times that.
local LEAST_OF_WORDS <const>, LEAST_OF_DENSE <const>, LEAST_OF_OTHER <const>, LEAST_OF_TOOLS <const> = 0.5, 0.4, 0.04, 0.4

--- Whether the server left the tools out of the prompt: it counted far fewer tokens than these messages and tools take.
local function tools_dropped(self, request, result)
  local count, tools = result.prompt_tokens, request.tools
  if not tools or self.supports_tools ~= nil or not count or count == 0 then return false end
  if #result.tool_calls > 0 then
    self.supports_tools = true
    return false
  end
  local least = 0
  for _, message in ipairs(request.messages) do
    local words, dense, other = text.tokens(message.content or "")
    least = least + words * LEAST_OF_WORDS + dense * LEAST_OF_DENSE + other * LEAST_OF_OTHER
  end
  local words, dense, other = text.tokens(schemas.tools(tools))
  return count < least + (words + dense + other) * LEAST_OF_TOOLS
end

-- Refusals for which the tools may be the cause: some templates and gateways cannot do with them and say so in words of their own.
local refusals <const> = { [400] = true, [422] = true, [500] = true, [501] = true }

local function try(self, request)
  return retry.run(self.policy, function() return attempt(self, request) end, self.on_wait)
end

--- The reply to a request whose tools are told as text, once, after another way did not do; nil where it does not do either.
local function try_as_text(self, request)
  local before = self.supports_tools
  self.supports_tools = false
  local result, failure = attempt(self, request)
  if not result and failure.code == "inference_unavailable" then self.supports_tools = before end
  return result, failure
end

--- The reply to a request, with its tools told as text where the server refuses them or leaves them out.
local function answered(self, request)
  local has_tools = request.tools and self.supports_tools ~= false
  local result, failure = try(self, request)
  if result and tools_dropped(self, request, result) then
    local other = try_as_text(self, request)
    if other then
      table.insert(other.notes, "the server left the tools out of the prompt; they are told as text")
      return other
    end
    self.supports_tools = true -- it answers like this only
  elseif failure and has_tools and failure.code == "inference_unavailable" and refusals[failure.status] then
    local other, second = try_as_text(self, request)
    if other or second.code ~= "inference_unavailable" then return other, second end
  end
  return result, failure
end

--- Counts the replies with a call that nobody could read. From the second one on the tools are told as text.
local function count_unread(self, request, result)
  if not request.tools or self.supports_tools == false or not result.unreadable or result.done_reason == "repetition" then return end
  self.unread = self.unread + 1
  if self.unread < MOST_UNREAD then return end
  self.supports_tools = false
  table.insert(result.notes, "calls as text could not be read again; from now on the tools are told as text")
end

---Asks the model. Its reply is without secrets, so that what is done is what is recorded.
---Transient failures are tried again, within the job's deadline. A context_cut is for the caller to answer with a shorter
---conversation: the prompt did not fit; session.context_length then is what is known of its window.
---Failures: inference_unavailable (with what it was in `cause`), context_cut, timeout, cancelled.
---@param request inference.request
---@return inference.reply?, inference.failure?
function session:chat(request)
  local result, failure = answered(self, request)
  if not result then
    if failure.context_length then learn_window(self, failure.context_length) end
    return nil, failure
  end
  if not self.looked then read_window(self) end
  count_unread(self, request, result)
  return clean(result, request.accepted or request.tools)
end

return session
