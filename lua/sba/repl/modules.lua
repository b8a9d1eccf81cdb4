-- SPDX-License-Identifier: Apache-2.0
-- Which modules there are, also as fields that are loaded when they are first asked for: native.process, sba.job.context.

local bundle = require "native.bundle"

local modules = {}

--- Every module that require finds: native, bundled, and the two libraries.
local function module_names()
  local list = bundle.list ""
  for name in pairs(package.preload) do list[#list + 1] = name end
  return list
end

---@type table<table, table<string, true>> the names of the fields of each namespace
modules.fields = setmetatable({}, { __mode = "k" })

---A namespace: a table whose fields are the modules below a prefix, and what the module of that name offers.
---@param prefix string "native"
---@return table
function modules.below(prefix)
  local fields, is_module, is_directory, own = {}, {}, {}, nil
  for _, name in ipairs(module_names()) do
    if name == prefix then own = require(name) end
    if name:sub(1, #prefix + 1) == prefix .. "." then
      local key, more = name:match("^([^.]+)(.*)", #prefix + 2)
      fields[key], is_module[key], is_directory[key] = true, is_module[key] or more == "", is_directory[key] or more ~= ""
    end
  end
  local space = setmetatable({}, { __index = function(space, key)
    local name = prefix .. "." .. tostring(key)
    local value = is_directory[key] and modules.below(name) or is_module[key] and require(name) or type(own) == "table" and own[key] or nil
    rawset(space, key, value)
    return value
  end })
  for key in pairs(type(own) == "table" and own or {}) do fields[key] = true end
  modules.fields[space] = fields
  return space
end

return modules
