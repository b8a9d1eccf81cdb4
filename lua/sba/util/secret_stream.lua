-- SPDX-License-Identifier: Apache-2.0
-- Makes foreign text in pieces UTF-8 without secrets. The end of a piece is held back while it may
-- begin a secret or a character.

local native = require "native.secret"
local text = require "native.text"

---@class secret.stream
local stream = {}
stream.__index = stream

-- Bytes that are held back; a longer secret is cut, and redacted on both sides.
local MOST_HELD <const> = 64 * 1024
local NOTE <const> = "\n[... %d bytes left out ...]\n"

-- is_cut: the bytes may end inside a secret. is_lost: an ending that looks like one is one.
local function take(self, size, is_cut, is_lost)
  local bytes = self.held:sub(1, size)
  self.held = self.held:sub(size + 1)
  -- Which ends of the bytes may be inside of a secret.
  local cut = self.is_cut and "start" or "none"
  if is_lost then cut = self.is_cut and "both" or "end" end
  if bytes ~= "" then self.is_cut = is_cut end
  return (text.repair(native.redact(bytes, cut)))
end

---@param bytes string
---@param missing? integer bytes left out before them
---@return string shown
function stream:add(bytes, missing)
  local before = ""
  if missing and missing > 0 then
    before = take(self, #self.held, true, true) .. NOTE:format(missing)
    self.is_cut = true
  end
  self.held = self.held .. bytes
  local settled, is_cut = native.settled(self.held)
  if #self.held - settled > MOST_HELD then return before .. take(self, #self.held, true, true) end
  return before .. take(self, settled, is_cut)
end

---@return string shown
function stream:finish() return take(self, #self.held, false) end

---@return secret.stream
return function() return setmetatable({ held = "", is_cut = false }, stream) end
