-- SPDX-License-Identifier: Apache-2.0
-- A schema as a standard document (draft 2020-12): our own keywords are said in standard ones. An alias becomes a property of
-- its own that excludes the one it stands for; a schema that holds itself becomes a $ref.

local indent = require "sba.util.indent"
local json = require "sba.util.json"

local DRAFT = "https://json-schema.org/draft/2020-12/schema"
local KEYWORD_ORDER = {
  "$schema", "title", "description", "type", "const", "enum", "default", "pattern", "minLength", "maxLength", "minimum", "maximum",
  "minItems", "maxItems", "items", "required", "properties", "additionalProperties", "oneOf", "anyOf", "allOf", "not", "if", "then",
  "else", "$defs",
}

local plain_keywords = {
  "title", "description", "const", "default", "pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems",
}

local convert

local function listed(values)
  return json.array(table.move(values, 1, #values, 1, {}))
end

-- Property schemas, with those of the aliases; and the order they are written in.
local function convert_properties(wanted, pointer, above)
  local document, ordering = {}, { order = wanted.order, properties = {} }
  for name, property in pairs(wanted.properties) do
    document[name], ordering.properties[name] = convert(property, pointer .. "/properties/" .. name, above)
  end
  for alias, name in pairs(wanted.aliases or {}) do
    local original = "#" .. pointer .. "/properties/" .. name
    document[alias] = { ["$ref"] = original, description = ("Another name for %s; give only one."):format(name) }
  end
  return document, ordering
end

local function exclusions(aliases)
  local excluded = json.array {}
  for alias, name in pairs(aliases) do
    excluded[#excluded + 1] = { ["not"] = { required = json.array { name, alias } } }
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
    document.oneOf[i] = convert(part, ("%s/oneOf/%d"):format(pointer, i - 1), above)
  end
end

function convert(wanted, pointer, above)
  if above[wanted] then return { ["$ref"] = above[wanted] } end
  above[wanted] = "#" .. pointer
  local document, ordering = {}, { order = KEYWORD_ORDER, properties = {} }
  for _, keyword in ipairs(plain_keywords) do document[keyword] = wanted[keyword] end
  document.type = type(wanted.type) == "table" and listed(wanted.type) or wanted.type
  document.enum = wanted.enum and listed(wanted.enum)
  document.required = wanted.required and listed(wanted.required)
  convert_parts(wanted, pointer, above, document, ordering)
  if wanted.aliases then document.allOf = exclusions(wanted.aliases) end
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
---@return string text indented JSON, one newline at its end
return function(wanted, definitions)
  local above = {}
  for name, part in pairs(definitions or {}) do above[part] = "#/$defs/" .. name end
  local document, ordering = convert(wanted, "", above)
  document["$schema"] = DRAFT
  if definitions then
    document["$defs"], ordering.properties["$defs"] = convert_definitions(definitions, above)
  end
  return indent(json.encode(document, ordering)) .. "\n"
end
