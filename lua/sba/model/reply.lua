-- SPDX-License-Identifier: Apache-2.0
-- Puts a reply together from the parts that a server sends, whatever its API. A reply is open until
-- its end was seen, then whole; or broken, and then nothing of it is done. This is decided here and
-- nowhere else.

local calls = require "sba.model.calls"
local find = require "sba.model.text_calls.find"
local has = require "sba.util.said".has
local humanize = require "sba.util.humanize"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local json_tolerant = require "sba.util.json_tolerant"
local lpeg = require "lpeg"
local repetition = require "sba.model.repetition"
local text = require "native.text"

local reply = {}
reply.__index = reply

-- Bytes of content, thinking and arguments.
local LIMIT <const> = 4 * 1024 * 1024
-- Bytes that each call counts: a model gone astray begins thousands.
local LEAST_CALL <const> = 64
-- Calls that are carried out; each wants an answer in the conversation.
local MOST_CALLS <const> = 64
local LEAST_REPEATED <const> = 1024 -- bytes that a repetition fills
-- The same in arguments: a file may have many equal lines.
local LEAST_REPEATED_ARGUMENTS <const> = 16384
-- Bytes behind what is whole: some models write them for ever.
local MOST_BLANKS <const> = 128
-- Blanks between two looks whether something is whole.
local LOOK_AGAIN <const> = 4096
-- Looks whether a call's arguments are whole, or a tool's result is made up.
local MOST_LOOKS <const> = 256
local OPEN_BRACE <const> = 0x7B
local LONGEST_NAME <const> = 256 -- bytes of a model's
-- Bytes of how a tool's result begins, with a blank line before.
local LONGEST_MARK <const> = 64
local MADE_UP <const> = "it goes on with a tool's result, which only the tool can give. "
  .. "Call the tool, and wait for its result"
local MOST_NESTED <const> = 8 -- levels of a content in parts
-- Members of a part that hold its text.
local TEXTS <const> = { "text", "thinking", "refusal", "content" }

---@class model.reply plain, for journal and replay
---@field content string without thinking
---@field thinking string
---@field thinking_parts? table[] beside it, which go back as they came
---@field tool_calls model.call[] a JSON array; empty after "length"
---@field said? string a whole reply with calls as text
---@field unreadable? string for the model: why no call could be read where one was due or seems
---meant
---@field is_like_a_call? boolean unreadable, of a model with tool calling
---@field done_reason string "stop", "length", "tool_calls", "content_filter", "repetition" (ours),
---...
---@field prompt_tokens? integer
---@field cached_tokens? integer of these, those that the server did not read again
---@field completion_tokens? integer
---@field is_estimated? boolean the server did not count the tokens
---@field duration_ms integer of the request that was answered
---@field response_model? string who answered, where the server names another model than was asked
---for
---@field thrown_away? model.reply an earlier one, which counts as well

---@class model.part of a call, as it came: of any type
---@field index? any
---@field id? any
---@field name? any
---@field arguments? any a fragment of JSON, or a table
---@field text? string arguments that are a table, as they were written
---@field extra? any what stands beside, and goes back as it came

---@class model.builder
---@field watch table of sba.model.repetition: of the texts
---@field state "open"|"whole"|"broken"
---@field is_over boolean nothing more is to be read
---@field ended_at? number when it became whole, on the monotonic clock
---@field done_reason? string
---@field failure? native.failure why it is broken
---@field thinking_field? string the member that had the thinking
---@field prompt_tokens? integer
---@field cached_tokens? integer
---@field completion_tokens? integer
---@field model? string that the server names

---@param wanted? { on_text?: fun(piece: string), tools?: model.tool[], is_json?: boolean } is_json:
---asked for so
---@return model.builder
function reply.new(wanted)
  return setmetatable({
    wanted = wanted or {}, state = "open", is_over = false,
    said = {}, thoughts = {}, parts = json.array {}, calls = {}, by_index = {}, by_id = {},
    size = 0, blanks = 0, last = "", looks = 0, watch = repetition.new(LEAST_REPEATED),
  }, reply)
end

-- The state

---Nothing of the reply is done. The first failure stays.
---@param failure native.failure
function reply:breaks(failure)
  self.state, self.is_over, self.failure = "broken", true, self.failure or failure
end

local TOO_LONG <const> = { "max_", "context", "token_limit" }
local FAILED <const> = { "error", "fail", "abort", "cancel", "interrupt", "insufficient" }

---@param reason any why the server says that the reply is at its end; no text, or an empty one,
---says nothing
function reply:ended(reason)
  if type(reason) ~= "string" or reason == "" or self.state ~= "open" then return end
  local said = reason:lower()
  if has(said, FAILED) then
    local message = "the reply ended with " .. humanize.quoted(reason)
    return self:breaks { code = "broken", message = message, transient = true }
  end
  if has(said, TOO_LONG) then reason = "length" end
  if has(said, { "malformed" }) then self.unread = ("the server could not read the call (%s)"):format(reason) end
  self.state, self.done_reason, self.ended_at = "whole", reason, interrupt.now()
end

local function arguments_of(call)
  if #call.pieces == 0 then return call.given end
  call.pieces = { table.concat(call.pieces) }
  return call.pieces[1]
end

-- A server may say the name with every fragment: their JSON is not read again and again without
-- end.
local function is_whole(call)
  local given = arguments_of(call)
  if type(given) ~= "string" then return given ~= nil end
  call.looks = (call.looks or 0) + 1
  if call.looks > MOST_LOOKS or text.trim(given):byte() ~= OPEN_BRACE then return false end
  return json.is_object(json_tolerant.decode(given))
end

local function has_whole_calls(self)
  for _, call in ipairs(self.calls) do
    -- This is asked at what may be the end, not with every fragment.
    call.looks = nil
    if not is_whole(call) then return false end
  end
  return #self.calls > 0
end

local string = lpeg.P '"' * (lpeg.P "\\" * 1 + (1 - lpeg.S '"\\')) ^ 0 * '"'
local without_strings = lpeg.Cs((string / "" + 1) ^ 0)

local function count(content, pattern)
  return select(2, content:gsub(pattern, "")) -- bounded: nothing repeats
end

-- Whether a text that cannot be read as a call is in the middle of a code block, of JSON, or of a
-- parameter.
local function is_open(content)
  local bare = lpeg.match(without_strings, content)
  if count(content, "```") % 2 == 1 or count(bare, "[{%[]") > count(bare, "[}%]]") then return true end
  return count(bare, "<[pa][ar][rg][a_]") > count(bare, "</[pa][ar][rg][a_]") -- <param, <arg_
end

-- Whether a text, or the calls in it, could be at their end.
local function is_whole_text(self, content, thought)
  local wanted = self.wanted
  if wanted.is_json then
    if wanted.tools then return find.read(content, wanted.tools, thought) ~= nil end
    return json_tolerant.decode(content) ~= nil
  end
  if wanted.tools and find.calls(content, wanted.tools, thought) then return true end
  return content:find("%S") ~= nil and not is_open(content)
end

---The stream's own mark of its end: what is whole before it counts, though no reason was given.
function reply:marked_end()
  self.is_over = true
  if has_whole_calls(self) then return self:ended "tool_calls" end
  local content, thought = self:told_apart()
  if #self.calls == 0 and (content .. thought):find "%S" then self:ended "stop" end
end

-- Blanks behind what is whole end the reply.
local function ends_in_blanks(self, holder, piece, is_complete)
  local kept = #text.trim_end(piece)
  holder.blanks = kept == 0 and holder.blanks + #piece or #piece - kept
  if holder.blanks <= MOST_BLANKS or holder.blanks < (holder.look_at or 0) then return end
  holder.look_at = holder.blanks + LOOK_AGAIN
  if not is_complete() then return end
  self.is_over = true
  self:ended(#self.calls > 0 and "tool_calls" or "stop")
end

-- Texts

local function grow(self, size, watch, piece)
  local repeated = watch and watch:add(piece)
  self.size = self.size + size
  if repeated then
    local message, in_call = "repeats one text over and over", watch ~= self.watch
    self:breaks { code = "repeats", message = message, repeated = repeated, in_call = in_call }
  elseif self.size > LIMIT then
    self:breaks { code = "too_large", message = ("sent a reply of more than %d bytes"):format(LIMIT) }
  end
end

---@return string content, string thought so far
function reply:texts() return table.concat(self.said), table.concat(self.thoughts) end

---@return string content without a tool's result that the model made up, and what follows it
---@return string thought also the thinking that the server left in the content
---@return boolean? has_made_up
function reply:told_apart()
  local said, thoughts = self:texts()
  local content, thought = find.thinking(said)
  local at = self.wanted.tools and find.result(content)
  local has_made_up = at and not is_open(content:sub(1, at - 1))
  return has_made_up and content:sub(1, at - 1) or content, thoughts .. thought, has_made_up
end

-- Content and thinking are watched as one text: a repetition is in one of them.
local function add_text(self, list, piece)
  list[#list + 1] = piece
  grow(self, #piece, self.watch, piece)
end

-- Behind a result that the model made up it goes on as if it had seen one. The whole text is not
-- read again and again without end.
local function ends_in_result(self, piece)
  self.last = (self.last .. piece):sub(-LONGEST_MARK - #piece)
  if self.looks == MOST_LOOKS or not find.result(self.last) then return end
  self.looks = self.looks + 1
  local _, _, has_made_up = self:told_apart()
  if not has_made_up then return end
  self.is_over = true
  self:ended "stop"
end

local function add_content(self, piece)
  if piece == "" then return end
  if self.wanted.on_text then self.wanted.on_text(piece) end
  add_text(self, self.said, piece)
  if self.wanted.tools then ends_in_result(self, piece) end
  ends_in_blanks(self, self, piece, function()
    return has_whole_calls(self) or #self.calls == 0 and is_whole_text(self, self:told_apart())
  end)
end

-- A text, or parts: {"type": "text", "text": "..."}, {"type": "thinking", "thinking": [...]}.
local function each_text(value, use, in_thought, depth)
  if type(value) == "string" then return use(value, in_thought) end
  if type(value) ~= "table" or depth > MOST_NESTED then return end
  for _, part in ipairs(value) do each_text(part, use, in_thought, depth + 1) end
  in_thought = in_thought or value.type == "thinking" or value.type == "reasoning"
  for _, name in ipairs(TEXTS) do each_text(value[name], use, in_thought, depth + 1) end
end

---@param value any a text or parts
function reply:content(value)
  each_text(value, function(piece, in_thought)
    if in_thought then add_text(self, self.thoughts, piece) else add_content(self, piece) end
  end, false, 0)
end

---@param value any a text or parts
---@param field? string the member that had it, if it is to go back so
function reply:thinking(value, field)
  each_text(value, function(piece)
    if piece ~= "" then self.thinking_field = field or self.thinking_field end
    add_text(self, self.thoughts, piece)
  end, true, 0)
end

---Parts of the thinking that nobody can read, as a router has them. It wants them back.
---@param list any
function reply:thinking_parts(list)
  for _, part in ipairs(json.table_of(list)) do
    if json.given(json.table_of(part).data) then
      self.parts[#self.parts + 1] = part
      grow(self, #json.encode(part))
    end
  end
end

-- Calls

local function filled(value)
  if type(value) == "string" and value ~= "" then return value end
end

local function is_other(call, id, name)
  local has_other_id = id and call.id and call.id ~= id
  return has_other_id or call.name ~= name or is_whole(call)
end

-- Some servers send a name in pieces, before any arguments; the next one goes on ("read", "_file"),
-- or says all again ("read", "read_file"). Returns the whole name; nil: it is no such piece.
local function whole_name(call, piece, tools)
  local begun, whole = call.name, nil
  if not begun or not piece or call.size > 0 or call.given then return nil end
  for _, tool in ipairs(tools) do
    local is_whole_piece = tool.name == piece and piece:sub(1, #begun) == begun
    if tool.name == begun then return nil end
    if is_whole_piece or tool.name == begun .. piece then whole = tool.name end
  end
  return whole
end

-- By index, else by id, else the last one, also under another index while that one's arguments are
-- not whole. A new id, or a new name, begins a new call: some servers give each the index 0, or no
-- id. A name may also be said again with each fragment, until the arguments are whole.
local function call_for(self, index, id, name)
  local last = self.calls[#self.calls]
  local whole = whole_name(last or {}, name, self.wanted.tools or {})
  local call = self.by_index[index or ""] or self.by_id[id or ""]
  local is_tail = not call and not id and not name and last and not (index and is_whole(last))
  if is_tail then call = last end
  if whole then
    call, last.name = last, whole
  elseif not call or name and call.name and is_other(call, id, name) then
    local watch = repetition.new(LEAST_REPEATED_ARGUMENTS)
    call = { pieces = {}, size = 0, blanks = 0, watch = watch }
    self.calls[#self.calls + 1] = call
    grow(self, LEAST_CALL)
  end
  if index then self.by_index[index] = call end
  if id then self.by_id[id] = call end
  return call
end

-- Some servers send all that there is so far with each fragment. In JSON nothing that begins with a
-- brace can begin anew behind it.
local function is_said_again(call, fragment)
  if call.size < 2 or #fragment < call.size then return false end
  local before = arguments_of(call)
  return before:byte() == OPEN_BRACE and fragment:sub(1, call.size) == before
end

local function add_fragment(self, call, fragment)
  if is_said_again(call, fragment) then fragment = fragment:sub(call.size + 1) end
  call.pieces[#call.pieces + 1], call.size = fragment, call.size + #fragment
  grow(self, #fragment, call.watch, fragment)
  ends_in_blanks(self, call, fragment, function() return is_whole(call) end)
end

---@param part model.part
function reply:call(part)
  local index, id, name = math.tointeger(part.index), filled(part.id), filled(part.name)
  local call = call_for(self, index, id, name)
  call.id, call.name, call.extra = call.id or id, call.name or name, part.extra or call.extra
  if type(part.arguments) == "table" then
    call.given, call.text = part.arguments, part.text
    grow(self, #json.encode(part.arguments))
  elseif type(part.arguments) == "string" then
    add_fragment(self, call, part.arguments)
  end
end

---Calls as any API has them: a list, or one; each with a function, or what that would have.
---@param value any
---@param text_of? fun(i: integer): string? arguments as they were written
function reply:calls_of(value, text_of)
  local list = json.is_object(value) and { value } or json.table_of(value)
  for i, one in ipairs(list) do
    if type(one) == "table" then
      local called = type(one["function"]) == "table" and one["function"] or one
      self:call {
        index = one.index, id = one.id, name = called.name,
        arguments = json.given(called.arguments) or called.parameters,
        text = text_of and text_of(i), extra = one.extra_content,
      }
    end
  end
end

---@param prompt? integer
---@param completion? integer
---@param cached? integer of the prompt; some servers leave them out of its count
function reply:counted(prompt, completion, cached)
  if prompt and cached and cached > prompt then prompt = prompt + cached end
  self.prompt_tokens = prompt or self.prompt_tokens
  self.completion_tokens = completion or self.completion_tokens
  self.cached_tokens = cached or self.cached_tokens
end

---@param model any who answered, by the server's word: a router may send on to another model than
---was asked for
function reply:served_by(model)
  if type(model) == "string" and #model <= LONGEST_NAME then self.model = model end
end

-- What comes of it

-- Native calls in the form of sba.model.calls; one that was sent twice is there once.
local function raw_calls(self)
  local seen, list = {}, {}
  for _, call in ipairs(self.calls) do
    local arguments, key = arguments_of(call), call
    call.arguments = arguments
    if call.id and type(arguments) == "string" then key = ("%s\n%s\n%s"):format(call.id, call.name, arguments) end
    if not seen[key] then list[#list + 1], seen[key] = call, true end
  end
  return list
end

local function normal(self, list, session)
  return calls.normal(table.move(list, 1, MOST_CALLS, 1, {}), self.wanted.tools or {}, session)
end

-- The reply's calls: native ones, or those that are text. Sets the words around these.
local function read_calls(self, result)
  local tools, list = self.wanted.tools, raw_calls(self)
  if tools and self.wanted.is_json and #list == 0 then
    list, result.unreadable = find.read(result.content, tools, result.thinking)
    if list then result.said, result.content = result.content, list[1].thought or "" end
  elseif tools and #list == 0 then
    local more
    list, more = find.calls(result.content, tools, result.thinking)
    if list then
      result.content = more
    else
      result.unreadable = more or self.unread
      result.is_like_a_call = result.unreadable and true
    end
  end
  return list or {}
end

---Ends a stream that repeats one text. One copy stays, so that the model is not led on by its own
---words, and the calls that were whole before.
---@param repeated string
---@param session table as of calls.normal
---@return model.reply
function reply:stopped(repeated, session)
  local content, thought = self:told_apart()
  local result = {
    content = repetition.once(content, repeated), thinking = repetition.once(thought, repeated),
    tool_calls = json.array {}, done_reason = "repetition",
  }
  local is_in_text = self.failure and not self.failure.in_call
  local may_be_done = is_in_text and (#self.calls == 0 or has_whole_calls(self))
  for _, before in ipairs(may_be_done and repetition.before(content, repeated) or {}) do
    local done = { content = before, thinking = "" }
    local list = #result.tool_calls == 0 and read_calls(self, done) or {}
    if #list > 0 then
      result.content, result.said = done.content, done.said
      result.tool_calls = normal(self, list, session)
    end
  end
  if #result.tool_calls == 0 then
    result.unreadable = ("it repeated %s over and over"):format(humanize.quoted(repeated))
  end
  return result
end

---@param session table as of calls.normal
---@return model.reply
function reply:finish(session)
  local content, thought, has_made_up = self:told_apart()
  if has_made_up then self.unread = MADE_UP end
  local result = {
    content = content, thinking = thought, thinking_parts = #self.parts > 0 and self.parts or nil,
    tool_calls = json.array {}, done_reason = self.done_reason,
    prompt_tokens = self.prompt_tokens, completion_tokens = self.completion_tokens,
    cached_tokens = self.cached_tokens,
  }
  -- Its calls may be cut.
  if self.done_reason == "length" then return result end
  result.tool_calls = normal(self, read_calls(self, result), session)
  return result
end

---Whether the window had no room for a reply: it ended for its length before it began.
---@param most? integer tokens that were asked for
---@return boolean
function reply:has_no_room(most)
  local content, thought = self:texts()
  local is_empty = #self.calls == 0 and not (content .. thought):find "%S"
  if self.done_reason ~= "length" or not is_empty then return false end
  -- Else it thought where nobody sees it.
  return 2 * (self.completion_tokens or 0) < (most or math.huge)
end

return reply
