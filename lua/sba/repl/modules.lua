-- SPDX-License-Identifier: Apache-2.0
-- Which modules there are, also as fields that are loaded when they are first asked for: native.process, sba.job.context.

local bundle = require "native.bundle"

local modules = {}

---Every module that require finds, in byte order: native, bundled, and the two libraries.
---@return string[]
function modules.names()
  local list = bundle.list ""
  for name in pairs(package.preload) do list[#list + 1] = name end
  table.sort(list)
  return list
end

local prefixes = setmetatable({}, { __mode = "k" }) -- namespace -> "sba.job"
local namespace = { __name = "namespace" }

--- The module of that name, or nil.
local function load_module(name)
  for _, other in ipairs(modules.names()) do
    if other == name then return require(name) end
  end
end

--- Whether there are modules below a name.
local function is_directory(name)
  for _, other in ipairs(modules.names()) do
    if other:sub(1, #name + 1) == name .. "." then return true end
  end
  return false
end

--- A field of the module of the namespace's own name, or a module below it.
function namespace.__index(space, key)
  local module, name = load_module(prefixes[space]), prefixes[space] .. "." .. tostring(key)
  local value = type(module) == "table" and module[key]
  if value then return value end
  value = is_directory(name) and modules.below(name) or load_module(name)
  rawset(space, key, value)
  return value
end

function namespace.__call(space, ...) return load_module(prefixes[space])(...) end

function namespace.__tostring(space)
  return ("%s: %s"):format(prefixes[space], table.concat(modules.fields(space), ", "))
end

---A namespace: a table whose fields are the modules below a prefix, and what the module of that name offers.
---@param prefix string "native"
---@return table
function modules.below(prefix)
  local space = setmetatable({}, namespace)
  prefixes[space] = prefix
  return space
end

---The fields of a namespace; nil where the value is none.
---@param space any
---@return string[]? names in byte order
function modules.fields(space)
  local prefix = prefixes[space]
  if not prefix then return nil end
  local module, seen, list = load_module(prefix), {}, {}
  local function add(key)
    if type(key) == "string" and not seen[key] then list[#list + 1], seen[key] = key, true end
  end
  for _, name in ipairs(modules.names()) do
    if name:sub(1, #prefix + 1) == prefix .. "." then add(name:match("^[^.]+", #prefix + 2)) end
  end
  for key in pairs(type(module) == "table" and module or {}) do add(key) end
  table.sort(list)
  return list
end

return modules
