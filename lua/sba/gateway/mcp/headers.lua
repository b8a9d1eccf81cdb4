-- SPDX-License-Identifier: Apache-2.0
-- `x-mcp-header` of revision 2026-07-28: arguments of a tool that are sent as headers too.

local json = require "sba.util.json"
local text = require "native.text"

local headers = {}

---@class mcp.header
---@field name string
---@field path string[] names of properties, from the arguments down

local MARK <const> = "x-mcp-header"
local primitive = { string = true, integer = true, boolean = true }

-- Keywords that hold values instead of schemas, and keywords that hold named schemas.
local values = { const = true, enum = true, default = true, examples = true, required = true }
local named = { properties = true, patternProperties = true, ["$defs"] = true, definitions = true, dependentSchemas = true }

local function refuse(...)
  error({ invalid = (...):format(select(2, ...)) }, 0)
end

local function check_name(name, seen)
  if type(name) ~= "string" or not name:find("^[%w!#$%%&'*+.^_`|~-]+$") then
    refuse("its %s %s cannot be part of a header's name", MARK, json.encode(name))
  end
  if seen[name:lower()] then refuse("its %s %q occurs twice", MARK, name) end
  seen[name:lower()] = true
end

local visit

--- Visits the schemas below a keyword. path is nil where a header is not allowed.
local function visit_below(keyword, value, path, found, seen)
  if named[keyword] then
    for name, schema in pairs(value) do
      local below
      if path and keyword == "properties" then
        below = table.move(path, 1, #path, 1, {})
        below[#below + 1] = name
      end
      visit(schema, below, found, seen)
    end
  elseif json.is_array(value) then
    for _, schema in ipairs(value) do visit(schema, nil, found, seen) end
  else
    visit(value, nil, found, seen)
  end
end

function visit(schema, path, found, seen)
  if type(schema) ~= "table" then return end
  local name = schema[MARK]
  if name ~= nil then
    if not path or #path == 0 then refuse("%s is not on an argument", MARK) end
    if not primitive[schema.type] then refuse("its %s is on an argument that is not a string, integer or boolean", MARK) end
    check_name(name, seen)
    found[#found + 1] = { name = name, path = path }
  end
  for keyword, value in pairs(schema) do
    if type(value) == "table" and not values[keyword] then visit_below(keyword, value, path, found, seen) end
  end
end

---The headers that a tool's schema names, or why the tool must not be used.
---@param schema table inputSchema
---@return mcp.header[]?, string? reason
function headers.wanted(schema)
  local found = {}
  local ok, problem = pcall(visit, schema, {}, found, {})
  if ok then return found end
  if type(problem) ~= "table" then error(problem, 0) end
  return nil, problem.invalid
end

---Encodes a value for a header.
---@param value string
---@return string
function headers.encoded(value)
  local plain = not value:find("[^\x20-\x7E]") and not value:find("^ ") and not value:find(" $")
  if plain and not (value:find("^=%?base64%?") and value:find("%?=$")) then return value end
  return "=?base64?" .. text.base64_encode(value) .. "?="
end

---A header line. An empty value is sent too: curl leaves out a line that ends with a colon, so it ends with a semicolon.
---@param name string
---@param value string
---@return string
function headers.line(name, value)
  if value == "" then return name .. ";" end
  return name .. ": " .. value
end

local function plain(value)
  if type(value) == "string" then return value end
  if type(value) == "boolean" then return tostring(value) end
  local integer = type(value) == "number" and math.tointeger(value)
  return integer and ("%d"):format(integer) or nil
end

--- The argument at a path; nil if there is none.
local function at(value, path)
  for _, name in ipairs(path) do
    if type(value) ~= "table" then return nil end
    value = value[name]
  end
  return value
end

---The header lines of a call.
---@param wanted mcp.header[]
---@param arguments table
---@return string[]
function headers.lines(wanted, arguments)
  local lines = {}
  for _, header in ipairs(wanted) do
    local value = plain(at(arguments, header.path))
    if value then lines[#lines + 1] = headers.line("Mcp-Param-" .. header.name, headers.encoded(value)) end
  end
  return lines
end

return headers
