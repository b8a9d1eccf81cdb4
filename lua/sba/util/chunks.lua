-- SPDX-License-Identifier: Apache-2.0
-- A text as a list of strings that are written one after the other, so that large ones are never copied.

local chunks = {}

---Adds texts with a comma between each two.
---@param list string[]
---@param texts (string|string[])[] each whole or in parts
function chunks.add_list(list, texts)
  for i, text in ipairs(texts) do
    if i > 1 then list[#list + 1] = "," end
    if type(text) == "string" then list[#list + 1] = text else table.move(text, 1, #text, #list + 1, list) end
  end
end

---@param list string[]
---@return integer bytes
function chunks.size(list)
  local size = 0
  for _, chunk in ipairs(list) do size = size + #chunk end
  return size
end

return chunks
