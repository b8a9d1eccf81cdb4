-- SPDX-License-Identifier: Apache-2.0
-- Standard schemas (draft 2020-12): ours with their own keywords said in standard ones, and
-- somebody else's.

local json = require "sba.util.json"
local schema_check = require "sba.util.schema_check"

local schema_document = {}

local DRAFT <const> = "https://json-schema.org/draft/2020-12/schema"
local KEYWORDS <const> = {
  "$schema", "$id", "title", "description", "type", "const", "enum", "default", "pattern",
  "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "propertyNames",
  "minItems", "maxItems", "examples", "items", "required", "properties", "additionalProperties",
  "oneOf", "anyOf", "allOf", "not", "if", "then", "else", "$defs",
}
local in_order <const> = { order = KEYWORDS }

local convert

-- Default: in the order of keywords.
local function written(part, schema)
  return json.verbatim(json.encode(part, schema or in_order))
end

local function listed(values, ...)
  local list = json.array { ... }
  return table.move(values, 1, #values, #list + 1, list)
end

local function make_nullable(document)
  local null, types, one_of = { type = "null" }, document.type, document.oneOf
  if document["$ref"] then return { anyOf = json.array { document, null } } end
  if document.anyOf then table.insert(document.anyOf, null) end
  if one_of then document.anyOf, document.oneOf = json.array { { oneOf = one_of }, null }, nil end
  if types then document.type = listed(type(types) == "table" and types or { types }, "null") end
  if document.enum then document.enum = listed(document.enum, json.null) end
  return document
end

local function convert_properties(wanted, pointer, above)
  local document, required = {}, {}
  for _, name in ipairs(wanted.required or {}) do required[name] = true end
  for name, property in pairs(wanted.properties) do
    local part = convert(property, pointer .. "/properties/" .. name, above)
    if above.nullable and not required[name] then part = make_nullable(part) end
    document[name] = written(part)
  end
  for alias, name in pairs(wanted.aliases or {}) do
    local original = "#" .. pointer .. "/properties/" .. name
    local description = "Another name for " .. name .. "; give only one."
    document[alias] = { ["$ref"] = original, description = description }
  end
  return written(document, wanted)
end

-- The schema of objects that have these members; null counts as absent.
local function has(names, nullable)
  local properties, is_there = {}, true
  if nullable then is_there = { ["not"] = { type = "null" } } end
  for _, name in ipairs(names) do properties[name] = is_there end
  return { type = "object", required = listed(names), properties = properties }
end

-- A member and its alias are not both there.
local function exclusions(aliases, nullable)
  local excluded = json.array {}
  for alias, name in pairs(aliases) do
    excluded[#excluded + 1] = { ["not"] = has({ name, alias }, nullable) }
  end
  table.sort(excluded, function(a, b) return a["not"].required[2] < b["not"].required[2] end)
  return excluded
end

local function convert_one_of(parts, pointer, above)
  local list = json.array {}
  for i, part in ipairs(parts) do
    local first, value = next(part)
    if first == "required" and next(part, first) == nil then
      list[i] = has(value, above.nullable)
    else
      list[i] = convert(part, ("%s/oneOf/%d"):format(pointer, i - 1), above)
    end
  end
  return list
end

local ONLY_OF <const> = {
  string = { "pattern", "minLength", "maxLength" }, array = { "items", "minItems", "maxItems" },
  object = { "properties", "required", "additionalProperties", "propertyNames" },
}

-- Strict readers want one type for each keyword.
local function split_types(document)
  local types = document.type
  document.type, document.anyOf = nil, json.array {}
  for i, kind in ipairs(types) do
    local part = { type = kind }
    for _, keyword in ipairs(ONLY_OF[kind] or {}) do
      part[keyword], document[keyword] = document[keyword], nil
    end
    document.anyOf[i] = written(part)
  end
end

-- above: schema -> pointer of those that hold this one, for a schema that holds itself.
function convert(wanted, pointer, above)
  if above[wanted] then return { ["$ref"] = above[wanted] } end
  above[wanted] = "#" .. pointer
  local document = {}
  for _, keyword in ipairs(KEYWORDS) do document[keyword] = wanted[keyword] end
  if wanted.nul == false then document.pattern = "^[^\0]*$" end
  for _, keyword in ipairs { "type", "enum", "required" } do
    if type(wanted[keyword]) == "table" then document[keyword] = listed(wanted[keyword]) end
  end
  if wanted.properties then document.properties = convert_properties(wanted, pointer, above) end
  for _, keyword in ipairs { "items", "additionalProperties" } do
    local part, at = wanted[keyword], pointer .. "/" .. keyword
    if type(part) == "table" then document[keyword] = written(convert(part, at, above)) end
  end
  if wanted.oneOf then document.oneOf = convert_one_of(wanted.oneOf, pointer, above) end
  if wanted.aliases then document.allOf = exclusions(wanted.aliases, above.nullable) end
  for keyword, value in pairs(wanted.printed or {}) do document[keyword] = value end
  above[wanted] = nil
  if type(document.type) == "table" and not document.enum then split_types(document) end
  return document
end

---@param wanted table a schema
---@param definitions? table<string, table> schemas inside it that are written once, below $defs
---@param nullable? boolean optional properties may be null, in what is read
---@return string indented JSON, one newline at its end
function schema_document.print(wanted, definitions, nullable)
  local above, parts = { nullable = nullable }, {}
  for name, part in pairs(definitions or {}) do above[part] = "#/$defs/" .. name end
  local document = convert(wanted, "", above)
  for name, part in pairs(definitions or {}) do
    local reference = above[part]
    above[part] = nil
    parts[name], above[part] = written(convert(part, reference:sub(2), above)), reference
  end
  document["$schema"], document["$defs"] = DRAFT, definitions and parts
  return json.indented(json.encode(document, in_order)) .. "\n"
end

-- Somebody else's

local TYPES <const> = {
  string = true, integer = true, number = true, boolean = true,
  array = true, object = true, null = true,
}
local BOUNDS <const> = { "minimum", "exclusiveMinimum", "maximum" }
local COUNTS <const> = { "minLength", "maxLength", "minItems", "maxItems" }
local MOST_MISTAKES <const> = 5 -- of an answer

local read

local function is_scalar(value) return value ~= nil and type(value) ~= "table" end
local function is_type(name) return TYPES[name] == true end
local function is_string(value) return type(value) == "string" end
local function number_of(value) return type(value) == "number" and value or nil end

local function list_of(list, is)
  if not json.is_array(list) or #list == 0 then return nil end
  for _, element in ipairs(list) do
    if not is(element) then return nil end
  end
  return list
end

local function properties_of(schema)
  if not json.is_object(schema.properties) then return nil end
  local properties = {}
  for name, property in pairs(schema.properties) do properties[name] = read(property) end
  return properties
end

-- Beside patternProperties the keyword has another meaning.
local function others_of(schema)
  if schema.patternProperties ~= nil then return nil end
  if json.is_object(schema.additionalProperties) then return read(schema.additionalProperties) end
  return schema.additionalProperties ~= false
end

-- For schema_check: what cannot be checked, or has no meaning, is left out. So no value that fits
-- is refused.
function read(schema)
  if not json.is_object(schema) then return {} end
  local known = {
    type = is_type(schema.type) and schema.type or list_of(schema.type, is_type),
    enum = list_of(schema.enum, is_scalar),
    required = list_of(schema.required, is_string), properties = properties_of(schema),
    additionalProperties = others_of(schema),
    keeps_null = true, -- null is no absence there
  }
  local items = schema.prefixItems == nil and schema.items
  if is_scalar(schema.const) then known.const = schema.const end
  if json.is_object(items) then known.items = read(items) end
  for _, name in ipairs(BOUNDS) do known[name] = number_of(schema[name]) end
  for _, name in ipairs(COUNTS) do known[name] = math.tointeger(number_of(schema[name])) end
  return known
end

---@param answer any a model's, decoded
---@param schema any somebody else's, decoded
---@return string? mistakes the first ones
function schema_document.misfit(answer, schema)
  local errors, lines = { total = 0, limit = MOST_MISTAKES }, {}
  schema_check.check(json.copy(answer), read(schema), errors)
  for i, one in ipairs(errors) do lines[i] = schema_check.line(one, "answer") end
  return errors.total > 0 and table.concat(lines, "; ") or nil
end

return schema_document
