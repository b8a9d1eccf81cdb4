-- SPDX-License-Identifier: Apache-2.0
-- One conversation with one model. What an endpoint refuses is judged by sba.model.refusal; here is
-- what follows: the moves, by their names. A reply is asked for until it comes, or no move is left.

local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local refusal = require "sba.model.refusal"
local reply = require "sba.model.reply"
local retry = require "sba.util.retry"
local secret = require "sba.util.secret"
local secrets_are_known = require "native.secret".is_known
local text = require "native.text"
local tools_of = require "sba.model.tools"

-- Unreadable calls, after which calls are asked for as text; or replies in a row without one, of a
-- model whose server did not read its calls before. A forced call (tool_choice) is no way out:
-- llama.cpp and vLLM then wait for it over any number of words and blanks (ggml-org/llama.cpp
-- 27217), others refuse it to a model that thinks.
local MOST_UNREAD <const> = 2
-- Most bytes of a token, in scripts that a model knows well; the least share of the tools'
-- estimate.
local BYTES_OF_ASCII <const>, BYTES_OF_OTHER <const>, SHARE_OF_TOOLS <const> = 9, 25, 0.4

---@class model.session
---@field model string as the job names it
---@field context_length integer tokens for prompt and reply; the caller keeps it; shrinks if the
---server has fewer
---@field supports_tools? boolean nil: not known yet; false: calls come as text
---@field dialect model.dialect
---@field endpoint model.endpoint
---@field policy retry.policy
---@field on_wait? fun(failure: model.failure, seconds: number)
---@field on_text? fun(piece: string) the content as it comes; after a broken stream all of it again
---@field on_move fun(move: model.move, failure: model.failure) the next request is another one
---@field others string[] further allowed models, if the endpoint lists none
---@field num_ctx integer window of every request
---@field temperature? number nil: the server's own
---@field refused table<string, true> optional fields of a request
---@field mended table<string, integer> how often a tool was refused, by name
---@field most_tools? integer that the server takes
---@field system_first? boolean the system text stands in the user's first message
---@field thinking_field? string in which thinking came, and goes back
---@field may_think? boolean it did
---@field text_helped? boolean a refusal that nobody could explain went away when the tools were
---text
---@field longest_reply? integer tokens
---@field unread integer replies with an unreadable call
---@field without_call integer replies in a row
---@field calls_as_text? boolean its server did not read its calls, though it takes tools
---@field calls integer ids given here
---@field ids table<string, boolean> used
---@field written table<model.message, string> as JSON
local session = {}
session.__index = session

---@class model.message never changed once it was sent
---@field role "system"|"user"|"assistant"|"tool"
---@field content string
---@field thinking? string goes back as it came, and so does what stood beside a call (`extra`)
---@field thinking_parts? table[] as of model.reply
---@field said? string a whole reply with calls as text
---@field tool_calls? model.call[]
---@field tool_call_id? string of a result
---@field tool_name? string of a result

---@class model.tool
---@field name string of A-Za-z0-9_-, at most 64
---@field description string
---@field parameters table|string JSON Schema: with our own keywords, or JSON text
---@field whole? table the same with more arguments, for replies that are bound by it
---@field called? string[] models' other names
---@field exact? boolean of the gateway: a near name does not mean it
---@field is_mended? boolean its schema is in words

---@class model.request
---@field messages model.message[]
---@field tools? model.tool[] not empty; the same table each time: its text is made once
---@field accepted? model.tool[] default: tools
---@field json_schema? table of the content; not with tools
---@field status? string appended to the last message
---@field max_tokens? integer
---@field temperature? number nil: the session's, or 0 with a schema
---@field fit? fun(sizes: model.sizes, failure: model.failure): model.request?, model.failure? a
---request that is shorter, or asks for a shorter reply; nil: there is none

---@class model.ask what is sent, and what sba.model.refusal wants to know of it
---@field messages string[] as JSON
---@field tools? model.tool[] as tools, not as text
---@field schema? string of the reply, as JSON
---@field max_tokens? integer
---@field temperature? number
---@field fields table<string, any> of the body, set by the dialect: the optional ones may be left out
---@field members table<string, true> of messages, which may be left out too
---@field has_system? boolean a message of the system, first
---@field thinking_field? string a member that the server had sent, or may have
---@field may_fit boolean the conversation may be made to fit: a shorter one, or a shorter reply
---@field others string[] further models that may be asked
---@field tried table<string, true|integer> for this reply: acts; how often the server said the "same"

---@class model.trial to get one reply
---@field session model.session
---@field request model.request the last one
---@field ask? model.ask as which it was sent
---@field tried table<string, true|integer> as of model.ask
---@field number integer waits
---@field first? model.failure for which it is asked as text, although tools may be taken
---@field before? boolean what was known of that
---@field is_explained? boolean its words spoke of tools
---@field last_said? string of the last failure
---@field used? table of the last request that was answered in part
---@field thrown_away? model.reply of a model that was not shown its tools

local function weak() return setmetatable({}, { __mode = "k" }) end

---@param fields table dialect, endpoint, model, others, context_length, supports_tools, policy,
---on_wait, on_text, on_move
---@return model.session
function session.new(fields)
  fields.num_ctx, fields.written = fields.context_length, weak()
  fields.unread, fields.without_call, fields.calls = 0, 0, 0
  fields.refused, fields.mended, fields.ids = {}, {}, {}
  fields.on_move = fields.on_move or function() end
  return setmetatable(fields, session)
end

-- The request

local function joined(message, more)
  local copy = json.copy(message)
  copy.content = message.content and message.content .. "\n\n" .. more or more
  return copy
end

-- Many servers refuse two messages of the user in a row, and one after a tool's result.
local function alternating(self, messages, status)
  local result, role = {}, nil -- of the last one
  for _, message in ipairs(messages) do
    local is_system_first = role == "system" and self.system_first
    local may_join = is_system_first or role == "user" or role == "tool"
    if message.role == "user" and may_join then
      local last = joined(result[#result], message.content or "")
      if is_system_first then last.role = "user" end
      result[#result], role = last, last.role
    else
      result[#result + 1], role = message, message.role
    end
  end
  if status then result[#result] = joined(result[#result], status) end
  return result
end

local ANYTHING <const> = { type = "object" }

-- Tools as they are shown here: what the server refused by its name has its schema in words, and at
-- the second time is left out. Where there are more than it takes, the last ones are left out, but
-- for the very last, which is the one that ends the job.
local function shown_tools(self, tools)
  local most = self.most_tools or #tools
  if most < #tools then
    local last = tools[#tools]
    tools = table.move(tools, 1, most - 1, 1, {})
    tools[most] = last
  end
  if not next(self.mended) then return tools end
  local shown, told = {}, "%s The arguments fit this JSON Schema: %s"
  for _, tool in ipairs(tools) do
    local times = self.mended[tool.name] or 0
    if times == 1 then
      local words = told:format(tool.description or "", tools_of.parameters(tool))
      tool = { name = tool.name, exact = tool.exact, description = words, parameters = ANYTHING, is_mended = true }
    end
    if times <= 1 then shown[#shown + 1] = tool end
  end
  return shown
end

---@param trial model.trial
---@return model.ask
local function ask_of(trial)
  local self, request = trial.session, trial.request
  local messages, tools = request.messages, request.tools
  local refused, most = self.refused, request.max_tokens
  local ask = {
    messages = {}, members = {}, may_fit = request.fit ~= nil, others = self.others,
    thinking_field = self.thinking_field or self.may_think and "reasoning_content",
    tried = trial.tried, max_tokens = most and math.min(most, self.longest_reply or most),
  }
  if tools and self.supports_tools == false then
    messages, ask.schema = tools_of.messages(messages, tools), tools_of.schema(tools)
  elseif tools then
    ask.tools = shown_tools(self, tools)
  elseif request.json_schema then
    ask.schema = json.encode(request.json_schema)
  end
  if refused.format or refused.response_format then ask.schema = nil end
  ask.temperature = request.temperature or self.temperature
  if ask.schema then ask.temperature = request.temperature or 0 end
  local members = ask.members
  if self.thinking_field then members[self.thinking_field] = true end
  for i, message in ipairs(alternating(self, messages, request.status)) do
    local written = self.written[message] or self.dialect.message(message, self)
    self.written[message], ask.messages[i] = written, written
    if message.role == "system" then ask.has_system = not self.system_first end
    if message.thinking_parts then members.reasoning_details = true end
    if message.content == "" and message.tool_calls then members.content = true end
  end
  for name in pairs(refused) do members[name] = nil end
  return ask
end

-- One exchange

local function estimate(into, ask, builder)
  local content, thought = builder:texts()
  local sum = ask.tools and text.tokens(tools_of.json(ask.tools)) or 0
  for _, message in ipairs(ask.messages) do sum = sum + text.tokens(message) end
  into.prompt_tokens = sum
  into.completion_tokens = text.tokens(content) + text.tokens(thought)
  return into
end

-- Where no other try follows, what was used until then counts.
local function with_use(failure, ask, builder, started)
  local is_over = failure.code == "timeout" or failure.code == "cancelled"
  if not is_over and builder.size == 0 then return failure end
  failure.used = estimate({ duration_ms = interrupt.elapsed_ms(started) }, ask, builder)
  failure.unanswered = failure.code == "timeout" and builder.size == 0
  return failure
end

-- Sets what was asked: trial.ask.
local function exchange_once(trial)
  local self, request, started = trial.session, trial.request, interrupt.now()
  local ask, dialect = ask_of(trial), self.dialect
  local tools = request.accepted or request.tools
  local is_json = ask.schema ~= nil or tools ~= nil and not ask.tools
  local builder = reply.new { on_text = self.on_text, tools = tools, is_json = is_json }
  trial.ask = ask
  local exchange <close>, failure = self.endpoint:send(dialect.path, dialect.accept, dialect.body(self, ask))
  if exchange then failure = select(2, self.endpoint:read_reply(exchange, builder, dialect.add)) end
  self.thinking_field = builder.thinking_field or self.thinking_field
  local repeated = failure and failure.repeated
  -- Ollama breaks off a stream that repeats a token, and does not say so.
  if failure and failure.cause == "cut_off" then repeated = builder.watch:at_end() end
  if failure and not repeated then return nil, with_use(failure, ask, builder, started) end
  if builder:has_no_room(ask.max_tokens) and request.fit and not trial.tried.no_room then
    trial.tried.no_room = true -- the next such reply counts as what it is
    local why = { message = "the prompt left no room for a reply" }
    trial.request = request.fit({ prompt = builder.prompt_tokens }, why) or request
    exchange:close()
    return exchange_once(trial)
  end
  local result = repeated and builder:stopped(repeated, self) or builder:finish(self)
  if ask.tools and #result.tool_calls > 0 then self.calls_as_text = #builder.calls == 0 end
  if builder.model ~= self.model then result.response_model = builder.model end
  result.duration_ms, result.thrown_away = interrupt.elapsed_ms(started), trial.thrown_away
  if not result.prompt_tokens then estimate(result, ask, builder).is_estimated = true end
  return result
end

-- The moves

-- What a move changes of the session; then the request is another one.
local changes <const> = {
  drop = function(self, move) self.refused[move.field] = true end,
  send_back = function(self, move) self.thinking_field, self.refused[move.field] = move.field, nil end,
  bound = function(self, move) self.longest_reply = move.most end,
  fewer_tools = function(self, move) self.most_tools = move.most end,
  system_first = function(self) self.system_first = true end,
  next_model = function(self) self.model = table.remove(self.others, 1) end,
  mend = function(self, move)
    for _, name in ipairs(move.tools) do self.mended[name] = (self.mended[name] or 0) + 1 end
  end,
  text = function(self, move, trial, failure)
    trial.first, trial.before, trial.is_explained = failure, self.supports_tools, move.rule == "tools"
    self.supports_tools = false
  end,
}

-- The other moves. Each returns true: ask again; a reply; or nil and the failure.
local moves <const> = {}

-- A server that could not parse a call did answer: the model is told, unless its words are there to
-- be read.
function moves.tell(trial, move, failure)
  trial.session.on_move(move, failure)
  local builder = reply.new { tools = trial.request.accepted or trial.request.tools }
  -- Groq sends what the model wrote.
  builder:content(failure.details.failed_generation)
  builder:ended "stop"
  local result = builder:finish(trial.session)
  result.duration_ms = 0
  if #result.tool_calls > 0 then return result end
  local words = http.shown(failure.words)
  result.content, result.unreadable = "", "the server could not parse the tool call: " .. words
  result.is_like_a_call = true
  return result
end

function moves.wait(trial, _, failure)
  trial.number, failure.transient = trial.number + 1, true
  local self = trial.session
  local ok, ended_by = retry.pause(self.policy, trial.number, failure, self.on_wait)
  if not ok then ended_by.unanswered = ended_by.code ~= "cancelled" end
  return ok, ended_by
end

moves.again = moves.wait

local CAUSES <const> = { quota = true, model_missing = true }

function moves.give_up(_, move, failure)
  if CAUSES[move.rule] then failure.cause = move.rule end
  if move.rule == "size" then failure.code, failure.context_length = "context_cut", move.sizes.window end
  return nil, failure
end

-- As text it is refused as well, so the tools were not what is refused. Returns the first failure.
local function without_text(trial, move, failure)
  local first = trial.first
  if not first or not failure.said then return nil end
  if failure.said ~= first.said and move.act ~= "give_up" and move.act ~= "again" then return nil end
  trial.first, trial.session.supports_tools = nil, trial.before
  return first
end

-- Judges a failure, and does what follows from it; returns as a move does.
local function judged(trial, failure)
  local move = refusal.judge(failure, trial.ask)
  local first = without_text(trial, move, failure)
  if first and not first.transient then return nil, first end
  if first then return moves.wait(trial, move, first) end
  trial.tried[move.act] = true
  local change = changes[move.act]
  if not change then return moves[move.act](trial, move, failure) end
  change(trial.session, move, trial, failure)
  trial.session.written = weak()
  trial.session.on_move(move, failure)
  return true
end

-- Where the size is only a guess and nothing can be made shorter, something else is tried.
function moves.fit(trial, move, failure)
  local request, too_long = trial.request.fit(move.sizes, failure)
  trial.request = request or trial.request
  if not request and move.sizes.is_a_guess then return judged(trial, failure) end
  if request then return true end
  return nil, too_long
end

-- Whether the server counted far fewer tokens than these messages and tools take.
local function tools_dropped(self, trial, result)
  local request, tools = trial.request, trial.ask.tools
  if not tools or self.supports_tools ~= nil or result.is_estimated then return false end
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
  return (result.prompt_tokens or math.huge) < least
end

-- Asks until there is a reply, or no move is left.
local function answered(self, request)
  local tried = { again = self.text_helped, fit = self.text_helped, same = 0 }
  local trial = { session = self, request = request, tried = tried, number = 0 }
  while true do
    local result, failure = exchange_once(trial)
    if result and tools_dropped(self, trial, result) then
      self.supports_tools, trial.thrown_away = false, result
      result, failure = exchange_once(trial)
    end
    -- Why a refusal went away as text may stay unknown: the next request has tools again, as this one
    -- had. If that is refused too, its successors are text at once.
    if result and trial.first and not trial.is_explained then
      if not self.text_helped then self.supports_tools = trial.before end
      self.text_helped = true
    end
    if result then return result end
    trial.used = failure.used or trial.used
    if failure.said ~= trial.last_said then tried.same = 0 end
    tried.same, trial.last_said = tried.same + 1, failure.said
    local goes_on, ended_by = judged(trial, failure)
    if ended_by then ended_by.used, ended_by.thrown_away = ended_by.used or trial.used, trial.thrown_away end
    if goes_on ~= true then return goes_on, ended_by end
  end
end

-- Counts replies with a call that nobody can read.
local function count_unread(self, request, result)
  if not request.tools or self.supports_tools == false then return end
  local is_unread = result.unreadable ~= nil and result.done_reason ~= "repetition"
  for _, call in ipairs(result.tool_calls) do is_unread = is_unread or call.mistake ~= nil end
  if is_unread then self.unread = self.unread + 1 end
  self.without_call = #result.tool_calls == 0 and self.without_call + 1 or 0
  local has_none = self.calls_as_text and self.without_call >= MOST_UNREAD
  if self.unread >= MOST_UNREAD or has_none then self.supports_tools = false end
end

local unchanged <const> = { enum = {} }
local own_fields <const> = { properties = { tool_calls = unchanged, done_reason = unchanged } }

-- The names of tools and their arguments are ours. The text of a call that held a secret goes:
-- escapes can hide one in it.
local function clean(result, tools)
  if not secrets_are_known() then return result end
  local by_name = {}
  for _, tool in ipairs(tools or {}) do by_name[tool.name] = tool end
  for _, call in ipairs(result.tool_calls) do
    local tool, written = by_name[call.name], call.written or ""
    local before = json.encode(call.arguments)
    call.arguments = secret.clean(call.arguments, json.table_of(tool and tool.parameters))
    if json.encode(call.arguments) ~= before or secret.redact(written) ~= written then
      call.written, result.said = nil, nil
    end
  end
  return secret.clean(result, own_fields)
end

---Asks the model, within the job's deadline. The reply is without secrets, so that what is done is
---what is recorded. Failures: inference_unavailable, timeout, cancelled; context_cut: shorten the
---conversation to context_length.
---@param request model.request
---@return model.reply?, model.failure?
function session:chat(request)
  local result, failure = answered(self, request)
  if not result then
    self.context_length = math.min(self.context_length, failure.context_length or math.huge)
    return nil, failure
  end
  self.may_think = self.may_think or result.thinking ~= ""
  count_unread(self, request, result)
  return clean(result, request.accepted or request.tools)
end

return session
