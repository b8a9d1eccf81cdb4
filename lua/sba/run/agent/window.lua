-- SPDX-License-Identifier: Apache-2.0
-- Keeps a conversation within the model's context: first old tool results and what was thought and written in old replies are shortened,
-- then whole exchanges (a reply with its calls and all their answers) are left out, oldest first. Then the results of the last exchange
-- are shortened, to equal shares of the room that is left, and what its reply holds. The system text, the task and the last exchange
-- always stay.

local json = require "sba.util.json"
local text = require "native.text"

local window = {}

local LOW_WATER <const> = 0.7 -- what is cleared goes down to this share, so that not every turn changes what a server cached
local SHORT <const> = 400 -- bytes that stay of an old tool result
local SHORTEST <const> = 80 -- bytes that stay of one of the last exchange, and of a text in a call, at least
local MARK_TOKENS <const> = 40 -- of the line that says that one was shortened, and of its message

local function shorten(message, kept, meter)
  local before, content = meter:of(message), message.content
  local how = message.step and ("; read_output of %s gives the rest"):format(message.step) or ""
  message.content = ("%s\n[... %d bytes shortened%s ...]"):format(text.cut(content, kept), #content - kept, how)
  message.shortened = true
  return before - meter:of(message)
end

local function shortened_text(whole, kept)
  if #whole <= 2 * kept then return whole, false end
  return ("%s\n[... %d bytes shortened ...]"):format(text.cut(whole, kept), #whole - kept), true
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

--- Shortens what the model thought and said, and the long texts in its calls: they are done.
local function shorten_reply(message, kept, meter)
  local before, calls, changed = meter:of(message), json.array {}, false
  for i, call in ipairs(message.tool_calls or {}) do
    local one, was_changed = shortened_call(call, kept)
    calls[i], changed = one, changed or was_changed
  end
  if changed then message.tool_calls, message.said = calls, nil end
  message.thinking, message.content = nil, shortened_text(message.content or "", kept)
  return before - meter:of(message)
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
    if excess <= 0 then break end
    if message.role == "tool" and not message.shortened and #message.content > 2 * SHORT then
      excess = excess - shorten(message, SHORT, meter)
    elseif message.role == "assistant" and not message.shortened then
      excess = excess - shorten_reply(message, SHORT, meter)
      message.shortened = true
    end
  end
  return excess
end

--- Shortens the results of the last exchange, the longest to what the others leave.
local function shorten_last(messages, budget, meter)
  local results, others, tokens = {}, meter:total(messages), {}
  for i = last_exchange(messages) + 1, #messages do
    local message = messages[i]
    if message.role == "tool" then
      tokens[message] = meter:of(message)
      results[#results + 1], others = message, others - tokens[message]
    end
  end
  table.sort(results, function(a, b) return tokens[a] < tokens[b] end)
  local room = budget - others
  for i, message in ipairs(results) do
    local share = room // (#results - i + 1)
    local kept = math.max(SHORTEST, #message.content * (share - MARK_TOKENS) // tokens[message])
    if tokens[message] > share and #message.content > kept then shorten(message, kept, meter) end
    room = room - meter:of(message)
  end
end

--- The end of the exchange that begins at first: everything up to the next reply of the model.
local function exchange_end(messages, first)
  local i = first + 1
  while messages[i] and messages[i].role ~= "assistant" do i = i + 1 end
  return i - 1
end

--- Leaves out whole exchanges after the first `keep` messages; says in their place that it did.
local function drop_exchanges(conversation, excess, keep, meter)
  local messages, dropped = conversation.messages, 0
  local first = keep + 1
  if messages[first] and messages[first].note then first = first + 1 end
  while excess > 0 and first < last_exchange(messages) do
    local last = exchange_end(messages, first)
    for i = first, last do excess = excess - meter:of(messages[i]) end
    table.move(messages, last + 1, #messages + last - first + 1, first)
    dropped = dropped + 1
  end
  if dropped == 0 then return end
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
end

--- Shortens the last exchange until it fits or cannot be shorter.
local function squeeze(messages, budget, meter)
  if meter:total(messages) > budget then shorten_last(messages, budget, meter) end
  local reply = messages[last_exchange(messages)]
  if meter:total(messages) > budget and reply.role == "assistant" then
    shorten_reply(reply, SHORTEST, meter)
    shorten_last(messages, budget, meter)
  end
end

---Makes a conversation fit.
---@param conversation { messages: table[], dropped?: integer } messages[1..keep] always stay
---@param keep integer
---@param budget integer tokens for all messages
---@param meter table what messages cost, see sba.run.agent.meter
---@return boolean fits
function window.fit(conversation, keep, budget, meter)
  local messages = conversation.messages
  local total = meter:total(messages)
  if total <= budget then return true end
  local excess = shorten_old(messages, total - math.floor(budget * LOW_WATER), meter)
  if excess > 0 then drop_exchanges(conversation, excess, keep, meter) end
  squeeze(messages, budget, meter)
  return meter:total(messages) <= budget
end

return window
