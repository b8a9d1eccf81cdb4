-- SPDX-License-Identifier: Apache-2.0
-- The schemas of tools as models are shown them: the standard keywords, without the runner's own, keys in the schema's order.

local json = require "sba.util.json"

local schemas = {}

-- Keywords whose value is a list, empty ones included.
local lists = { required = true, enum = true, oneOf = true, anyOf = true, allOf = true }

local kept = {
  "type", "description", "enum", "const", "default", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems",
  "pattern", "format", "required", "additionalProperties", "oneOf", "anyOf", "allOf", "$ref", "$defs",
}
local KEYWORD_ORDER <const> = { "type", "description", "enum", "properties", "items", "required" }

local convert

local function convert_properties(properties, order)
  local shown, ordering = {}, { order = order, properties = {} }
  for name, property in pairs(properties) do
    shown[name], ordering.properties[name] = convert(property)
  end
  return shown, ordering
end

--- A schema to show, and the schema that gives its text the order of keys.
function convert(wanted)
  if type(wanted) ~= "table" then return wanted end
  local shown, ordering = {}, { order = KEYWORD_ORDER, properties = {} }
  for _, keyword in ipairs(kept) do
    local value = wanted[keyword]
    shown[keyword] = lists[keyword] and value and json.array(table.move(value, 1, #value, 1, {})) or value
  end
  if type(wanted.properties) == "table" then
    shown.properties, ordering.properties.properties = convert_properties(wanted.properties, wanted.order)
  elseif wanted.type == "object" then
    shown.properties = {}
  end
  if wanted.items ~= nil then shown.items, ordering.properties.items = convert(wanted.items) end
  return shown, ordering
end

---A tool's parameters as JSON text.
---@param parameters? table|string a schema; a string is JSON already
---@return string
function schemas.text(parameters)
  if type(parameters) == "string" then return parameters end
  return json.encode(convert(parameters or { type = "object" }))
end

-- The encoded tools of a session are the same at every request.
local encoded = setmetatable({}, { __mode = "k" })

---Tools as both formats want them, as JSON text.
---@param tools inference.tool[]
---@return string
function schemas.tools(tools)
  if encoded[tools] then return encoded[tools] end
  local parts = {}
  for i, tool in ipairs(tools) do
    parts[i] = ('{"type":"function","function":{"name":%s,"description":%s,"parameters":%s}}'):format(
      json.encode(tool.name), json.encode(tool.description or ""), schemas.text(tool.parameters))
  end
  encoded[tools] = "[" .. table.concat(parts, ",") .. "]"
  return encoded[tools]
end

return schemas
