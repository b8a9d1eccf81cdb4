-- SPDX-License-Identifier: Apache-2.0
-- What may follow at the prompt: globals, fields, methods, and names of modules in require "". Nothing of a value is run.

local file = require "native.file"
local modules = require "sba.repl.modules"

local MOST_SHOWN <const> = 200
local DEEPEST <const> = 10 -- tables that inherit from each other

local keywords <const> = {
  "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in", "local", "nil", "not", "or", "repeat",
  "return", "then", "true", "until", "while",
}

--- The fields of a value by their names, inherited ones too. Of those that are not loaded yet the content is true.
local function fields_of(value)
  local fields, names = {}, modules.fields(value)
  for _, name in ipairs(names or {}) do fields[name] = true end
  for _ = 1, names and 0 or DEEPEST do
    for key, content in next, type(value) == "table" and value or {} do
      if type(key) == "string" and key:find("^[%a_][%w_]*$") and fields[key] == nil then fields[key] = content end
    end
    local metatable = debug.getmetatable(value)
    value = type(metatable) == "table" and rawget(metatable, "__index") or nil
    if type(value) ~= "table" then break end
  end
  return fields
end

--- The value that a path names from the globals on: "native.workspace", "w". Nil where a part of it does not exist.
local function value_at(globals, path)
  local value = globals
  for key in path:gmatch("[^.:]+") do
    if modules.fields(value) then value = value[key] else value = fields_of(value)[key] end
    if value == nil then return nil end
  end
  return value
end

--- Names that begin so, in byte order.
local function matching(partial, fields)
  local list = {}
  for name in pairs(fields) do
    if name:sub(1, #partial) == partial and (partial ~= "" or name:sub(1, 2) ~= "__") then list[#list + 1] = name end
  end
  table.sort(list)
  return list
end

local function fields_of_path(globals, path)
  local owner, separator, partial = path:match("^(.-)([.:]?)([%w_]*)$") -- bounded: typed by a person
  local value = value_at(globals, owner)
  local fields = value ~= nil and fields_of(value) or {}
  for _, word in ipairs(separator == "" and keywords or {}) do fields[word] = true end
  for name, content in pairs(separator == ":" and fields or {}) do
    if content ~= true and type(content) ~= "function" then fields[name] = nil end
  end
  return partial, fields
end

local function common_beginning(list)
  local first, last = list[1], list[#list] -- in byte order these two differ the earliest
  local size = 0
  while size < #first and first:byte(size + 1) == last:byte(size + 1) do size = size + 1 end
  return first:sub(1, size)
end

--- The list in columns.
local function in_columns(list)
  local widest, shown, parts = 0, math.min(#list, MOST_SHOWN), {}
  for i = 1, shown do widest = math.max(widest, #list[i]) end
  local columns = math.max(1, (file.terminal_columns(1) or 80) // (widest + 2))
  for i = 1, shown do
    local is_last = i % columns == 0 or i == shown
    parts[i] = is_last and list[i] .. (i < shown and "\n" or "") or ("%-" .. widest .. "s  "):format(list[i])
  end
  if shown < #list then parts[#parts + 1] = ("\nand %d more"):format(#list - shown) end
  return table.concat(parts)
end

---What fits at the cursor of a line, as native.line_editor asks.
---@param globals table
---@return fun(line: string, cursor: integer): string?, string?
return function(globals)
  return function(line, cursor)
    local before = line:sub(1, cursor)
    if not before:find("%S") then return "  " end
    local partial, fields = before:match("%f[%w_]require%s*%(?%s*[\"']([%w_.]*)$"), {} -- bounded: typed by a person
    local path = before:match("[%a_][%w_.:]*$") -- bounded: typed by a person
    if partial then
      for _, name in ipairs(modules.names()) do fields[name] = true end
    elseif path then
      partial, fields = fields_of_path(globals, path)
    end
    local list = matching(partial or "", fields)
    if #list == 0 then return nil end
    local beginning = common_beginning(list):sub(#partial + 1)
    if beginning ~= "" then return beginning end
    return nil, #list > 1 and in_columns(list) or nil
  end
end
