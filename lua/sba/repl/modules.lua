-- SPDX-License-Identifier: Apache-2.0
-- Which modules there are, also as fields that are loaded when they are first asked for (native.process, sba.job.context); and under
-- which name a value is known.

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

---The modules one level below a prefix, in byte order.
---@param prefix string "sba.job"
---@return { name: string, deeper: integer }[] the last part of each name, and how many modules are below it
function modules.children(prefix)
  local list, start = {}, prefix .. "."
  for _, name in ipairs(modules.names()) do
    if name:sub(1, #start) == start then
      local child, rest = name:match("^([^.]+)(.*)$", #start + 1)
      if not list[1] or list[#list].name ~= child then list[#list + 1] = { name = child, deeper = 0 } end
      if rest ~= "" then list[#list].deeper = list[#list].deeper + 1 end
    end
  end
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

--- A field of the module of the namespace's own name, or a module below it.
function namespace.__index(space, key)
  local module = load_module(prefixes[space])
  local value = type(module) == "table" and module[key]
  if value then return value end
  for _, child in ipairs(modules.children(prefixes[space])) do
    if child.name == key then
      local name = prefixes[space] .. "." .. key
      value = child.deeper > 0 and modules.below(name) or require(name)
      rawset(space, key, value)
      return value
    end
  end
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

---@param value any
---@return string? prefix nil where it is no namespace
function modules.prefix(value) return prefixes[value] end

---@param space table a namespace
---@return string[] the names of its fields, in byte order
function modules.fields(space)
  local list, module = {}, load_module(prefixes[space])
  for i, child in ipairs(modules.children(prefixes[space])) do list[i] = child.name end
  for key in pairs(type(module) == "table" and module or {}) do
    if type(key) == "string" then list[#list + 1] = key end
  end
  table.sort(list)
  return list
end

---The name that a value is known by: that of a namespace or a handle, or where a function or table is found in the modules that are
---loaded ("native.process.run", "string.format").
---@param value any
---@return string?
function modules.name_of(value)
  if type(value) == "userdata" then
    local metatable = debug.getmetatable(value)
    local name = metatable and rawget(metatable, "__name")
    return type(name) == "string" and name or nil
  end
  if type(value) ~= "table" and type(value) ~= "function" then return nil end
  local best = prefixes[value]
  local function consider(name)
    name = name:gsub("^_G%.", "")
    if not best or #name < #best or #name == #best and name < best then best = name end
  end
  for module, content in pairs(package.loaded) do
    if rawequal(content, value) then consider(module) end
    for key, member in next, type(content) == "table" and content or {} do
      if rawequal(member, value) and type(key) == "string" then consider(module .. "." .. key) end
    end
  end
  return best
end

return modules
