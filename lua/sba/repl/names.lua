-- SPDX-License-Identifier: Apache-2.0
-- What modules there are, and under which name a value is known.

local bundle = require "native.bundle"

local names = {}

---Every module that require finds, in byte order: native, bundled, and the two libraries.
---@return string[]
function names.modules()
  local list = bundle.list ""
  for name in pairs(package.preload) do list[#list + 1] = name end
  table.sort(list)
  return list
end

---Where a function or table is found in the modules that are loaded: "native.process.run", "string.format".
---@param value function|table
---@return string?
function names.of(value)
  local best
  local function consider(name)
    name = name:gsub("^_G%.", "")
    if not best or #name < #best or #name == #best and name < best then best = name end
  end
  for module, content in pairs(package.loaded) do
    if rawequal(content, value) then consider(module) end
    if type(content) == "table" then
      for key, member in next, content do
        if rawequal(member, value) and type(key) == "string" then consider(module .. "." .. key) end
      end
    end
  end
  return best
end

---The type of a userdata, as C named it.
---@param value userdata
---@return string? "native.root"
function names.of_handle(value)
  local metatable = debug.getmetatable(value)
  local name = metatable and rawget(metatable, "__name")
  return type(name) == "string" and name or nil
end

return names
