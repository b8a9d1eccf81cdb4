-- SPDX-License-Identifier: Apache-2.0
-- When a file that grows is worth writing again. Small files follow every change, at the next tick; a large one is written
-- when it has doubled or has become old, so that all writing together stays near twice the last size, however many changes
-- come.

local interrupt = require "native.interrupt"

local checkpoint = {}
checkpoint.__index = checkpoint

local SMALL <const> = 64 * 1024 -- bytes
local OLD <const> = 1 -- seconds
local COST_FACTOR <const> = 20 -- a write that took t seconds is not repeated for its age alone within 20 t

---@class checkpoint
---@field size integer bytes of the last write

--- Watches over what write writes whole.
---@param write fun(): integer? its bytes; nil when it failed (then only age makes it try again)
---@return checkpoint
function checkpoint.new(write)
  return setmetatable({ write_whole = write, size = 0, pending = 0, dirty = false, cost = 0, at = interrupt.now() }, checkpoint)
end

--- Writes now.
---@return integer? bytes nil when it failed
function checkpoint:write()
  local begun = interrupt.now()
  local size = self.write_whole()
  self.at = interrupt.now()
  self.cost = self.at - begun
  self.failed = size == nil
  if size then
    self.size, self.pending, self.dirty = size, 0, false
  end
  return size
end

function checkpoint:is_old()
  return interrupt.now() - self.at >= math.max(OLD, COST_FACTOR * self.cost)
end

function checkpoint:is_due()
  if self:is_old() then return true end
  if self.failed then return false end
  return self.size + self.pending < SMALL or self.pending >= self.size
end

--- So many bytes were added or changed.
---@param bytes integer
function checkpoint:changed(bytes)
  self.pending, self.dirty = self.pending + bytes, true
end

--- To be called now and then: writes if something changed and it is worth it.
function checkpoint:tick()
  if self.dirty and self:is_due() then self:write() end
end

return checkpoint
