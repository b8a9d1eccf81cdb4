-- SPDX-License-Identifier: Apache-2.0
-- When a file that follows the job is written again: at most every 200 ms, and less often where
-- writing it is slow.

local interrupt = require "native.interrupt"

local checkpoint = {}
checkpoint.__index = checkpoint

-- Seconds from one write to the next.
local INTERVAL <const> = 0.2
-- The pause after a write, by its duration: writing takes a twentieth of the time.
local COST_FACTOR <const> = 19

---@class checkpoint
---@field dirty boolean something changed since the last write
---@field write_whole fun(): boolean?
---@field affordable number as interrupt.now: from then on a write costs no more than its share
---@field not_before number the same, and INTERVAL is over

---@param write fun(): boolean? writes the whole file; falsy when it failed
---@return checkpoint
function checkpoint.new(write)
  return setmetatable({ write_whole = write, dirty = false, affordable = 0, not_before = 0 }, checkpoint)
end

---@return boolean? written
function checkpoint:write()
  local begun, written = interrupt.now(), self.write_whole()
  local ended = interrupt.now()
  self.affordable = ended + COST_FACTOR * (ended - begun)
  self.not_before = math.max(ended + INTERVAL, self.affordable)
  self.dirty = not written
  return written
end

function checkpoint:changed() self.dirty = true end

---Writes a change when its time has come.
function checkpoint:tick()
  if self.dirty and interrupt.now() >= self.not_before then self:write() end
end

---Does not wait for INTERVAL: what begins now may take long without a tick.
function checkpoint:hurry()
  if self.dirty and interrupt.now() >= self.affordable then self:write() end
end

function checkpoint:flush()
  if self.dirty then self:write() end
end

return checkpoint
