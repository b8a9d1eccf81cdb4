-- SPDX-License-Identifier: Apache-2.0
-- A text of a step's result that stays in its file: native.file writes it into the journal a piece at a time.

local file = require "native.file"

---@class long_text: native.file.text
---@field shown string head and tail of it
---@field length integer bytes of it
---@operator len: integer
local long_text = {}
long_text.__index = long_text

---@param range native.file.text of a file, with what is shown of it; it is read once to measure it
---@return long_text|nil text, boolean|native.failure is_utf8
function long_text.new(range)
  local length, is_utf8 = file.append_text(range)
  range.length = length
  return length and setmetatable(range, long_text), is_utf8
end

function long_text:__len() return self.length end

return long_text
