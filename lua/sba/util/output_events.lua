-- SPDX-License-Identifier: Apache-2.0
-- What runs says, as events of the JSON log: seldom and little at once, what is left out counted; or, where the log follows it, all.

local text = require "native.text"

local output_events = {}
output_events.__index = output_events

local INTERVAL <const> = 1 -- seconds from the first output to the first event, and from one to the next
local MOST <const> = 4096 -- bytes in one event: the last ones

---@param write fun(output: string, left_out?: integer) writes an event: text, and bytes that are left out before it
---@param now fun(): number seconds
---@param follow? boolean all is told
function output_events.new(write, now, follow)
  return setmetatable({ write = write, now = now, follow = follow, pending = "", left_out = 0, not_before = 0 }, output_events)
end

---@param piece string UTF-8, without secrets
function output_events:add(piece)
  if not self.has_begun then self.has_begun, self.not_before = true, self.now() + INTERVAL end
  self.pending = self.pending .. piece
  if not self.follow and #self.pending > MOST then
    local kept = text.tail(self.pending, MOST)
    self.left_out = self.left_out + #self.pending - #kept
    self.pending = kept
  end
  self:tick()
end

---To be called now and then.
function output_events:tick()
  if self.pending == "" or not self.follow and self.now() < self.not_before then return end
  self.write(self.pending, self.left_out > 0 and self.left_out or nil)
  self.pending, self.left_out, self.not_before, self.has_told = "", 0, self.now() + INTERVAL, true
end

---Whatever is said from now on is another's.
---@return integer? left_out bytes that came after the last event; nil where there was none
function output_events:finish()
  self:tick()
  local left_out = self.has_told and self.left_out + #self.pending or nil
  self.pending, self.left_out, self.has_told, self.has_begun = "", 0, nil, nil
  return left_out and left_out > 0 and left_out or nil
end

return output_events
