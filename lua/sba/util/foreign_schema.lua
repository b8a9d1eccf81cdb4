-- SPDX-License-Identifier: Apache-2.0
-- A JSON Schema of somebody else's, as util.schema_check can check it: what that cannot, or what has no meaning, is left out. So no
-- value that fits is refused; one that breaks only a keyword that is left out passes.

local json = require "sba.util.json"

local foreign_schema

local TYPES <const> = { string = true, integer = true, number = true, boolean = true, array = true, object = true, null = true }
local BOUNDS <const> = { "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems" }

local function is_scalar(value) return value ~= nil and type(value) ~= "table" end

--- The list, if each of its elements is one; else nil.
local function list_of(list, is)
  if not json.is_array(list) or #list == 0 then return nil end
  for _, element in ipairs(list) do
    if not is(element) then return nil end
  end
  return list
end

local function is_type(name) return TYPES[name] == true end

local function is_string(value) return type(value) == "string" end

local function properties_of(schema)
  if not json.is_object(schema.properties) then return nil end
  local properties = {}
  for name, property in pairs(schema.properties) do properties[name] = foreign_schema(property) end
  return properties
end

--- What other members may be: the keyword means something else beside patternProperties.
local function others_of(schema)
  if schema.patternProperties ~= nil then return nil end
  if json.is_object(schema.additionalProperties) then return foreign_schema(schema.additionalProperties) end
  return schema.additionalProperties ~= false
end

---@param schema any of a decoded JSON document
---@return table
function foreign_schema(schema)
  if not json.is_object(schema) then return {} end
  local known = {
    type = is_type(schema.type) and schema.type or list_of(schema.type, is_type), enum = list_of(schema.enum, is_scalar),
    required = list_of(schema.required, is_string), properties = properties_of(schema), additionalProperties = others_of(schema),
  }
  if is_scalar(schema.const) then known.const = schema.const end
  if json.is_object(schema.items) and schema.prefixItems == nil then known.items = foreign_schema(schema.items) end
  for _, name in ipairs(BOUNDS) do known[name] = type(schema[name]) == "number" and schema[name] or nil end
  return known
end

return foreign_schema
