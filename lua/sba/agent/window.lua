-- SPDX-License-Identifier: Apache-2.0
-- Keeps a conversation within the model's context: old tool results and long replies are shortened, then whole exchanges (a reply and what
-- follows it) are left out, oldest first, then the last exchange is shortened. The system text and the task always stay; arguments of calls
-- are never shortened.

local phrases = require "sba.agent.words"
local text = require "native.text"

local window = {}

local KEPT <const> = 2 -- messages that always stay: system text and task
local LOW_WATER <const> = 0.7 -- clearing goes down to this share, so that not every turn changes what a server cached
local SHORT <const>, SHORTEST <const> = 400, 80 -- bytes that stay of an old text, and of one of the last exchange
local MARK_TOKENS <const> = 40 -- of the line that says that one was shortened, and of its message

--- Puts a copy with a shorter text, and without thoughts, in the place of a message. Returns how many tokens that saves.
local function shorten(messages, i, kept, meter)
  local old, new = messages[i], {}
  for name, value in pairs(old) do new[name] = value end
  local how = old.step and phrases.read_the_rest:format(old.step) or ""
  new.thinking, new.said = nil, nil
  new.content, new.shortened = text.cut(old.content, kept) .. phrases.shortened:format(#old.content - kept, how), true
  return meter:replace(messages, i, new)
end

--- Where the last exchange begins: the last reply of the model, or what was said after it.
local function last_exchange(messages)
  for i = #messages, 1, -1 do
    if messages[i].role == "assistant" then return i end
  end
  return #messages
end

--- Shortens what is long in all exchanges but the last. Returns the tokens that are still too many.
local function shorten_old(messages, excess, meter)
  for i = KEPT + 1, last_exchange(messages) - 1 do
    local message = messages[i]
    if excess <= 0 then break end
    if message.role ~= "user" and not message.shortened and #message.content > 2 * SHORT then
      excess = excess - shorten(messages, i, SHORT, meter)
    end
  end
  return excess
end

--- Leaves out whole exchanges after the task. A message in their place says how many there were.
local function drop_exchanges(messages, excess, meter)
  local dropped = messages[KEPT + 1] and messages[KEPT + 1].dropped or 0
  local first, before = KEPT + (dropped > 0 and 2 or 1), dropped
  while excess > 0 and first < last_exchange(messages) do
    repeat excess = excess - meter:of(table.remove(messages, first)) until messages[first].role == "assistant"
    dropped = dropped + 1
  end
  if dropped == before then return end
  if before == 0 then table.insert(messages, KEPT + 1, false) end
  messages[KEPT + 1] = {
    role = "user", dropped = dropped,
    content = phrases.dropped:format(dropped),
  }
end

--- Shortens the texts of the last exchange to equal shares of the room, the longest to what the others leave.
local function shorten_last(messages, budget, meter)
  local results, room = {}, budget - meter:total(messages)
  for i = last_exchange(messages), #messages do
    if messages[i].role ~= "user" then results[#results + 1], room = i, room + meter:of(messages[i]) end
  end
  table.sort(results, function(a, b) return meter:of(messages[a]) < meter:of(messages[b]) end)
  for done, i in ipairs(results) do
    local tokens, share, size = meter:of(messages[i]), room // (#results - done + 1), #messages[i].content
    local kept = math.max(SHORTEST, size * (share - MARK_TOKENS) // tokens)
    if tokens > share and size > kept then shorten(messages, i, kept, meter) end
    room = room - meter:of(messages[i])
  end
end

---Makes a conversation fit, as far as that can be. Shorter messages are new tables.
---@param messages table[] the first are the system text and the task
---@param budget integer tokens for all messages
---@param meter table what messages cost, see sba.agent.meter
---@return integer before tokens that they had
---@return integer after tokens that they have now
function window.fit(messages, budget, meter)
  local before = meter:total(messages)
  if before <= budget then return before, before end
  local excess = shorten_old(messages, before - math.floor(budget * LOW_WATER), meter)
  if excess > 0 then drop_exchanges(messages, excess, meter) end
  if meter:total(messages) > budget then shorten_last(messages, budget, meter) end
  return before, meter:total(messages)
end

return window
