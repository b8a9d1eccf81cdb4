-- SPDX-License-Identifier: Apache-2.0
-- Looks for words in what a server said, in lower case.

local said = {}

local UNDERSCORE <const> = 0x5F

local function is_letter(byte) return byte ~= nil and string.find(string.char(byte), "%w") ~= nil end
local function is_of_name(byte) return byte == UNDERSCORE or is_letter(byte) end

---@param text string
---@param ... string any of these parts
---@return boolean
function said.has(text, ...)
  for _, part in ipairs { ... } do
    if text:find(part, 1, true) then return true end
  end
  return false
end

local function each(text, part, fits)
  local first, last = text:find(part, 1, true)
  while first do
    if fits(text:byte(first - 1), text:byte(last + 1)) then return true end
    first, last = text:find(part, last + 1, true)
  end
  return false
end

---Whether a name is there, as a whole.
---@param text string
---@param name string
---@return boolean
function said.has_word(text, name)
  return each(text, name, function(before, after) return not is_of_name(before) and not is_of_name(after) end)
end

---Whether a word is there that begins with one of these, also within a name.
---@param text string
---@param stems string[]
---@return boolean
function said.has_stem(text, stems)
  for _, stem in ipairs(stems) do
    if each(text, stem, function(before) return not is_letter(before) end) then return true end
  end
  return false
end

return said
