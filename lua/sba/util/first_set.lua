-- SPDX-License-Identifier: Apache-2.0
-- The first of several variables that is set; an empty one counts as not set.

---@param environment table<string, string>
---@param names string[]
---@return string? value, string? name
return function(environment, names)
  for _, name in ipairs(names) do
    local value = environment[name]
    if value and value ~= "" then return value, name end
  end
end
