-- SPDX-License-Identifier: Apache-2.0
-- Modules as fields, loaded when they are first asked for: native.process, sba.job.context.

local names = require "sba.repl.names"

local namespace = {}

local prefix_of = setmetatable({}, { __mode = "k" }) -- namespace -> "sba.job"
local metatable = { __name = "namespace" }

local function is_module(name)
  for _, module in ipairs(names.modules()) do
    if module == name then return true end
  end
  return false
end

local function children(prefix)
  local list, seen = {}, {}
  for _, module in ipairs(names.modules()) do
    local child = module:sub(1, #prefix + 1) == prefix .. "." and module:sub(#prefix + 2):match("^[^.]+")
    if child and not seen[child] then
      seen[child] = true
      list[#list + 1] = child
    end
  end
  return list
end

--- The module that a namespace itself is, or nil.
local function own(space)
  local prefix = prefix_of[space]
  return is_module(prefix) and require(prefix) or nil
end

function metatable.__index(space, key)
  local module = own(space)
  local value = type(module) == "table" and module[key]
  if value then return value end
  local name = ("%s.%s"):format(prefix_of[space], key)
  if #children(name) > 0 then
    value = namespace.new(name)
  elseif is_module(name) then
    value = require(name)
  else
    return nil
  end
  rawset(space, key, value)
  return value
end

function metatable.__call(space, ...)
  return own(space)(...)
end

function metatable.__tostring(space)
  return ("%s: %s"):format(prefix_of[space], table.concat(namespace.names(space), ", "))
end

---@param prefix string "native"
---@return table
function namespace.new(prefix)
  local space = setmetatable({}, metatable)
  prefix_of[space] = prefix
  return space
end

---@param value any
---@return string? prefix nil where it is no namespace
function namespace.prefix(value)
  return prefix_of[value]
end

---What a namespace holds, in byte order: the modules below it, and what the module of its own name offers.
---@param space table
---@return string[]
function namespace.names(space)
  local list = children(prefix_of[space])
  local module = own(space)
  for key in pairs(type(module) == "table" and module or {}) do
    if type(key) == "string" then list[#list + 1] = key end
  end
  table.sort(list)
  return list
end

return namespace
