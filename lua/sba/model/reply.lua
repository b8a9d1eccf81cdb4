-- SPDX-License-Identifier: Apache-2.0
-- Puts a reply together from what is streamed, bounds it, and stops one that has become one token, line or paragraph over and over.

local calls = require "sba.model.calls"
local find = require "sba.model.text_calls.find"
local json = require "sba.util.json"
local text = require "native.text"
local words = require "sba.util.words"

local reply = {}
reply.__index = reply

local LIMIT <const> = 4 * 1024 * 1024 -- bytes of content, thinking and arguments
local MOST_CALLS <const> = 64 -- each wants an answer in the conversation; a model gone astray writes thousands
local LEAST_REPEATED <const> = 1024 -- bytes that a repetition fills, for some texts do repeat themselves
local LEAST_REPEATED_ARGUMENTS <const> = 16384 -- the same: a file may have many equal lines
local LONGEST_PERIOD <const>, PERIODS <const> = 2048, 12 -- most bytes of what is repeated; least times that it is there
local LONGEST_TOKEN <const>, TOKENS <const> = 32, 24 -- the same of a token at the end
local PROBE <const> = 64 -- bytes whose last occurrence before the end shows the period
local STEP <const> = 1024 -- bytes between two looks

---@class inference.reply plain, for journal and replay
---@field content string without thinking
---@field thinking string
---@field tool_calls inference.call[] a JSON array; empty after "length"
---@field said? string a whole reply with calls as text
---@field unreadable? string for the model: why no call could be read where one was due or seems meant
---@field is_like_a_call? boolean unreadable, of a model with tool calling
---@field done_reason string "stop", "length", "tool_calls", "content_filter", "repetition" (ours), ...
---@field prompt_tokens? integer
---@field completion_tokens? integer
---@field is_estimated? boolean the server did not count the tokens
---@field duration_ms integer of the request that was answered

-- Only the last bytes are looked at, so a long text costs linear time.
local function watched(least)
  return { least = least, kept = least + PERIODS * LONGEST_PERIOD, tail = "", pending = {}, size = 0 }
end

local function tail_of(watch)
  watch.tail = (watch.tail .. table.concat(watch.pending)):sub(-watch.kept)
  watch.pending, watch.size = {}, 0
  return watch.tail
end

local function is_periodic(tail, period, size)
  if #tail < size then return false end
  local last = tail:sub(-size)
  return last:sub(1, -period - 1) == last:sub(period + 1)
end

-- Returns what the text repeats.
local function repeated_with(watch, piece)
  watch.pending[#watch.pending + 1], watch.size = piece, watch.size + #piece
  if watch.size < STEP then return nil end
  local tail = tail_of(watch)
  local backwards = tail:sub(-(LONGEST_PERIOD + PROBE)):reverse()
  local at = #tail > PROBE and text.find(backwards, backwards:sub(1, PROBE), 2)
  local period = at and at - 1
  return period and is_periodic(tail, period, watch.least + PERIODS * period) and tail:sub(-period) or nil
end

local function once(whole, repeated)
  local period, last = #repeated, #whole
  while last >= 2 * period and whole:sub(last - 2 * period + 1, last - period) == whole:sub(last - period + 1, last) do
    last = last - period
  end
  return last == #whole and whole or text.cut(whole, last) .. " [...]"
end

---@param on_text? fun(piece: string)
function reply.new(on_text)
  return setmetatable({
    on_text = on_text, said = {}, thoughts = {}, raw_calls = {}, size = 0, watch = watched(LEAST_REPEATED),
  }, reply)
end

-- The first failure stays.
local function grow(self, size, watch, piece)
  local repeated = watch and repeated_with(watch, piece)
  self.size = self.size + size
  self.failure = self.failure
    or repeated and { code = "repeats", message = "repeats one text over and over", repeated = repeated }
    or self.size > LIMIT and { code = "too_large", message = ("sent a reply of more than %d bytes"):format(LIMIT) } or nil
end

-- Content and thinking are watched as one text: a repetition is in one of them.
local function add_text(self, list, piece)
  list[#list + 1] = piece
  grow(self, #piece, self.watch, piece)
end

---@param piece any ignored unless a string
function reply:add_content(piece)
  if type(piece) ~= "string" or piece == "" then return end
  if self.on_text then self.on_text(piece) end
  add_text(self, self.said, piece)
end

---@param piece any ignored unless a string
function reply:add_thinking(piece)
  if type(piece) == "string" then add_text(self, self.thoughts, piece) end
end

---@param call inference.raw_call
---@return inference.raw_call
function reply:add_call(call)
  local given = call.arguments
  self.raw_calls[#self.raw_calls + 1] = call
  grow(self, type(given) == "string" and #given or given ~= nil and #json.encode(given) or 0)
  return call
end

---@param call inference.raw_call
---@param fragment string
function reply:add_arguments(call, fragment)
  call.fragments, call.watch = call.fragments or {}, call.watch or watched(LEAST_REPEATED_ARGUMENTS)
  call.fragments[#call.fragments + 1] = fragment
  grow(self, #fragment, call.watch, fragment)
end

---@return string content, string thought so far
function reply:texts() return table.concat(self.said), table.concat(self.thoughts) end

local function told_apart(self)
  local said, thoughts = self:texts()
  local content, thought = find.thinking(said)
  return content, thoughts .. thought
end

---Ends a stream that repeats one text. One copy stays, so that the model is not led on by its own words; no call does.
---@param repeated string
---@return inference.reply
function reply:stopped(repeated)
  local content, thought = told_apart(self)
  return {
    content = once(content, repeated), thinking = once(thought, repeated), tool_calls = json.array {}, done_reason = "repetition",
    unreadable = ("it repeated %s over and over"):format(words.quoted(repeated)),
  }
end

---Ollama silently breaks off a stream after 30 equal tokens.
---@return string? repeated token
function reply:repeated_at_end()
  local tail = tail_of(self.watch)
  for period = 1, LONGEST_TOKEN do
    if is_periodic(tail, period, TOKENS * period) then return tail:sub(-period) end
  end
end

---@param outcome inference.outcome
---@param tools? inference.tool[]
---@param as_text boolean whether calls were asked for as text
---@param session table as of calls.normal
---@return inference.reply
function reply:finish(outcome, tools, as_text, session)
  local content, thought = told_apart(self)
  local result = {
    content = content, thinking = thought, tool_calls = json.array {},
    done_reason = outcome.done_reason, prompt_tokens = outcome.prompt_tokens, completion_tokens = outcome.completion_tokens,
  }
  local list, more = self.raw_calls
  if outcome.done_reason == "length" then return result end -- its calls may be cut
  for _, call in ipairs(list) do call.arguments = call.fragments and table.concat(call.fragments) or call.arguments end
  if tools and as_text then
    list, result.unreadable = find.read(content, tools, thought)
    if list then result.said, result.content = content, list[1].thought or "" end
  elseif tools and #list == 0 then
    list, more = find.calls(content, tools, thought) -- of a model with tool calling that wrote them as text
    if list then result.content = more else result.unreadable, result.is_like_a_call = more, more and true end
  end
  result.tool_calls = calls.normal(table.move(list or {}, 1, MOST_CALLS, 1, {}), tools or {}, session)
  return result
end

return reply
