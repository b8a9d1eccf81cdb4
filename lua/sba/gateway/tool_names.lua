-- SPDX-License-Identifier: Apache-2.0
-- Names of the gateway's tools for models: unique, of at most 64 letters, digits, _ and -.

local tool_names = {}

local LONGEST <const> = 64

--- A name that is not taken; a number is appended if necessary.
local function free(name, taken)
  local base, number = name:sub(1, LONGEST), 1
  local result = base
  while taken[result] do
    number = number + 1
    local suffix = "_" .. number
    result = base:sub(1, LONGEST - #suffix) .. suffix
  end
  return result
end

---@param tool string
---@param taken table<string, any> names in use
---@return string
function tool_names.mapped(tool, taken)
  local name = tool:gsub("[\xC2-\xF4][\x80-\xBF]+", "_"):gsub("[^%w_-]", "_")
  return free(name, taken)
end

return tool_names
