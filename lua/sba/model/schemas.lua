-- SPDX-License-Identifier: Apache-2.0
-- The schemas of tools as models are shown them, in keywords that every server takes.

local json = require "sba.util.json"
local table_of = json.table_of

local schemas = {}

-- What every server takes of a tool's parameters: type, description, enum, properties, required, items, and anyOf below the top. Others
-- refuse more (OpenAI: oneOf at the top), fail at it (chat templates: an enum without a type) or leave it out silently (Ollama).
local DEEPEST <const> = 12 -- levels, for references may be circular
local MOST_PARTS <const> = 4000 -- of one tool's schema, for circles may have many branches, and a large part many that refer to it
local PART <const> = 100 -- bytes of text that count as one part
local TOLD <const> = { "default", "minimum", "maximum", "pattern", "format" } -- in the description, for want of a keyword

--- The schema that a reference within the document names.
local function resolve(reference, root)
  local place = type(reference) == "string" and reference:match "^#(/.*)$"
  local found = place and root or nil
  for name in (place or ""):gmatch "/([^/]*)" do
    found = type(found) == "table" and found[name:gsub("~1", "/"):gsub("~0", "~")] or nil
  end
  return found
end

local function merge(into, part, own)
  for name, property in pairs(table_of(part.properties)) do into.properties[name] = into.properties[name] or property end
  into.order = into.order or own and part.order or nil
  into.type, into.description, into.items = into.type or part.type, into.description or part.description, into.items or part.items
  into.enum, into.anyOf = into.enum or part.enum, into.anyOf or part.anyOf or part.oneOf
end

local LISTS <const> = { "properties", "required", "enum", "type", "allOf", "anyOf", "oneOf" }
local TEXTS <const> = { "$ref", "description", "const", table.unpack(TOLD) }

local function size_of(value)
  return type(value) == "string" and #value or type(value) == "table" and #json.encode(value) or 0
end

--- How many parts a part counts for; it is not gone over further once there are more than most.
local function cost_of(part, most)
  local cost = 1
  for _, name in ipairs(TEXTS) do cost = cost + size_of(part[name]) // PART end
  for _, name in ipairs(LISTS) do
    for _, item in pairs(table_of(part[name])) do
      if cost > most then return cost end
      cost = cost + 1 + (name == "enum" and size_of(item) // PART or 0)
    end
  end
  return cost
end

---@class schemas.state
---@field root table the whole schema, for references
---@field own boolean whether it is one of ours, with the order of its properties
---@field left integer parts that may still be read

--- A copy without $ref, allOf and const.
local function flat(wanted, state, depth)
  local result, required = { properties = {} }, {}
  local function add(part)
    part = table_of(part)
    depth = depth + 1
    if depth > DEEPEST or state.left < 0 then return end
    state.left = state.left - cost_of(part, state.left)
    if state.left < 0 then return end
    if part["$ref"] then add(resolve(part["$ref"], state.root)) end
    merge(result, part, state.own)
    for _, name in ipairs(table_of(part.required)) do required[name] = true end
    for _, one in ipairs(table_of(part.allOf)) do add(one) end
    for _, name in ipairs(TOLD) do result[name] = result[name] == nil and part[name] or result[name] end
    if part.const ~= nil then result.enum = { part.const } end
  end
  add(wanted)
  return result, required, depth
end

local function plain_type(kind, enum)
  local kinds = {}
  for _, one in ipairs(type(kind) == "table" and kind or { kind }) do
    if one ~= "null" and type(one) == "string" then kinds[#kinds + 1] = one end
  end
  if #kinds > 0 or not enum then return #kinds > 1 and json.array(kinds) or kinds[1] end
  local first = enum[1]
  return math.type(first) == "integer" and "integer" or type(first) == "number" and "number" or json.kind(first)
end

local function described(wanted)
  local parts = {}
  for _, name in ipairs(TOLD) do
    local value = wanted[name]
    if value ~= nil and type(value) ~= "table" and value ~= json.null then parts[#parts + 1] = name .. " " .. tostring(value) end
  end
  local text = type(wanted.description) == "string" and wanted.description or ""
  if #parts == 0 then return text ~= "" and text or nil end
  return (text ~= "" and text .. " " or "") .. "(" .. table.concat(parts, ", ") .. ")"
end

local simple

--- The branches that are not null, each simple.
local function branches(list, state, depth)
  local result = json.array {}
  for _, branch in ipairs(list) do
    if table_of(branch).type ~= "null" then result[#result + 1] = simple(branch, state, depth) end
  end
  return result
end

local function add_properties(result, wanted, required, state, depth)
  local order, named = json.array {}, json.array {}
  result.properties = {}
  for name, property in pairs(wanted.properties) do
    result.properties[name], order[#order + 1] = simple(property, state, depth), name
  end
  table.sort(order)
  for _, name in ipairs(wanted.order or order) do
    if required[name] then named[#named + 1] = name end
  end
  result.order, result.required = wanted.order, #named > 0 and named or nil
end

--- A schema of which every keyword is one that all servers take.
function simple(given, state, depth)
  local wanted, required
  wanted, required, depth = flat(given, state, depth)
  local result = { description = described(wanted), enum = #table_of(wanted.enum) > 0 and wanted.enum or nil }
  result.type = plain_type(wanted.type or next(wanted.properties) and "object" or nil, result.enum)
  if result.type == "object" then add_properties(result, wanted, required, state, depth) end
  if wanted.items then result.items = simple(wanted.items, state, depth) end
  local any = not result.type and branches(table_of(wanted.anyOf), state, depth) or {}
  if #any == 1 then
    any[1].description = result.description or any[1].description
    return any[1]
  end
  result.anyOf = #any > 0 and any or nil
  return result
end

---The parameters of a tool in keywords that every server takes, an object always. Of alternatives at the top the properties stay, none
---of them required.
---@param tool inference.tool
---@return table schema with `order`, the names of its properties, where it is one of ours
function schemas.simplified(tool)
  local given = tool.parameters
  local own = type(given) ~= "string"
  local root = table_of(own and given or not own and json.decode(given))
  local state = { root = root, own = own, left = MOST_PARTS }
  local top = simple({ type = "object", allOf = { root } }, state, 0)
  for _, keyword in ipairs { "anyOf", "oneOf" } do
    for _, branch in ipairs(table_of(root[keyword])) do
      for name, property in pairs(simple(branch, state, 0).properties or {}) do
        top.properties[name] = top.properties[name] or property
      end
    end
  end
  return top
end

local KEYWORDS <const> = {
  "type", "description", "enum", "maxLength", "properties", "items", "maxItems", "required", "additionalProperties", "anyOf",
}

local function names_of(properties)
  local names = {}
  for name in pairs(properties) do names[#names + 1] = name end
  table.sort(names)
  return names
end

local writers = {}

function writers.properties(properties, schema)
  local parts = {}
  for _, name in ipairs(schema.order or names_of(properties)) do
    if properties[name] then parts[#parts + 1] = json.encode(name) .. ":" .. schemas.text(properties[name]) end
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

function writers.items(items) return schemas.text(items) end

function writers.anyOf(list)
  local parts = {}
  for i, branch in ipairs(list) do parts[i] = schemas.text(branch) end
  return "[" .. table.concat(parts, ",") .. "]"
end

---A schema as JSON, its properties in their order: a model writes its arguments in the same.
---@param schema table of these keywords, see schemas.simplified
---@return string
function schemas.text(schema)
  local parts = {}
  for _, keyword in ipairs(KEYWORDS) do
    local value = schema[keyword]
    if value ~= nil then
      local written = writers[keyword] and writers[keyword](value, schema) or json.encode(value)
      parts[#parts + 1] = ('"%s":%s'):format(keyword, written)
    end
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

---A tool's parameters as JSON.
---@param tool inference.tool
---@return string
function schemas.parameters(tool)
  return schemas.text(schemas.simplified(tool))
end

-- The encoded tools of a session are the same at every request.
local encoded = setmetatable({}, { __mode = "k" })

---Tools as both formats want them, as JSON.
---@param tools inference.tool[]
---@return string
function schemas.tools(tools)
  if encoded[tools] then return encoded[tools] end
  local parts = {}
  for i, tool in ipairs(tools) do
    parts[i] = ('{"type":"function","function":{"name":%s,"description":%s,"parameters":%s}}'):format(
      json.encode(tool.name), json.encode(tool.description or ""), schemas.parameters(tool))
  end
  encoded[tools] = "[" .. table.concat(parts, ",") .. "]"
  return encoded[tools]
end

return schemas
