-- SPDX-License-Identifier: Apache-2.0
-- What messages cost in tokens: an estimate until the server has counted a prompt, from then on its count.

local json = require "sba.util.json"
local text = require "native.text"

local meter = {}
meter.__index = meter

local MESSAGE <const> = 8 -- tokens of a message's role and marks
local LEAST <const> = 0.1 -- of the estimate; a smaller count leaves out what the server had in its cache
local MOST <const> = 3 -- times the estimate that a token may turn out to cost
local LEAST_LEARNED <const> = 64 -- tokens of new messages from which something is learned

---@param tools integer tokens of the tools, estimated
function meter.new(tools)
  local cost, is_counted = setmetatable({}, { __mode = "k" }), setmetatable({}, { __mode = "k" }) -- by message
  return setmetatable({ tools = tools, scale = 1, cost = cost, is_counted = is_counted }, meter)
end

---The estimate for a text.
---@param utf8 string
---@return integer tokens
function meter.raw(utf8)
  local words, dense, other = text.tokens(utf8)
  return words + dense + other
end

local function estimate(message)
  local pieces = { (message.content or "") .. (message.thinking or "") }
  for _, call in ipairs(message.tool_calls or {}) do
    pieces[#pieces + 1] = call.name .. "\n" .. (call.written or json.encode(call.arguments or {}))
  end
  return MESSAGE + meter.raw(table.concat(pieces, "\n"))
end

---@param message table
---@return integer tokens
function meter:of(message)
  self.cost[message] = self.cost[message] or math.ceil(estimate(message) * self.scale)
  return self.cost[message]
end

---@param messages table[]
---@return integer tokens
function meter:total(messages)
  local total = 0
  for _, message in ipairs(messages) do total = total + self:of(message) end
  return total
end

---@param utf8 string
---@return integer tokens of a text at the end of a message
function meter:text(utf8) return math.ceil(meter.raw(utf8) * self.scale) end

---Puts a shorter message in the place of one, at the same price a token.
---@param messages table[]
---@param i integer
---@param shorter table
---@return integer tokens that are saved
function meter:replace(messages, i, shorter)
  local old = messages[i]
  local before = self:of(old)
  self.cost[shorter], messages[i] = math.ceil(before * estimate(shorter) / estimate(old)), shorter
  self.is_counted[shorter] = self.is_counted[old]
  return before - self.cost[shorter]
end

---The server has counted a prompt: its new messages, and the first time its tools, cost what the others leave of the count.
---@param messages table[] that were sent
---@param status integer tokens of what was sent besides messages and tools
---@param count? integer tokens of the prompt; nil and 0: it does not say
---@param other_form? boolean whether the tools are told in another form than before: their price is to be learned again
function meter:learn(messages, status, count, other_form)
  if not count or count < LEAST * self:total(messages) or count == 0 then return end
  local first, new = other_form or not self.learned, 0
  for _, message in ipairs(messages) do
    if not self.is_counted[message] then new = new + self:of(message) end
  end
  local known = self:total(messages) - new + status + (first and 0 or self.tools)
  local ratio = math.max(LEAST, (count - known) / math.max(1, new + (first and self.tools or 0)))
  for _, message in ipairs(messages) do
    if not self.is_counted[message] then self.cost[message] = math.ceil(self.cost[message] * ratio) end
    self.is_counted[message] = true
  end
  -- Prose shows little of what numbers cost: what comes is never taken for cheaper than the estimate.
  if new > LEAST_LEARNED then self.scale = math.min(MOST, math.max(1, self.scale * ratio)) end
  self.tools, self.learned = math.max(0, count - status - self:total(messages)), true
end

return meter
