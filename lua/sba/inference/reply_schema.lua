-- SPDX-License-Identifier: Apache-2.0
-- The JSON Schema that binds a reply in which calls come as text. It has a branch for each tool, with the arguments of that tool, and
-- every text and list in it has a bound: a small model that is bound by less writes the arguments of another tool, or one text for ever.

local json = require "sba.util.json"
local schemas = require "sba.inference.schemas"

local reply_schema = {}

---Most characters of a text in the arguments. Grammars of llama.cpp, and so of Ollama, refuse a repetition of 2,000.
reply_schema.LONGEST = 1999

local SHORT <const> = 256 -- characters of a name, or of a sentence
local THOUGHT <const> = 300 -- characters
local MOST_ITEMS <const> = 32 -- of a list

-- Arguments of which a small model would make a long text.
local names <const> = {
  path = true, file_path = true, working_dir = true, include = true, pattern = true, mode = true, encoding = true, id = true, parent = true,
  status = true, step = true, title = true, note = true, criterion = true, evidence = true,
}

local SCALARS <const> = { integer = true, number = true, boolean = true, null = true }
local ANYTHING <const> = { "string", "number", "boolean", "object" }

local bounded

local function any_of(list)
  return '{"anyOf":[' .. table.concat(list, ",") .. "]}"
end

local function properties_of(schema)
  local order = schema.order
  if not order then
    order = {}
    for name in pairs(schema.properties) do order[#order + 1] = name end
    table.sort(order)
  end
  local required, parts = {}, {}
  for _, name in ipairs(schema.required or {}) do required[name] = true end
  for _, name in ipairs(order) do
    local property = schema.properties[name]
    -- An object of any names has no bound, so that one is left out which a call can do without.
    local is_open = property and property.type == "object" and not next(property.properties or {})
    if property and (required[name] or not is_open) then parts[#parts + 1] = json.encode(name) .. ":" .. bounded(property, name) end
  end
  return table.concat(parts, ","), json.encode(json.array(schema.required or {}))
end

local function object(schema)
  if not next(schema.properties or {}) then return '{"type":"object"}' end
  return ('{"type":"object","properties":{%s},"required":%s,"additionalProperties":false}'):format(properties_of(schema))
end

local function of_types(schema, types, name)
  local list = {}
  for i, kind in ipairs(types) do
    list[i] = bounded({ type = kind, properties = schema.properties, required = schema.required, items = schema.items }, name)
  end
  return any_of(list)
end

--- A schema with bounds, as JSON.
--- @param schema table in the keywords that every server takes
--- @param name? string of the argument
function bounded(schema, name)
  local kind = schema.type
  if schema.enum then return json.encode({ type = kind, enum = json.array(schema.enum) }) end
  if kind == "string" then return ('{"type":"string","maxLength":%d}'):format(names[name] and SHORT or reply_schema.LONGEST) end
  if kind == "array" then return ('{"type":"array","items":%s,"maxItems":%d}'):format(bounded(schema.items or {}, name), MOST_ITEMS) end
  if kind == "object" then return object(schema) end
  if SCALARS[kind] then return ('{"type":"%s"}'):format(kind) end
  if schema.anyOf then
    local list = {}
    for i, branch in ipairs(schema.anyOf) do list[i] = bounded(branch, name) end
    return any_of(list)
  end
  return of_types(schema, type(kind) == "table" and kind or ANYTHING, name)
end

local BRANCH <const> = '{"type":"object","properties":{"thought":{"type":"string","maxLength":' .. THOUGHT
  .. '},"tool":{"type":"string","enum":[%s]},"arguments":%s},"required":["thought","tool","arguments"],"additionalProperties":false}'

-- The tools of a session are the same at every request.
local made = setmetatable({}, { __mode = "k" })

---The schema as JSON; the order of its keys is the order in which the model writes.
---@param tools inference.tool[]
---@return string
function reply_schema.of(tools)
  if made[tools] then return made[tools] end
  local branches = {}
  for i, tool in ipairs(tools) do branches[i] = BRANCH:format(json.encode(tool.name), bounded(schemas.simplified(tool))) end
  made[tools] = any_of(branches)
  return made[tools]
end

local EXAMPLE <const> = [[{"type":"object","properties":{"thought":{"type":"string"},"tool":{"type":"string","enum":%s},]]
  .. [["arguments":{"type":"object"}},"required":["thought","tool","arguments"]}]]

---The same without bounds and branches, for servers that refuse them.
---@param tools inference.tool[]
---@return string
function reply_schema.simple(tools)
  local list = json.array {}
  for i, tool in ipairs(tools) do list[i] = tool.name end
  return EXAMPLE:format(json.encode(list))
end

---The argument whose text ends where its bound is, so that its end is missing. A name that long is no name, and fails as one.
---@param arguments any
---@param name? string
---@return string? name
function reply_schema.cut_argument(arguments, name)
  if type(arguments) == "string" then
    return utf8.len(arguments) == reply_schema.LONGEST and name or nil
  elseif type(arguments) ~= "table" then
    return nil
  end
  for key, value in pairs(arguments) do
    local found = reply_schema.cut_argument(value, type(key) == "string" and key or name)
    if found then return found end
  end
end

return reply_schema
