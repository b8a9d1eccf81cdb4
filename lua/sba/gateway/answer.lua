-- SPDX-License-Identifier: Apache-2.0
-- Finds a text in a tool's answer by the names that gateways give it, in the value itself or in what it wraps.

local json = require "sba.util.json"

local WRAPPERS <const> = { "artifact", "skill", "result", "data" }

---@param value any
---@param names string[] the first that is there counts
---@param depth integer how many wrappers are looked into
---@return string? text
---@return table? holder the object whose field it is
local function find(value, names, depth)
  if not json.is_object(value) then return nil end
  for _, name in ipairs(names) do
    local text = value[name]
    if type(text) == "string" and text ~= "" then return text, value end
  end
  for _, name in ipairs(depth > 0 and WRAPPERS or {}) do
    local text, holder = find(value[name], names, depth - 1)
    if text then return text, holder end
  end
end

return find
