-- SPDX-License-Identifier: Apache-2.0
-- Foreign text that comes in pieces, made UTF-8 without secrets before its end is there: the end of a piece is held back while it may be
-- the beginning of a secret or of a character.

local secret = require "native.secret"
local text = require "native.text"

local live_text = {}
live_text.__index = live_text

local MOST_HELD <const> = 64 * 1024 -- bytes; a longer secret is cut, and redacted on both sides
local NOTE <const> = "\n[... %d bytes left out ...]\n"

function live_text.new() return setmetatable({ held = "", is_cut = false }, live_text) end

--- Gives out the first bytes of what is held. is_cut: they may end inside a secret. is_lost: an ending that looks like one is one.
local function take(self, size, is_cut, is_lost)
  local bytes = self.held:sub(1, size)
  self.held = self.held:sub(size + 1)
  local cut = self.is_cut and "start" or "none"
  if is_lost then cut = self.is_cut and "both" or "end" end
  if bytes ~= "" then self.is_cut = is_cut end
  return (text.repair(secret.redact(bytes, cut)))
end

---@param bytes string
---@param missing? integer bytes that are left out before them
---@return string shown what can be shown now
function live_text:add(bytes, missing)
  local before = ""
  if missing and missing > 0 then
    before = take(self, #self.held, true, true) .. NOTE:format(missing)
    self.is_cut = true
  end
  self.held = self.held .. bytes
  local settled, is_cut = secret.settled(self.held)
  if #self.held - settled > MOST_HELD then return before .. take(self, #self.held, true, true) end
  return before .. take(self, settled, is_cut)
end

---@return string shown what is still held
function live_text:finish() return take(self, #self.held, false) end

return live_text
