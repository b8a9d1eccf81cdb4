-- SPDX-License-Identifier: Apache-2.0
-- Looks for words in what a server said, in lower case. Words that are looked for as a whole, or by
-- their stem, are of letters, digits, "_" and blanks.

local said = {}

---@param text string
---@param parts string[]
---@return boolean whether any of them is there
function said.has(text, parts)
  for _, part in ipairs(parts) do
    if text:find(part, 1, true) then return true end
  end
  return false
end

---@param text string
---@param words string[]
---@return boolean whether any of them is there as a whole: "think" is not in "thinking"
function said.has_word(text, words)
  for _, word in ipairs(words) do
    if text:find("%f[%w_]" .. word .. "%f[^%w_]") then return true end -- bounded: nothing repeats
  end
  return false
end

---@param text string
---@param stems string[]
---@return boolean whether a word begins with any of them, also within a name: "max_tokens"
function said.has_stem(text, stems)
  for _, stem in ipairs(stems) do
    if text:find("%f[%w]" .. stem) then return true end -- bounded: nothing repeats
  end
  return false
end

return said
