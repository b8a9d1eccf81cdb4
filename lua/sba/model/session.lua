-- SPDX-License-Identifier: Apache-2.0
-- One conversation with one model: tries transient failures again, and leaves out features once the endpoint refused them.

local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local reply = require "sba.model.reply"
local retry = require "sba.util.retry"
local secret = require "sba.util.secret"
local secrets_are_known = require "native.secret".is_known
local text = require "native.text"
local tools_of = require "sba.model.tools"

local MOST_UNREAD <const> = 2 -- unreadable calls, after which calls are asked for as text
-- Most bytes of a token, in scripts that a model knows well; and the least share of the tools' estimate.
local BYTES_OF_ASCII <const>, BYTES_OF_OTHER <const>, SHARE_OF_TOOLS <const> = 9, 25, 0.4

---@class inference.session
---@field model string as the job names it
---@field context_length integer tokens for prompt and reply; the caller keeps it; shrinks if the server has fewer
---@field supports_tools? boolean nil: not known yet; false: calls come as text
---@field dialect inference.dialect
---@field endpoint inference.endpoint
---@field policy retry.policy
---@field on_wait? fun(failure: inference.failure, seconds: number)
---@field others? string[] further allowed models, if the endpoint lists none
---@field num_ctx integer window of every request
---@field refused table<string, true> by cause
---@field longest_reply? integer tokens
---@field unread integer replies with an unreadable call
---@field calls integer ids given here
---@field ids table<string, boolean> used
---@field written table<inference.message, string> as JSON
local session = {}
session.__index = session

---@class inference.message never changed once it was sent
---@field role "system"|"user"|"assistant"|"tool"
---@field content string
---@field thinking? string
---@field said? string a whole reply with calls as text
---@field tool_calls? inference.call[]
---@field tool_call_id? string of a result
---@field tool_name? string of a result

---@class inference.tool
---@field name string of A-Za-z0-9_-, at most 64
---@field description string
---@field parameters table|string JSON Schema: with our own keywords, or JSON text
---@field called? string[] models' other names
---@field exact? boolean a near name does not mean it

---@class inference.request
---@field messages inference.message[]
---@field tools? inference.tool[] not empty; the same table each time: its text is made once
---@field accepted? inference.tool[] default: tools
---@field json_schema? table of the content; not with tools
---@field status? string appended to the last message
---@field max_tokens? integer
---@field tool_choice? "required"
---@field temperature? number nil: the server's own, or 0 with a schema
---@field on_text? fun(piece: string) the content as it comes; after a broken stream all of it again

---@class inference.ask all texts are JSON
---@field messages string[]
---@field tools? string
---@field tool_choice? "required"
---@field schema? string
---@field max_tokens? integer
---@field temperature? number

---@param fields table dialect, endpoint, model, others, context_length, supports_tools, policy, on_wait
---@return inference.session
function session.new(fields)
  fields.num_ctx, fields.refused, fields.unread = fields.context_length, {}, 0
  fields.calls, fields.ids, fields.written = 0, {}, setmetatable({}, { __mode = "k" })
  return setmetatable(fields, session)
end

local function joined(message, more)
  local copy = {}
  for name, value in pairs(message) do copy[name] = value end
  copy.content = (message.content or "") .. "\n\n" .. more
  return copy
end

-- Many chat templates refuse two user messages in a row, and one after a tool's result.
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

local function ask_of(self, request)
  local ask, messages, tools = { messages = {} }, request.messages, request.tools
  ask.max_tokens = request.max_tokens and math.min(request.max_tokens, self.longest_reply or math.huge)
  if tools and self.supports_tools == false then
    messages, ask.schema = tools_of.messages(messages, tools), tools_of.schema(tools)
  elseif tools then
    ask.tools, ask.tool_choice = tools_of.json(tools), not self.refused.tool_choice_unsupported and request.tool_choice or nil
  elseif request.json_schema then
    ask.schema = json.encode(request.json_schema)
  end
  if self.refused.schema_unsupported then ask.schema = nil end
  if not self.refused.temperature_unsupported then ask.temperature = request.temperature or ask.schema and 0 or nil end
  for i, message in ipairs(alternating(messages, request.status)) do
    self.written[message] = self.written[message] or self.dialect.message(message)
    ask.messages[i] = self.written[message]
  end
  return ask
end

local function estimate(into, ask, builder)
  local content, thought = builder:texts()
  into.prompt_tokens, into.completion_tokens = text.tokens(ask.tools or ""), text.tokens(content) + text.tokens(thought)
  for _, message in ipairs(ask.messages) do into.prompt_tokens = into.prompt_tokens + text.tokens(message) end
  return into
end

local function exchange_once(self, ask, request)
  local dialect, started, builder = self.dialect, interrupt.now(), reply.new(request.on_text)
  local function duration_ms() return math.floor((interrupt.now() - started) * 1000 + 0.5) end
  local exchange <close>, failure = self.endpoint:send(dialect.path, dialect.accept, dialect.body(self, ask))
  local outcome
  if exchange then outcome, failure = dialect.read(self.endpoint, exchange, builder) end
  local repeated = failure and (failure.repeated or failure.cause == "cut_off" and builder:repeated_at_end())
  if failure and not repeated then
    local is_over = failure.code == "timeout" or failure.code == "cancelled"
    failure.used = is_over and estimate({ duration_ms = duration_ms() }, ask, builder) or nil
    return nil, failure
  end
  local tools = request.accepted or request.tools
  local result = repeated and builder:stopped(repeated) or builder:finish(outcome, tools, tools and not ask.tools, self)
  result.duration_ms = duration_ms()
  if not result.prompt_tokens then estimate(result, ask, builder).is_estimated = true end
  return result
end

local remedies = {} -- by cause; each returns whether it changed anything

function remedies.tools_unsupported(self, ask)
  if not ask.tools then return false end
  self.supports_tools = false
  return true
end

function remedies.max_tokens_too_large(self, ask, failure)
  local most = tonumber(failure.words:match "at most (%d+)" or failure.words:match "> (%d+)")
  self.longest_reply = math.tointeger(most) or (ask.max_tokens or 0) // 2
  return self.longest_reply > 0 and self.longest_reply < (ask.max_tokens or 0)
end

function remedies.model_missing(self)
  local other = self.others and table.remove(self.others, 1)
  self.model = other or self.model
  return other ~= nil
end

-- Returns whether the request is now another one.
local function adapt(self, ask, failure)
  local cause = failure.cause
  if remedies[cause] then return remedies[cause](self, ask, failure) end
  if not cause:find("_unsupported$") or self.refused[cause] then return false end
  self.refused[cause] = true
  return true
end

-- A server that could not parse a call did answer: the model is told.
local function unparsed(failure)
  return {
    content = "", thinking = "", tool_calls = json.array {}, done_reason = "stop", duration_ms = 0,
    unreadable = "the server could not parse the tool call: " .. http.shown(failure.words),
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

-- Whether the server counted far fewer tokens than these messages and tools take.
local function tools_dropped(self, request, result)
  local tools = request.tools
  if not tools or self.supports_tools ~= nil or result.is_estimated or not result.prompt_tokens then return false end
  if #result.tool_calls > 0 then
    self.supports_tools = true
    return false
  end
  local least = text.tokens(tools_of.json(tools)) * SHARE_OF_TOOLS
  for _, message in ipairs(request.messages) do
    local content = message.content or ""
    local _, other = content:gsub("[\x80-\xFF]", "%0")
    least = least + (#content - other) / BYTES_OF_ASCII + other / BYTES_OF_OTHER
  end
  return result.prompt_tokens < least
end

-- Some templates and gateways refuse tools in words of their own.
local refusals <const> = { [400] = true, [422] = true, [500] = true, [501] = true }

-- Tries once with the tools as text if the server drops or may refuse them.
local function answered(self, request)
  local before, has_tools = self.supports_tools, request.tools and self.supports_tools ~= false
  local result, failure = retry.run(self.policy, function() return attempt(self, request) end, self.on_wait)
  local is_refused = failure and has_tools and refusals[failure.status] and failure.code == "inference_unavailable"
  local is_dropped = result and tools_dropped(self, request, result)
  if not is_refused and not is_dropped then return result, failure end
  self.supports_tools = false
  local other, second = attempt(self, request)
  if other or is_refused and second.code ~= "inference_unavailable" then return other, second end
  self.supports_tools = is_dropped or before -- it answers like this only
  return result, failure
end

local function count_unread(self, request, result)
  if not request.tools or self.supports_tools == false or not result.unreadable or result.done_reason == "repetition" then return end
  self.unread = self.unread + 1
  if self.unread >= MOST_UNREAD then self.supports_tools = false end
end

local own_fields <const> = { properties = { tool_calls = { enum = {} }, done_reason = { enum = {} } } }

-- The names of tools and their arguments are ours. The text of a call that held a secret goes: escapes can hide one in it.
local function clean(result, tools)
  if not secrets_are_known() then return result end
  local by_name = {}
  for _, tool in ipairs(tools or {}) do by_name[tool.name] = tool end
  for _, call in ipairs(result.tool_calls) do
    local tool, before = by_name[call.name], json.encode(call.arguments)
    call.arguments = secret.clean(call.arguments, tool and type(tool.parameters) == "table" and tool.parameters or {})
    if json.encode(call.arguments) ~= before or secret.redact(call.written or "") ~= (call.written or "") then
      call.written, result.said = nil, nil
    end
    if not tool then call.name = secret.redact(call.name) end
  end
  return secret.clean(result, own_fields)
end

---Asks the model, within the job's deadline. The reply is without secrets, so that what is done is what is recorded.
---Failures: inference_unavailable, timeout, cancelled; context_cut: shorten the conversation to context_length.
---@param request inference.request
---@return inference.reply?, inference.failure?
function session:chat(request)
  local result, failure = answered(self, request)
  if not result then
    self.context_length = math.min(self.context_length, failure.context_length or math.huge)
    return nil, failure
  end
  count_unread(self, request, result)
  return clean(result, request.accepted or request.tools)
end

return session
