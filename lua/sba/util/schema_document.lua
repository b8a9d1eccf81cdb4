-- SPDX-License-Identifier: Apache-2.0
-- A schema as a standard document (draft 2020-12): our own keywords are said in standard ones. An alias becomes a property of
-- its own that excludes the one it stands for; a schema that holds itself becomes a $ref.

local json = require "sba.util.json"

local schema_document = {}

local DRAFT = "https://json-schema.org/draft/2020-12/schema"
local KEYWORD_ORDER = {
  "$schema", "$id", "title", "description", "type", "const", "enum", "default", "pattern", "minLength", "maxLength", "minimum", "maximum",
  "minItems", "maxItems", "examples", "items", "required", "properties", "additionalProperties", "oneOf", "anyOf", "allOf", "not",
  "if", "then", "else", "$defs",
}

local plain_keywords = {
  "title", "description", "const", "default", "pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems",
  "examples",
}

local convert

local function listed(values, ...)
  local list = json.array { ... }
  return table.move(values, 1, #values, #list + 1, list)
end

-- An optional property may also be null.
local function make_nullable(document)
  if document["$ref"] then return { anyOf = json.array { document, { type = "null" } } } end
  if document.type then document.type = listed(type(document.type) == "table" and document.type or { document.type }, "null") end
  if document.enum then document.enum = listed(document.enum, json.null) end
  return document
end

-- Property schemas, with those of the aliases; and the order they are written in.
local function convert_properties(wanted, pointer, above)
  local document, ordering, required = {}, { order = wanted.order, required = wanted.required, properties = {} }, {}
  for _, name in ipairs(wanted.required or {}) do required[name] = true end
  for name, property in pairs(wanted.properties) do
    document[name], ordering.properties[name] = convert(property, pointer .. "/properties/" .. name, above)
    if above.nullable and not required[name] then document[name] = make_nullable(document[name]) end
  end
  for alias, name in pairs(wanted.aliases or {}) do
    local original = "#" .. pointer .. "/properties/" .. name
    document[alias] = { ["$ref"] = original, description = ("Another name for %s; give only one."):format(name) }
  end
  return document, ordering
end

-- The schema of objects that have all of the names; null counts as absent.
local function has(names, nullable)
  local document = { required = listed(names), properties = nullable and {} or nil }
  for _, name in ipairs(nullable and names or {}) do document.properties[name] = { ["not"] = { type = "null" } } end
  return document
end

local function exclusions(aliases, nullable)
  local excluded = json.array {}
  for alias, name in pairs(aliases) do
    excluded[#excluded + 1] = { ["not"] = has({ name, alias }, nullable) }
  end
  table.sort(excluded, function(a, b) return a["not"].required[2] < b["not"].required[2] end)
  return excluded
end

local function convert_parts(wanted, pointer, above, document, ordering)
  if wanted.properties then
    document.properties, ordering.properties.properties = convert_properties(wanted, pointer, above)
  end
  for _, keyword in ipairs { "items", "additionalProperties" } do
    if type(wanted[keyword]) == "table" then
      document[keyword], ordering.properties[keyword] = convert(wanted[keyword], pointer .. "/" .. keyword, above)
    else
      document[keyword] = wanted[keyword]
    end
  end
  if not wanted.oneOf then return end
  document.oneOf = json.array {}
  for i, part in ipairs(wanted.oneOf) do
    local only_required = part.required and next(part) == "required" and not next(part, "required")
    document.oneOf[i] = only_required and has(part.required, above.nullable)
      or convert(part, ("%s/oneOf/%d"):format(pointer, i - 1), above)
  end
end

function convert(wanted, pointer, above)
  if above[wanted] then return { ["$ref"] = above[wanted] } end
  above[wanted] = "#" .. pointer
  local document, ordering = {}, { order = KEYWORD_ORDER, properties = {} }
  for _, keyword in ipairs(plain_keywords) do document[keyword] = wanted[keyword] end
  if wanted.nul == false then document.pattern = "^[^\0]*$" end
  document.type = type(wanted.type) == "table" and listed(wanted.type) or wanted.type
  document.enum = wanted.enum and listed(wanted.enum)
  document.required = wanted.required and listed(wanted.required)
  convert_parts(wanted, pointer, above, document, ordering)
  if wanted.aliases then document.allOf = exclusions(wanted.aliases, above.nullable) end
  for keyword, value in pairs(wanted.printed or {}) do document[keyword] = value end
  above[wanted] = nil
  return document, ordering
end

local function convert_definitions(definitions, above)
  local document, ordering = {}, { properties = {} }
  for name, part in pairs(definitions) do
    local pointer = above[part]
    above[part] = nil
    document[name], ordering.properties[name] = convert(part, pointer:sub(2), above)
    above[part] = pointer
  end
  return document, ordering
end

---@param wanted table a schema
---@param definitions? table<string, table> schemas inside it that are written once, below $defs, and referred to by name
---@param nullable? boolean say that optional properties may be null, for what is read
---@return string text indented JSON, one newline at its end
function schema_document.print(wanted, definitions, nullable)
  local above = { nullable = nullable }
  for name, part in pairs(definitions or {}) do above[part] = "#/$defs/" .. name end
  local document, ordering = convert(wanted, "", above)
  document["$schema"] = DRAFT
  if definitions then
    document["$defs"], ordering.properties["$defs"] = convert_definitions(definitions, above)
  end
  return json.indented(json.encode(document, ordering)) .. "\n"
end

-- Somebody else's -------------------------------------------------------------------------------------------------------

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
  for name, property in pairs(schema.properties) do properties[name] = schema_document.read(property) end
  return properties
end

--- What other members may be: the keyword means something else beside patternProperties.
local function others_of(schema)
  if schema.patternProperties ~= nil then return nil end
  if json.is_object(schema.additionalProperties) then return schema_document.read(schema.additionalProperties) end
  return schema.additionalProperties ~= false
end

---A JSON Schema of somebody else's, as it can be checked: what cannot, or has no meaning, is left out. So no value that fits is refused;
---one that breaks only a keyword that is left out passes.
---@param schema any of a decoded JSON document
---@return table
function schema_document.read(schema)
  if not json.is_object(schema) then return {} end
  local known = {
    type = is_type(schema.type) and schema.type or list_of(schema.type, is_type), enum = list_of(schema.enum, is_scalar),
    required = list_of(schema.required, is_string), properties = properties_of(schema), additionalProperties = others_of(schema),
  }
  if is_scalar(schema.const) then known.const = schema.const end
  if json.is_object(schema.items) and schema.prefixItems == nil then known.items = schema_document.read(schema.items) end
  for _, name in ipairs(BOUNDS) do known[name] = type(schema[name]) == "number" and schema[name] or nil end
  return known
end

return schema_document
