-- SPDX-License-Identifier: Apache-2.0
-- Puts a reply together from what is streamed, and bounds it.

local call_reader = require "sba.inference.call_reader"
local json = require "sba.util.json"
local repetition = require "sba.inference.repetition"
local text_protocol = require "sba.inference.text_protocol"
local thinking = require "sba.inference.thinking"
local words = require "sba.util.words"

local reply = {}
reply.__index = reply

---Most bytes of content, thinking and arguments of one reply.
reply.LIMIT = 4 * 1024 * 1024

-- A reply of thousands of calls is a model gone astray; each would want an answer in the conversation.
local MOST_CALLS <const> = 128

local LEAST_REPEATED <const> = 1024 -- bytes of content or thinking that one token or line fills; a bound text in it has 1999
local LEAST_REPEATED_ARGUMENTS <const> = 16384 -- bytes of arguments, which may hold a file of lines that are all the same

---@class inference.reply a plain table: a journal can keep it, a replay give it back
---@field content string without thinking
---@field thinking string
---@field tool_calls inference.call[] a JSON array, at most 128; empty where the reply was cut for its length
---@field said? string the whole reply, where its calls were asked for as text
---@field unreadable? string why no call could be read from a reply that had to be one: one line for the model
---@field done_reason string "stop", "length", "tool_calls", "content_filter", "repetition" (stopped here), ...
---@field prompt_tokens? integer as the server counted
---@field completion_tokens? integer
---@field duration_ms integer of the request that was answered
---@field notes string[] what was lenient or odd, for the log; a JSON array

---@param on_text? fun(piece: string) is given the content as it comes
function reply.new(on_text)
  return setmetatable({
    on_text = on_text, said = {}, thoughts = {}, raw_calls = {}, size = 0, watched = repetition.new(LEAST_REPEATED),
  }, reply)
end

---The watch over the arguments of a call that come in fragments.
---@return table of repetition
function reply.watch_arguments()
  return repetition.new(LEAST_REPEATED_ARGUMENTS)
end

---The failure of a stream that repeats one text over and over: it is read no further.
---@param repeated string
---@return table failure
function reply.repeats(repeated)
  return { code = "repeats", message = "repeats one text over and over", repeated = repeated }
end

local function grow(self, size)
  self.size = self.size + size
  if self.size <= reply.LIMIT then return true end
  return nil, { code = "too_large", message = ("sent a reply of more than %d bytes"):format(reply.LIMIT) }
end

--- Content and thinking are watched as one text: a reply is in the one or in the other when it repeats itself.
local function watch(self, piece)
  local repeated = self.watched:add(piece)
  if repeated then return nil, reply.repeats(repeated) end
  return grow(self, #piece)
end

---@param piece any text of the content; what is no string is passed over
---@return true?, table? failure
function reply:add_content(piece)
  if type(piece) ~= "string" or piece == "" then return true end
  self.said[#self.said + 1] = piece
  if self.on_text then self.on_text(piece) end
  return watch(self, piece)
end

---@param piece any
---@return true?, table? failure
function reply:add_thinking(piece)
  if type(piece) ~= "string" or piece == "" then return true end
  self.thoughts[#self.thoughts + 1] = piece
  return watch(self, piece)
end

---@param call inference.raw_call
---@return true?, table? failure
function reply:add_call(call)
  local given = call.arguments
  call.size = type(given) == "string" and #given or given ~= nil and #json.encode(given) or 0
  self.raw_calls[#self.raw_calls + 1] = call
  return grow(self, call.size)
end

--- What was said, and what was thought.
local function texts(self)
  local content, thought = thinking(table.concat(self.said))
  return content, table.concat(self.thoughts) .. thought
end

local function append(list, more)
  table.move(more, 1, #more, #list + 1, list)
end

local function sizes(found)
  for _, call in ipairs(found) do call.size = call.arguments ~= nil and #json.encode(call.arguments) or 0 end
  return found
end

--- The calls of a reply in which they come as text.
local function read_text(self, result, tools, session)
  local found, mistake = text_protocol.read(result.content, tools, session.schema_kind == "bounded")
  result.unreadable = mistake
  if not found then return end
  result.said, result.content = result.content, found[1].thought or ""
  self.raw_calls = sizes(found)
end

local function find_text(self, result, tools)
  local found = #self.raw_calls == 0 and text_protocol.find(result.content, tools)
  if not found then return end
  self.raw_calls, result.content = sizes(found), ""
  result.notes[#result.notes + 1] = "the calls came as text"
end

local function bound_calls(self, result)
  local count = #self.raw_calls
  if count <= MOST_CALLS then return end
  result.notes[#result.notes + 1] = ("of %d calls the first %d are kept"):format(count, MOST_CALLS)
  self.raw_calls = table.move(self.raw_calls, 1, MOST_CALLS, 1, {})
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
    tool_calls = json.array {}, notes = json.array { "the reply was stopped: " .. why }, done_reason = "repetition", unreadable = why,
  }
end

---What a stream that broke off repeated before, if it was one token.
---@return string? repeated
function reply:repeated_at_end()
  return self.watched:at_end()
end

---The whole reply.
---@param outcome { done_reason: string, prompt_tokens?: integer, completion_tokens?: integer }
---@param tools? inference.tool[] that the request had
---@param as_text boolean whether calls were asked for as text
---@param session table see call_reader.normal
---@return inference.reply
function reply:finish(outcome, tools, as_text, session)
  local content, thought = texts(self)
  local result = {
    content = content, thinking = thought, tool_calls = json.array {}, notes = json.array {},
    done_reason = outcome.done_reason, prompt_tokens = outcome.prompt_tokens, completion_tokens = outcome.completion_tokens,
  }
  if outcome.done_reason == "length" then
    if #self.raw_calls > 0 then result.notes[1] = "the reply was cut for its length, its calls are left out" end
    return result
  end
  if tools then (as_text and read_text or find_text)(self, result, tools, session) end
  bound_calls(self, result)
  local list, notes = call_reader.normal(self.raw_calls, call_reader.names(tools or {}), session)
  result.tool_calls = list
  append(result.notes, notes)
  return result
end

return reply
