-- SPDX-License-Identifier: Apache-2.0
-- Puts a reply together from what is streamed, and bounds it.

local calls = require "sba.model.calls"
local json = require "sba.util.json"
local repetition = require "sba.model.repetition"
local words = require "sba.util.words"

local reply = {}
reply.__index = reply

local LIMIT <const> = 4 * 1024 * 1024 -- bytes of content, thinking and arguments of one reply
local MOST_CALLS <const> = 64 -- thousands are a model gone astray; each would want an answer in the conversation
local LEAST_REPEATED <const> = 1024 -- bytes of content or thinking that one token or line fills
local LEAST_REPEATED_ARGUMENTS <const> = 16384 -- bytes of arguments, which may hold a file of lines that are all the same

---@class inference.reply a plain table: a journal can keep it, a replay give it back
---@field content string without thinking
---@field thinking string
---@field tool_calls inference.call[] a JSON array, at most 64; empty where the reply was cut for its length
---@field said? string the whole reply, where its calls came as text of a model without tool calling
---@field unreadable? string why no call could be read from a reply that had to be one, or looks like one: one line for the model
---@field is_like_a_call? boolean an unreadable reply of a model with tool calling
---@field done_reason string "stop", "length", "tool_calls", "content_filter", "repetition" (stopped here), ...
---@field prompt_tokens? integer as the server counted
---@field completion_tokens? integer
---@field is_estimated? boolean the tokens are: the server did not say them
---@field duration_ms integer of the request that was answered

---@param on_text? fun(piece: string) is given the content as it comes
function reply.new(on_text)
  return setmetatable({
    on_text = on_text, said = {}, thoughts = {}, raw_calls = {}, size = 0, watched = repetition.new(LEAST_REPEATED),
  }, reply)
end

--- Takes a piece into account: of a text that is watched for repetitions, if there is one. The first failure counts.
local function grow(self, size, watched, piece)
  local repeated = watched and watched:add(piece)
  self.size = self.size + size
  self.failure = self.failure
    or repeated and { code = "repeats", message = "repeats one text over and over", repeated = repeated }
    or self.size > LIMIT and { code = "too_large", message = ("sent a reply of more than %d bytes"):format(LIMIT) } or nil
end

--- Content and thinking are watched as one text: a reply is in the one or in the other when it repeats itself.
local function add_text(self, list, piece)
  list[#list + 1] = piece
  grow(self, #piece, self.watched, piece)
end

---@param piece any text of the content; what is no string is passed over
function reply:add_content(piece)
  if type(piece) ~= "string" or piece == "" then return end
  if self.on_text then self.on_text(piece) end
  add_text(self, self.said, piece)
end

---@param piece any text of the thinking, likewise
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

---Adds to the arguments of a call, which come in fragments.
---@param call inference.raw_call
---@param fragment string
function reply:add_arguments(call, fragment)
  call.fragments, call.watched = call.fragments or {}, call.watched or repetition.new(LEAST_REPEATED_ARGUMENTS)
  call.fragments[#call.fragments + 1] = fragment
  grow(self, #fragment, call.watched, fragment)
end

--- What was said, and what was thought.
local function texts(self)
  local content, thought = calls.thinking(table.concat(self.said))
  return content, table.concat(self.thoughts) .. thought
end

---The reply of a stream that was stopped because it repeats one text over and over. Of that one is kept, so that the model is not led
---on by its own words; calls are left out.
---@param repeated string
---@return inference.reply
function reply:stopped(repeated)
  local content, thought = texts(self)
  local why = ("it repeated %s over and over"):format(words.quoted(repeated))
  return {
    content = repetition.without(content, repeated), thinking = repetition.without(thought, repeated),
    tool_calls = json.array {}, done_reason = "repetition", unreadable = why,
  }
end

---What was said and thought so far.
---@return string[]
function reply:pieces() return { table.concat(self.said), table.concat(self.thoughts) } end

---What a stream that broke off repeated before, if it was one token.
---@return string? repeated
function reply:repeated_at_end()
  return self.watched:at_end()
end

---The whole reply.
---@param outcome { done_reason: string, prompt_tokens?: integer, completion_tokens?: integer }
---@param tools? inference.tool[] that the request had
---@param as_text boolean whether calls were asked for as text
---@param session table see calls.normal
---@return inference.reply
function reply:finish(outcome, tools, as_text, session)
  local content, thought = texts(self)
  local result = {
    content = content, thinking = thought, tool_calls = json.array {},
    done_reason = outcome.done_reason, prompt_tokens = outcome.prompt_tokens, completion_tokens = outcome.completion_tokens,
  }
  local list, more = self.raw_calls
  if outcome.done_reason == "length" then return result end -- its calls may be cut
  for _, call in ipairs(list) do call.arguments = call.fragments and table.concat(call.fragments) or call.arguments end
  if tools and as_text then
    list, result.unreadable = calls.read(content, tools)
    if list then result.said, result.content = content, list[1].thought or "" end
  elseif tools and #list == 0 then
    list, more = calls.find(content, tools) -- of a model with tool calling that wrote them as text
    if list then result.content = more else result.unreadable, result.is_like_a_call = more, more and true end
  end
  result.tool_calls = calls.normal(table.move(list or {}, 1, MOST_CALLS, 1, {}), tools or {}, session)
  return result
end

return reply
