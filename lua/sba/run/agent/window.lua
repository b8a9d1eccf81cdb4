-- SPDX-License-Identifier: Apache-2.0
-- Keeps a conversation within the model's context: first old tool results are shortened, then whole exchanges (a reply with
-- its calls and all their answers) are left out, oldest first. Then the results of the last exchange are shortened, to equal shares of
-- the room that is left. The system text, the task and the last exchange always stay.

local text = require "native.text"

local window = {}

local CHARACTERS_PER_TOKEN <const> = 3 -- on the safe side, for code
local MESSAGE_OVERHEAD <const> = 8 -- tokens a message, for roles and marks
local LOW_WATER <const> = 0.7 -- what is cleared goes down to this share, so that not every turn changes what a server cached
local SHORT <const> = 400 -- bytes that stay of a shortened tool result, at least
local MARK_TOKENS <const> = 40 -- of the line that says that one was shortened, and of its message

---What a message costs, on the safe side.
---@param message table
---@return integer tokens
function window.estimate(message)
  local size = #(message.content or "") + #(message.thinking or "")
  for _, call in ipairs(message.tool_calls or {}) do size = size + #call.name + (call.size or 0) end
  return size // CHARACTERS_PER_TOKEN + MESSAGE_OVERHEAD
end

---How many bytes so many tokens hold, on the safe side.
---@param tokens integer
---@return integer
function window.bytes(tokens)
  return tokens * CHARACTERS_PER_TOKEN
end

---@param messages table[]
---@return integer tokens
function window.total(messages)
  local sum = 0
  for _, message in ipairs(messages) do
    message.tokens = message.tokens or window.estimate(message)
    sum = sum + message.tokens
  end
  return sum
end

local function shorten(message, kept)
  local content = message.content
  local how = message.step and ("; read_output of %s gives the rest"):format(message.step) or ""
  message.content = ("%s\n[... %d bytes shortened%s ...]"):format(text.cut(content, kept), #content - kept, how)
  message.shortened = true
  local before = message.tokens
  message.tokens = window.estimate(message)
  return before - message.tokens
end

--- Where the last exchange begins: the last reply of the model, or what was said after it.
local function last_exchange(messages)
  for i = #messages, 1, -1 do
    if messages[i].role == "assistant" then return i end
  end
  return #messages
end

local function shorten_results(messages, excess, stop)
  for i = 1, stop - 1 do
    local message = messages[i]
    if excess <= 0 then break end
    if message.role == "tool" and not message.shortened and #message.content > 2 * SHORT then
      excess = excess - shorten(message, SHORT)
    end
  end
  return excess
end

--- Shortens the results of the last exchange, the longest to what the others leave.
local function shorten_last(messages, budget)
  local results, others = {}, window.total(messages)
  for i = last_exchange(messages) + 1, #messages do
    local message = messages[i]
    if message.role == "tool" then results[#results + 1], others = message, others - message.tokens end
  end
  table.sort(results, function(a, b) return a.tokens < b.tokens end)
  local room = budget - others
  for i, message in ipairs(results) do
    local share = room // (#results - i + 1)
    local kept = math.max(SHORT, window.bytes(share - MARK_TOKENS))
    if message.tokens > share and #message.content > kept then shorten(message, kept) end
    room = room - message.tokens
  end
end

--- The end of the exchange that begins at first: everything up to the next reply of the model.
local function exchange_end(messages, first)
  local i = first + 1
  while messages[i] and messages[i].role ~= "assistant" do i = i + 1 end
  return i - 1
end

--- Leaves out whole exchanges after the first `keep` messages; says in their place that it did.
local function drop_exchanges(conversation, excess, keep)
  local messages, dropped = conversation.messages, 0
  local first = keep + 1
  if messages[first] and messages[first].note then first = first + 1 end
  while excess > 0 and first < last_exchange(messages) do
    local last = exchange_end(messages, first)
    for i = first, last do excess = excess - messages[i].tokens end
    table.move(messages, last + 1, #messages + last - first + 1, first)
    dropped = dropped + 1
  end
  if dropped == 0 then return excess end
  conversation.dropped = (conversation.dropped or 0) + dropped
  local note = {
    role = "user", note = true,
    content = ("[%d earlier exchanges are left out here to make room. The todo list below is still true.]"):format(conversation.dropped),
  }
  if messages[keep + 1] and messages[keep + 1].note then
    messages[keep + 1] = note
  else
    table.insert(messages, keep + 1, note)
  end
  return excess
end

---Makes a conversation fit.
---@param conversation { messages: table[], dropped?: integer } messages[1..keep] always stay
---@param keep integer
---@param budget integer tokens for all messages
---@return boolean fits
function window.fit(conversation, keep, budget)
  local messages = conversation.messages
  local total = window.total(messages)
  if total <= budget then return true end
  local excess = total - math.floor(budget * LOW_WATER)
  excess = shorten_results(messages, excess, last_exchange(messages))
  if excess > 0 then drop_exchanges(conversation, excess, keep) end
  if window.total(messages) > budget then shorten_last(messages, budget) end
  return window.total(messages) <= budget
end

return window
