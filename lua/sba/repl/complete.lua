-- SPDX-License-Identifier: Apache-2.0
-- What may follow at the prompt: globals, fields and methods. Nothing of a value is run.

local namespaces = require "sba.repl.globals".namespaces

local MOST_SHOWN <const> = 200
-- Tables that inherit from each other.
local DEEPEST <const> = 10

-- Inherited ones too; true for those of a namespace, which may not be loaded yet.
local function fields_of(value)
  if namespaces[value] then return namespaces[value] end
  local fields = {}
  for _ = 1, DEEPEST do
    for key, content in next, type(value) == "table" and value or {} do
      local is_name = type(key) == "string" and key:find("^[%a_][%w_]*$")
      if is_name and fields[key] == nil then fields[key] = content end
    end
    local metatable = debug.getmetatable(value)
    value = type(metatable) == "table" and rawget(metatable, "__index") or nil
    if type(value) ~= "table" then break end
  end
  return fields
end

-- "native.workspace", "w"; nil where a part does not exist.
local function value_at(globals, path)
  local value = globals
  for key in path:gmatch("[^.:]+") do
    if namespaces[value] then value = value[key] else value = fields_of(value)[key] end
    if value == nil then return nil end
  end
  return value
end

-- What the last name of a path may be, in byte order; what of it is typed.
local function names_of(globals, path)
  local owner, separator, partial = path:match("^(.-)([.:]?)([%w_]*)$") -- bounded: typed by a person
  local value, names = value_at(globals, owner), {}
  for name, content in pairs(value ~= nil and fields_of(value) or {}) do
    local fits = name:sub(1, #partial) == partial and (partial ~= "" or name:sub(1, 2) ~= "__")
    local is_called = content == true or type(content) == "function"
    if fits and (separator ~= ":" or is_called) then names[#names + 1] = name end
  end
  table.sort(names)
  return names, partial
end

local function common_beginning(list)
  -- In byte order these two differ the earliest.
  local first, last, size = list[1], list[#list], 0
  while size < #first and first:byte(size + 1) == last:byte(size + 1) do size = size + 1 end
  return first:sub(1, size)
end

---For native.line_editor.
---@param globals table
---@return fun(line: string, cursor: integer): string?, string?
return function(globals)
  return function(line, cursor)
    local before = line:sub(1, cursor)
    if not before:find("%S") then return "  " end
    local path = before:match("[%a_][%w_.:]*$") -- bounded: typed by a person
    if not path then return nil end
    local names, partial = names_of(globals, path)
    if #names == 0 then return nil end
    local beginning = common_beginning(names):sub(#partial + 1)
    if beginning ~= "" then return beginning end
    return nil, #names > 1 and table.concat(names, "  ", 1, math.min(#names, MOST_SHOWN)) or nil
  end
end
