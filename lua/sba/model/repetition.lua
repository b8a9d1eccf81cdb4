-- SPDX-License-Identifier: Apache-2.0
-- Notices that a text has become one token, line or paragraph over and over, while it comes in
-- pieces.

local text = require "native.text"

local repetition = {}
repetition.__index = repetition

-- Bytes of what is repeated, and how often it must be there.
local LONGEST_PERIOD <const>, PERIODS <const> = 2048, 12
-- The same of a token at the end.
local LONGEST_TOKEN <const>, TOKENS <const> = 32, 24
-- Bytes whose last occurrence before the end shows the period.
local PROBE <const> = 64
local STEP <const> = 1024 -- bytes between two looks

---Only the last bytes are looked at, so a long text costs linear time.
---@param least integer bytes that a repetition fills, for some texts do repeat themselves
function repetition.new(least)
  local kept = least + PERIODS * LONGEST_PERIOD
  return setmetatable({ least = least, kept = kept, tail = "", pending = {}, size = 0 }, repetition)
end

local function tail_of(self)
  self.tail = (self.tail .. table.concat(self.pending)):sub(-self.kept)
  self.pending, self.size = {}, 0
  return self.tail
end

local function is_periodic(tail, period, size)
  if #tail < size then return false end
  local last = tail:sub(-size)
  return last:sub(1, -period - 1) == last:sub(period + 1)
end

---@param piece string
---@return string? repeated
function repetition:add(piece)
  self.pending[#self.pending + 1], self.size = piece, self.size + #piece
  if self.size < STEP then return nil end
  local tail = tail_of(self)
  local backwards = tail:sub(-(LONGEST_PERIOD + PROBE)):reverse()
  local at = #tail > PROBE and text.find(backwards, backwards:sub(1, PROBE), 2)
  local period = at and at - 1
  if period and is_periodic(tail, period, self.least + PERIODS * period) then return tail:sub(-period) end
end

---Ollama silently breaks off a stream after 30 equal tokens.
---@return string? repeated token
function repetition:at_end()
  local tail = tail_of(self)
  for period = 1, LONGEST_TOKEN do
    if is_periodic(tail, period, TOKENS * period) then return tail:sub(-period) end
  end
end

-- The end of the first copy.
local function end_of_first(whole, repeated)
  local period, last = #repeated, #whole
  local function copy_up_to(at) return whole:sub(at - period + 1, at) end
  while last >= 2 * period and copy_up_to(last) == copy_up_to(last - period) do last = last - period end
  return last
end

---@param whole string
---@param repeated string
---@return string whole with one copy at its end
function repetition.once(whole, repeated)
  local last = end_of_first(whole, repeated)
  return last == #whole and whole or text.cut(whole, last) .. " [...]"
end

---@param whole string
---@param repeated string as it stands at the end
---@return string[] before what may stand before it; two texts, because the first copy may have
---begun in the middle of what repeats. The whole text, where it does not repeat
function repetition.before(whole, repeated)
  local last, at = end_of_first(whole, repeated) - #repeated, #repeated
  if last + #repeated == #whole then return { whole } end
  local before = whole:sub(1, last)
  while last > 0 and at > 0 and whole:byte(last) == repeated:byte(at) do last, at = last - 1, at - 1 end
  return { before, whole:sub(1, last) }
end

return repetition
