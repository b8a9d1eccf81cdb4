-- SPDX-License-Identifier: Apache-2.0
-- What messages cost in tokens. Until the server has counted, by kind of text and rather too much than too little; after each reply
-- what was sent costs what the server counted, and what comes is judged by how its kind turned out. Messages never change.

local json = require "sba.util.json"
local text = require "native.text"

local meter = {}
meter.__index = meter

local MESSAGE <const> = 8 -- tokens of a message's role and marks
-- Least and most that a token of each kind (see native.text.tokens) may turn out to be. A count below the least is not the whole
-- prompt's: some servers leave out what they had in their cache.
local KINDS <const> = { "words", "dense", "other" }
local LEAST <const> = { words = 0.4, dense = 0.25, other = 0.04 }
local MOST <const> = 3
local LEAST_LEARNED <const> = 64 -- tokens of new messages from which something is learned
local MAIN_SHARE <const> = 0.6 -- of those tokens that are of one kind

---@param tools integer tokens of the tools, estimated
function meter.new(tools)
  return setmetatable({ tools = tools, scale = { words = 1, dense = 1, other = 1 }, records = setmetatable({}, { __mode = "k" }) }, meter)
end

local function parts_of(utf8)
  local parts = {}
  parts.words, parts.dense, parts.other = text.tokens(utf8)
  return parts
end

local function sum(parts, factors)
  return parts.words * factors.words + parts.dense * factors.dense + parts.other * factors.other
end

---What a text costs, whatever was learned.
---@param utf8 string
---@return integer tokens
function meter.raw(utf8)
  local words, dense, other = text.tokens(utf8)
  return words + dense + other
end

--- Everything of a message that the model reads.
local function whole(message)
  local calls = message.tool_calls or {}
  if #calls == 0 and not message.thinking then return message.content or "" end
  local pieces = { message.content or "", message.thinking or "" }
  for _, call in ipairs(calls) do
    pieces[#pieces + 1] = call.name
    pieces[#pieces + 1] = call.written or call.arguments and json.encode(call.arguments)
  end
  return table.concat(pieces, "\n")
end

local function record_of(self, message)
  local record = self.records[message]
  if record then return record end
  local parts = parts_of(whole(message))
  record = {
    parts = parts, least = sum(parts, LEAST), raw = MESSAGE + parts.words + parts.dense + parts.other,
    tokens = math.ceil(MESSAGE + sum(parts, self.scale)),
  }
  self.records[message] = record
  return record
end

---@param message table
---@return integer tokens
function meter:of(message)
  return record_of(self, message).tokens
end

---A shorter message takes the place of one, at its price a token.
---@param old table
---@param new table
---@return integer tokens that are saved
function meter:replaced(old, new)
  local before, after = record_of(self, old), record_of(self, new)
  if before.counted then after.tokens, after.counted = math.ceil(before.tokens / before.raw * after.raw), true end
  return before.tokens - after.tokens
end

---@param messages table[]
---@return integer tokens
function meter:total(messages)
  local total = 0
  for _, message in ipairs(messages) do total = total + record_of(self, message).tokens end
  return total
end

---What a text at the end of a message costs.
---@param utf8 string
---@return integer tokens
function meter:text(utf8)
  return math.ceil(sum(parts_of(utf8), self.scale))
end

--- What new messages turned out to cost goes into the price of their kind, at once where they cost more.
local function learn_kind(self, parts, expected, ratio)
  for _, kind in ipairs(KINDS) do
    if parts[kind] * self.scale[kind] >= MAIN_SHARE * expected then
      local found = math.max(LEAST[kind], math.min(MOST, self.scale[kind] * ratio))
      self.scale[kind] = ratio > 1 and found or (self.scale[kind] + found) / 2
    end
  end
end

--- Sums of the messages that no count had in it before, and of the others.
local function tally(self, messages)
  local new, rest, least, parts = 0, 0, 0, { words = 0, dense = 0, other = 0 }
  for _, message in ipairs(messages) do
    local record = record_of(self, message)
    least = least + record.least
    if record.counted then
      rest = rest + record.tokens
    else
      new = new + record.tokens
      for _, kind in ipairs(KINDS) do parts[kind] = parts[kind] + record.parts[kind] end
    end
  end
  return new, rest, least, parts
end

---The server has counted a prompt.
---@param messages table[] that were sent
---@param status integer tokens of what was sent besides messages and tools
---@param count? integer tokens of the prompt; nil and 0: it does not say
---@param other_form? boolean whether the tools are told in another form than before: their price is to be learned again
function meter:learn(messages, status, count, other_form)
  local new, rest, least, parts = tally(self, messages)
  if not count or count < least or count == 0 then return end
  local first = other_form or not self.learned
  local known = rest + (first and 0 or self.tools) + status
  local expected = new + (first and self.tools or 0)
  local ratio = math.max(LEAST.other, (count - known) / math.max(1, expected))
  for _, message in ipairs(messages) do
    local record = record_of(self, message)
    if not record.counted then record.tokens = math.ceil(record.tokens * ratio) end
    record.counted = true
  end
  if expected >= LEAST_LEARNED then learn_kind(self, parts, expected, ratio) end
  -- What does not fit the messages is the tools': their price, and what a template adds or leaves out.
  self.tools, self.learned = math.max(0, count - status - self:total(messages)), true
end

return meter
