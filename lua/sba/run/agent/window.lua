-- SPDX-License-Identifier: Apache-2.0
-- Keeps a conversation within the model's context: first old tool results and what was thought and written in old replies are shortened,
-- then whole exchanges (a reply with its calls and all their answers) are left out, oldest first. Then the results of the last exchange
-- are shortened, to equal shares of the room that is left, and what its reply holds. The system text, the task and the last exchange
-- always stay.

local json = require "sba.util.json"
local phrases = require "sba.run.agent.words"
local text = require "native.text"

local window = {}

local KEPT <const> = 2 -- messages that always stay: system text and task
local LOW_WATER <const> = 0.7 -- what is cleared goes down to this share, so that not every turn changes what a server cached
local SHORT <const> = 400 -- bytes that stay of an old tool result
local SHORTEST <const> = 80 -- bytes that stay of one of the last exchange, and of a text in a call, at least
local MARK_TOKENS <const> = 40 -- of the line that says that one was shortened, and of its message

--- Puts a shorter message in the place of one. Returns how many tokens that saves.
local function replace(messages, i, shorter, meter)
  local saved = meter:replaced(messages[i], shorter)
  messages[i] = shorter
  return saved
end

local function shortened_result(message, kept)
  local content = message.content
  local how = message.step and phrases.read_the_rest:format(message.step) or ""
  return {
    role = "tool", tool_call_id = message.tool_call_id, tool_name = message.tool_name, step = message.step, shortened = true,
    content = text.cut(content, kept) .. phrases.shortened:format(#content - kept, how),
  }
end

local function shortened_text(whole, kept)
  if #whole <= 2 * kept then return whole, false end
  return text.cut(whole, kept) .. phrases.shortened:format(#whole - kept, ""), true
end

--- A copy with long texts shortened, and whether there was one.
local function shortened_arguments(arguments, kept)
  local copy, changed = json.is_array(arguments) and json.array {} or {}, false
  for name, value in pairs(arguments) do
    local was_changed = false
    if type(value) == "string" then
      value, was_changed = shortened_text(value, kept)
    elseif type(value) == "table" then
      value, was_changed = shortened_arguments(value, kept)
    end
    copy[name], changed = value, changed or was_changed
  end
  return copy, changed
end

local function shortened_call(call, kept)
  local arguments, changed = shortened_arguments(call.arguments or {}, kept)
  if not changed then return call, false end
  return { id = call.id, name = call.name, called = call.called, arguments = arguments, size = #json.encode(arguments) }, true
end

--- What the model said without its thoughts, and with the long texts in its calls shortened: they are done.
local function shortened_reply(message, kept)
  local calls, changed = json.array {}, false
  for i, call in ipairs(message.tool_calls or {}) do
    local one, was_changed = shortened_call(call, kept)
    calls[i], changed = one, changed or was_changed
  end
  return {
    role = "assistant", content = shortened_text(message.content or "", kept), tool_calls = calls, shortened = true,
    said = not changed and message.said or nil,
  }
end

--- Where the last exchange begins: the last reply of the model, or what was said after it.
local function last_exchange(messages)
  for i = #messages, 1, -1 do
    if messages[i].role == "assistant" then return i end
  end
  return #messages
end

local function shorten_old(messages, excess, meter)
  for i = 1, last_exchange(messages) - 1 do
    local message = messages[i]
    local is_result = message.role == "tool" and #message.content > 2 * SHORT
    if excess <= 0 then break end
    if not message.shortened and (is_result or message.role == "assistant") then
      excess = excess - replace(messages, i, (is_result and shortened_result or shortened_reply)(message, SHORT), meter)
    end
  end
  return excess
end

--- Shortens the results of the last exchange, the longest to what the others leave.
local function shorten_last(messages, budget, meter)
  local results, room = {}, budget - meter:total(messages)
  for i = last_exchange(messages) + 1, #messages do
    if messages[i].role == "tool" then
      results[#results + 1], room = i, room + meter:of(messages[i])
    end
  end
  table.sort(results, function(a, b) return meter:of(messages[a]) < meter:of(messages[b]) end)
  for done, i in ipairs(results) do
    local message, share = messages[i], room // (#results - done + 1)
    local tokens = meter:of(message)
    local kept = math.max(SHORTEST, #message.content * (share - MARK_TOKENS) // tokens)
    if tokens > share and #message.content > kept then replace(messages, i, shortened_result(message, kept), meter) end
    room = room - meter:of(messages[i])
  end
end

--- The end of the exchange that begins at first: everything up to the next reply of the model.
local function exchange_end(messages, first)
  local i = first + 1
  while messages[i] and messages[i].role ~= "assistant" do i = i + 1 end
  return i - 1
end

--- Leaves out whole exchanges after the system text and the task. A message in their place says how many there were.
local function drop_exchanges(messages, excess, meter)
  local place = KEPT + 1
  local before = messages[place] and messages[place].dropped or 0
  local first, dropped = before > 0 and place + 1 or place, before
  while excess > 0 and first < last_exchange(messages) do
    local last = exchange_end(messages, first)
    for i = first, last do excess = excess - meter:of(messages[i]) end
    table.move(messages, last + 1, #messages + last - first + 1, first)
    dropped = dropped + 1
  end
  if dropped == before then return end
  if before == 0 then table.insert(messages, place, false) end
  messages[place] = {
    role = "user", dropped = dropped,
    content = phrases.dropped:format(dropped),
  }
end

--- Shortens the last exchange until it fits or cannot be shorter.
local function squeeze(messages, budget, meter)
  if meter:total(messages) > budget then shorten_last(messages, budget, meter) end
  local i = last_exchange(messages)
  if meter:total(messages) > budget and messages[i].role == "assistant" then
    replace(messages, i, shortened_reply(messages[i], SHORTEST), meter)
    shorten_last(messages, budget, meter)
  end
end

---Makes a conversation fit, as far as that can be. Shorter messages are new tables.
---@param messages table[] the first are the system text and the task
---@param budget integer tokens for all messages
---@param meter table what messages cost, see sba.run.agent.meter
---@return integer before tokens that they had
---@return integer after tokens that they have now
function window.fit(messages, budget, meter)
  local before = meter:total(messages)
  if before <= budget then return before, before end
  local excess = shorten_old(messages, before - math.floor(budget * LOW_WATER), meter)
  if excess > 0 then drop_exchanges(messages, excess, meter) end
  squeeze(messages, budget, meter)
  return before, meter:total(messages)
end

return window
