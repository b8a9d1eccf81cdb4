-- SPDX-License-Identifier: Apache-2.0
-- Notices that a text which is streamed has become one token, line or paragraph over and over. What it looks at is bounded, so a long
-- text costs linear time.

local text = require "native.text"

local repetition = {}
repetition.__index = repetition

local LONGEST_PERIOD <const> = 2048 -- bytes of what is repeated
local PERIODS <const> = 12 -- times that it is there at least
local PROBE <const> = 64 -- bytes whose last occurrence before the end shows the period
local STEP <const> = 1024 -- bytes that come between two looks
local TOKEN <const>, TOKENS <const> = 32, 24 -- most bytes of a token; times that it is there at least

---@param least integer bytes that a short period fills at least, for some texts do repeat themselves
function repetition.new(least)
  return setmetatable({ least = least, kept = least + PERIODS * LONGEST_PERIOD, tail = "", pending = {}, size = 0 }, repetition)
end

--- The end of the text so far.
local function gather(self)
  self.tail = (self.tail .. table.concat(self.pending)):sub(-self.kept)
  self.pending, self.size = {}, 0
  return self.tail
end

local function is_periodic(tail, period, size)
  if #tail < size then return false end
  local last = tail:sub(-size)
  return last:sub(1, -period - 1) == last:sub(period + 1)
end

---Takes the next piece.
---@param piece string
---@return string? repeated what the text repeats
function repetition:add(piece)
  self.pending[#self.pending + 1], self.size = piece, self.size + #piece
  if self.size < STEP then return nil end
  local tail = gather(self)
  local backwards = tail:sub(-(LONGEST_PERIOD + PROBE)):reverse()
  local at = #tail > PROBE and text.find(backwards, backwards:sub(1, PROBE), 2)
  local period = at and at - 1
  return period and is_periodic(tail, period, self.least + PERIODS * period) and tail:sub(-period) or nil
end

---Whether a text that has ended ends in one token over and over: Ollama breaks a reply off after 30 of them.
---@return string? repeated
function repetition:at_end()
  local tail = gather(self)
  for period = 1, TOKEN do
    if is_periodic(tail, period, TOKENS * period) then return tail:sub(-period) end
  end
end

---A text without the repetition at its end, of which one stays.
---@param whole string
---@param repeated string what it repeats
---@return string
function repetition.without(whole, repeated)
  local period, last = #repeated, #whole
  while last >= 2 * period and whole:sub(last - 2 * period + 1, last - period) == whole:sub(last - period + 1, last) do
    last = last - period
  end
  return last == #whole and whole or text.cut(whole, last) .. " [...]"
end

return repetition
