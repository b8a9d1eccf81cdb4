-- SPDX-License-Identifier: Apache-2.0
-- Whether a schema is one that sba.util.schema_check understands whole: a keyword that nobody reads would allow what
-- its author meant to refuse.

local json = require "sba.util.json"
local schema_check = require "sba.util.schema_check"

local walk

local function is(kind)
  return function(value)
    if type(value) ~= kind then return "must be a " .. kind end
  end
end

local function one_schema(value, path, seen)
  if type(value) ~= "table" then return "must be a schema" end
  return walk(value, path, seen)
end

local function schema_or_boolean(value, path, seen)
  if type(value) ~= "boolean" then return one_schema(value, path, seen) end
end

local function each_schema(value, path, seen)
  if type(value) ~= "table" then return "must be a table of schemas" end
  for name, part in pairs(value) do
    local mistake = one_schema(part, path .. "." .. name, seen)
    if mistake then return mistake end
  end
end

local function strings(value)
  if type(value) ~= "table" then return "must be a list of strings" end
  for _, name in pairs(value) do
    if type(name) ~= "string" then return "must be a list of strings" end
  end
end

local function one_name_each(value)
  for _, part in ipairs(value) do
    if type(part.required) ~= "table" or #part.required ~= 1 or next(part, next(part)) then
      return "must have parts that each require one name, and no more"
    end
  end
end

local function names(value)
  if type(value) ~= "table" or type(value.pattern) ~= "string" or type(value.title) ~= "string" then
    return "must have a pattern and a title"
  end
end

local types = { string = true, integer = true, number = true, boolean = true, array = true, object = true, null = true }

local function type_names(value)
  for _, name in ipairs(type(value) == "table" and value or { value }) do
    if not types[name] then return ("has the unknown type '%s'"):format(tostring(name)) end
  end
end

local keywords = {
  type = type_names, enum = is "table", const = function() end, default = function() end,
  properties = each_schema, additionalProperties = schema_or_boolean, items = one_schema, oneOf = one_name_each,
  propertyNames = names, required = strings, order = strings, aliases = strings,
  minimum = is "number", exclusiveMinimum = is "number", maximum = is "number",
  minLength = is "number", maxLength = is "number", minItems = is "number", maxItems = is "number",
  pattern = is "string", nul = is "boolean",
  description = is "string", title = is "string", examples = is "table", printed = is "table",
}

-- Names in order, required and aliases must be properties; an alias stands for an optional one only.
local function names_mistake(schema)
  local properties, required = schema.properties or {}, {}
  for _, name in ipairs(schema.required or {}) do
    if schema.properties and not properties[name] then
      return ("required names '%s', which is not a property"):format(name)
    end
    required[name] = true
  end
  for _, name in ipairs(schema.order or {}) do
    if not properties[name] then return ("order names '%s', which is not a property"):format(name) end
  end
  for alias, name in pairs(schema.aliases or {}) do
    if not properties[name] or properties[alias] or required[name] then
      return ("the alias '%s' must stand for an optional property and be none itself"):format(alias)
    end
  end
end

local function default_mistake(schema)
  if schema.default == nil then return nil end
  local _, errors = schema_check.check(json.decode(json.encode(schema.default)), schema, { total = 0, limit = 1 })
  return errors[1] and "default: " .. errors[1].message
end

function walk(schema, path, seen)
  if seen[schema] then return nil end
  seen[schema] = true
  for keyword, value in pairs(schema) do
    local check = keywords[keyword]
    if not check then return ("%s.%s: is no known keyword"):format(path, keyword) end
    local mistake = check(value, path .. "." .. keyword, seen)
    if mistake then return mistake:find("^[^ ]+: ") and mistake or ("%s.%s: %s"):format(path, keyword, mistake) end
  end
  local mistake = names_mistake(schema) or default_mistake(schema)
  return mistake and path .. ": " .. mistake
end

---@param schema table
---@return string? mistake one line that names the place; nil: none
return function(schema)
  return walk(schema, "schema", {})
end
