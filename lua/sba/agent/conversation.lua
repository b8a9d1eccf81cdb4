-- SPDX-License-Identifier: Apache-2.0
-- The messages with the model, their tokens (estimated until the server has counted a prompt),
-- and how they fit into its context: old texts are shortened, then whole exchanges (a reply and
-- what follows it) are left out, oldest first, then the last exchange is shortened. The system
-- text, the task and arguments of calls stay.

local json = require "sba.util.json"
local prompts = require "sba.agent.prompts"
local text = require "native.text"

---@class agent.conversation
---@field messages table[] the system text, the task, ...; `step` names the step of a result
---@field tools integer tokens
---@field scale number real tokens per estimated one
---@field cost table<table, integer> tokens by message
---@field is_counted table<table, true> by the server
---@field as_text? boolean the last request told the tools as text
local conversation = {}
conversation.__index = conversation

local MESSAGE <const> = 8 -- tokens of a message's role and marks
-- Of the estimate: a smaller count leaves out what the server had cached.
local LEAST <const> = 0.1
-- Times the estimate: so far `scale` goes, whatever one odd count says.
local MOST <const> = 3
local LEAST_LEARNED <const> = 64 -- tokens of new messages
local KEPT <const> = 2 -- messages: system text and task
-- So much of the budget stays full, so that not every turn changes what a server cached.
local LOW_WATER <const> = 0.7
-- Bytes that stay of an old text, and of one in the last exchange.
local SHORT <const>, SHORTEST <const> = 400, 80
local MARK_TOKENS <const> = 40 -- of the line that says so

---@param tools integer tokens of the tools, estimated
---@param messages? table[]
---@return agent.conversation
function conversation.new(tools, messages)
  return setmetatable({
    messages = messages or {}, tools = tools, scale = 1,
    cost = setmetatable({}, { __mode = "k" }), is_counted = setmetatable({}, { __mode = "k" }),
  }, conversation)
end

---@param message table
function conversation:add(message) table.insert(self.messages, message) end

local function estimate(message)
  local pieces = { (message.content or "") .. (message.thinking or "") }
  for _, call in ipairs(message.tool_calls or {}) do
    pieces[#pieces + 1] = call.name .. "\n" .. (call.written or json.encode(call.arguments or {}))
  end
  return MESSAGE + text.tokens(table.concat(pieces, "\n"))
end

---@param message table
---@return integer tokens
function conversation:of(message)
  self.cost[message] = self.cost[message] or math.ceil(estimate(message) * self.scale)
  return self.cost[message]
end

---@return integer tokens
function conversation:total()
  local total, cost = 0, self.cost
  for _, message in ipairs(self.messages) do total = total + (cost[message] or self:of(message)) end
  return total
end

---@param utf8 string
---@return integer tokens
function conversation:text(utf8) return math.ceil(text.tokens(utf8) * self.scale) end

---The server has counted a prompt: new messages, and the first time the tools, cost what the
---others leave of the count. For example, 900 tokens are known, and a new message is estimated at
---100. The count is 1,060: the message costs 160, and what comes is taken for 1.6 times its
---estimate.
---@param status integer tokens of what was sent besides messages and tools
---@param count? integer tokens; nil: it does not say
---@param as_text? boolean the tools were told as text: in another form they cost something else
function conversation:learn(status, count, as_text)
  local total, cost, is_counted = self:total(), self.cost, self.is_counted
  local are_tools_new = as_text ~= self.as_text or not next(is_counted)
  self.as_text = as_text
  if not count or count < LEAST * total then return end
  local fresh, new = {}, 0
  for _, message in ipairs(self.messages) do
    if not is_counted[message] then fresh[#fresh + 1], new = message, new + cost[message] end
  end
  local unknown = new + (are_tools_new and self.tools or 0)
  local known = total + self.tools + status - unknown
  local ratio = math.max(LEAST, (count - known) / math.max(1, unknown))
  for _, message in ipairs(fresh) do
    cost[message], is_counted[message] = math.ceil(cost[message] * ratio), true
  end
  -- Prose shows little of what numbers cost: what comes is never taken for cheaper than the
  -- estimate.
  if new > LEAST_LEARNED then self.scale = math.min(MOST, math.max(1, self.scale * ratio)) end
  self.tools = math.max(0, count - status - self:total())
end

--- Replaces a message by a shorter copy, without thoughts. Returns the tokens that this saves. If
--- the server has counted the message, the copy costs a part of that count.
local function shorten(self, i, kept)
  local old, new = self.messages[i], {}
  for name, value in pairs(old) do new[name] = value end
  local how = old.step and prompts.read_the_rest:format(old.step) or ""
  local note = prompts.shortened:format(#old.content - kept, how)
  new.thinking, new.thinking_parts, new.said = nil, nil, nil
  new.shortened, new.content = true, text.cut(old.content, kept) .. note
  self.messages[i] = new
  local before = self:of(old)
  self.cost[new] = math.ceil(before * estimate(new) / estimate(old))
  self.is_counted[new] = self.is_counted[old]
  return before - self.cost[new]
end

---@return integer number of its first message; 0: there is none
function conversation:last_exchange()
  for i = #self.messages, 1, -1 do
    if self.messages[i].role == "assistant" then return i end
  end
  return 0
end

---@return table[] messages since the last reply; before the first one, all
function conversation:fresh()
  return table.move(self.messages, self:last_exchange() + 1, #self.messages, 1, {})
end

--- Returns the tokens that are still too many.
local function shorten_old(self, excess)
  for i = KEPT + 1, self:last_exchange() - 1 do
    local message = self.messages[i]
    if excess <= 0 then break end
    local is_long = not message.shortened and #message.content > 2 * SHORT
    if message.role ~= "user" and is_long then excess = excess - shorten(self, i, SHORT) end
  end
  return excess
end

--- One message, which says how many there were, takes the place of exchanges after the task.
local function drop_exchanges(self, excess)
  local messages = self.messages
  local dropped = messages[KEPT + 1] and messages[KEPT + 1].dropped or 0
  local first, before = KEPT + (dropped > 0 and 2 or 1), dropped
  while excess > 0 and first < self:last_exchange() do
    repeat
      excess = excess - self:of(table.remove(messages, first))
    until messages[first].role == "assistant"
    dropped = dropped + 1
  end
  if dropped == before then return end
  if before == 0 then table.insert(messages, KEPT + 1, false) end
  messages[KEPT + 1] = { role = "user", dropped = dropped, content = prompts.dropped:format(dropped) }
end

--- To equal shares of the room, the longest to what the others leave; what fits stays. For example,
--- results of 100, 500 and 900 tokens in a room of 900: the first stays, its share is 300; the second
--- gets 400 (half of 800), and so does the third.
local function shorten_last(self, budget)
  local messages, results, room = self.messages, {}, budget - self:total()
  for i = math.max(self:last_exchange(), KEPT + 1), #messages do
    local message = messages[i]
    if message.role ~= "user" then results[#results + 1], room = i, room + self:of(message) end
  end
  table.sort(results, function(a, b) return self:of(messages[a]) < self:of(messages[b]) end)
  for done, i in ipairs(results) do
    local tokens, size = self:of(messages[i]), #messages[i].content
    local share = room // (#results - done + 1)
    local kept = math.max(SHORTEST, size * (share - MARK_TOKENS) // tokens)
    if tokens > share and size > kept then shorten(self, i, kept) end
    room = room - self:of(messages[i])
  end
end

---Makes the messages fit as far as possible. Shorter messages are new tables.
---@param budget integer tokens
---@return integer before tokens
---@return integer after tokens
function conversation:fit(budget)
  local before = self:total()
  if before <= budget then return before, before end
  drop_exchanges(self, shorten_old(self, before - math.floor(budget * LOW_WATER)))
  shorten_last(self, budget)
  return before, self:total()
end

return conversation
