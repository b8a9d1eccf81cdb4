-- SPDX-License-Identifier: Apache-2.0
-- Tools as models are shown them: as JSON, in keywords that every server takes; or in the system text, for models without tool calling,
-- whose replies are bound to a schema where the server can do that, and whose results go back as the user's words.

local json = require "sba.util.json"
local table_of = json.table_of

local tools = {}

-- What every server takes of a tool's parameters. Others refuse more (OpenAI: anyOf at the top), fail at it (chat templates: an enum
-- without a type) or leave it out silently (Ollama).
local KEYWORDS <const> = {
  "type", "description", "enum", "maxLength", "properties", "items", "required", "additionalProperties", "anyOf",
}
local TOLD <const> = { "default", "minimum", "maximum", "pattern", "format" } -- in the description, for want of a keyword
local DEEPEST <const> = 12 -- levels, for references may be circular
local MOST_PARTS <const> = 1000 -- of one tool's schema, for circles may have many branches
local LARGEST <const> = 64 * 1024 -- bytes of a gateway's schema; the arguments of a larger one are not told
local LONGEST_THOUGHT <const> = 300 -- characters; a small model would think for ever

-- Schemas --------------------------------------------------------------------------------------------------------------------

--- The schema that a reference within the document names.
local function resolve(reference, root)
  local place = type(reference) == "string" and reference:match "^#(/.*)$"
  local found = place and root or nil
  for name in (place or ""):gmatch "/([^/]*)" do
    found = type(found) == "table" and found[name:gsub("~1", "/"):gsub("~0", "~")] or nil
  end
  return found
end

local function merge(into, part)
  for name, property in pairs(table_of(part.properties)) do into.properties[name] = into.properties[name] or property end
  for _, name in ipairs { "type", "description", "items", "enum", "anyOf", table.unpack(TOLD) } do
    if into[name] == nil then into[name] = part[name] end
  end
  into.anyOf = into.anyOf or part.oneOf
  if part.const ~= nil then into.enum = { part.const } end
end

--- A copy without $ref, allOf and const.
local function flat(wanted, state, depth)
  local result, required = { properties = {} }, {}
  local function add(part)
    part, depth, state.left = table_of(part), depth + 1, state.left - 1
    if depth > DEEPEST or state.left < 0 then return end
    if part["$ref"] then add(resolve(part["$ref"], state.root)) end
    merge(result, part)
    result.order = result.order or state.is_own and part.order or nil
    for _, name in ipairs(table_of(part.required)) do required[name] = true end
    for _, one in ipairs(table_of(part.allOf)) do add(one) end
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

local function add_properties(result, ordering, wanted, required, state, depth)
  local names, members = {}, { order = wanted.order, properties = {} }
  result.properties, ordering.properties.properties, result.required = {}, members, json.array {}
  for name, property in pairs(wanted.properties) do
    result.properties[name], members.properties[name] = simple(property, state, depth)
    names[#names + 1] = name
  end
  table.sort(names)
  for _, name in ipairs(wanted.order or names) do
    if required[name] then table.insert(result.required, name) end
  end
  if #result.required == 0 then result.required = nil end
end

--- The branches that are not null.
local function branches(list, state, depth)
  local result = json.array {}
  for _, branch in ipairs(table_of(list)) do
    if table_of(branch).type ~= "null" then result[#result + 1] = simple(branch, state, depth) end
  end
  return result
end

--- A schema of these keywords, and the order of its parts, for json.encode.
function simple(given, state, depth)
  local wanted, required
  wanted, required, depth = flat(given, state, depth)
  local result = { description = described(wanted), enum = #table_of(wanted.enum) > 0 and wanted.enum or nil }
  local ordering = { order = KEYWORDS, properties = {} }
  result.type = plain_type(wanted.type or next(wanted.properties) and "object" or nil, result.enum)
  if result.type == "object" then add_properties(result, ordering, wanted, required, state, depth) end
  if wanted.items then result.items, ordering.properties.items = simple(wanted.items, state, depth) end
  local any = not result.type and branches(wanted.anyOf, state, depth) or {}
  if #any == 1 then
    any[1].description = result.description or any[1].description
    return any[1], ordering
  end
  result.anyOf = #any > 0 and any or nil
  return result, ordering
end

---The parameters of a tool in keywords that every server takes, an object always. Of alternatives at the top the properties stay, none
---of them required.
---@param tool inference.tool
---@return table schema, table ordering of its keywords and properties, for json.encode
function tools.parameters(tool)
  local given = tool.parameters
  local is_own = type(given) ~= "string"
  local root = table_of(is_own and given or not is_own and #given <= LARGEST and json.decode(given))
  local state = { root = root, is_own = is_own, left = MOST_PARTS }
  local top, ordering = simple({ type = "object", allOf = { root } }, state, 0)
  for _, keyword in ipairs { "anyOf", "oneOf" } do
    for _, branch in ipairs(table_of(root[keyword])) do
      for name, property in pairs(simple(branch, state, 0).properties or {}) do
        top.properties[name] = top.properties[name] or property
      end
    end
  end
  return top, ordering
end

-- The tools of a session are the same at every request.
local encoded, bound <const> = setmetatable({}, { __mode = "k" }), setmetatable({}, { __mode = "k" })

---Tools as both formats want them, as JSON.
---@param list inference.tool[]
---@return string
function tools.json(list)
  if encoded[list] then return encoded[list] end
  local parts = {}
  for i, tool in ipairs(list) do
    parts[i] = ('{"type":"function","function":{"name":%s,"description":%s,"parameters":%s}}'):format(
      json.encode(tool.name), json.encode(tool.description or ""), json.encode(tools.parameters(tool)))
  end
  encoded[list] = "[" .. table.concat(parts, ",") .. "]"
  return encoded[list]
end

-- As text --------------------------------------------------------------------------------------------------------------------

local INTRODUCTION <const> = [[

## Tools

You work by calling tools, one in each reply. Every reply is one JSON object and nothing else:

{"thought": "why, in a sentence", "tool": "name of a tool", "arguments": {...}}

The result of the call comes back as the next message. The arguments must fit the tool's JSON Schema. The tools:
]]

local function described_in_words(list)
  local parts = { INTRODUCTION }
  for _, tool in ipairs(list) do
    parts[#parts + 1] = ("### %s\n\n%s\n\n%s\n"):format(tool.name, tool.description or "", json.encode(tools.parameters(tool)))
  end
  return table.concat(parts, "\n")
end

local call_schema <const> = { order = { "thought", "tool" } }

local function said(message)
  if message.said then return message.said end
  local parts, content = {}, message.content or ""
  for i, call in ipairs(message.tool_calls or {}) do
    local head = json.encode({ thought = i == 1 and content or "", tool = call.called or call.name }, call_schema)
    parts[i] = ('%s,"arguments":%s}'):format(head:sub(1, -2), call.written or json.encode(call.arguments))
  end
  return #parts > 0 and table.concat(parts, "\n") or content
end

local function plain(message)
  if message.role == "assistant" then return "assistant", said(message) end
  if message.role == "tool" then return "user", ("Result of %s:\n%s"):format(message.tool_name or "the call", message.content or "") end
  return message.role, message.content or ""
end

---A conversation without tool calls: each call as the JSON that was asked for, each result as words of the user.
---@param messages inference.message[]
---@param list inference.tool[]
---@return inference.message[]
function tools.messages(messages, list)
  local result = {}
  if not messages[1] or messages[1].role ~= "system" then result[1] = { role = "system", content = described_in_words(list) } end
  for i, message in ipairs(messages) do
    local role, content = plain(message)
    if i == 1 and role == "system" then content = content .. "\n" .. described_in_words(list) end
    result[#result + 1] = { role = role, content = content }
  end
  return result
end

--- A reply that calls this tool, its keys in the order in which the model writes.
local function reply_schema(tool)
  local arguments, ordering = tools.parameters(tool)
  if next(arguments.properties) then arguments.additionalProperties = false end
  local names = json.array { "thought", "tool", "arguments" }
  return json.encode({
    type = "object", required = names, additionalProperties = false, properties = {
      thought = { type = "string", maxLength = LONGEST_THOUGHT }, tool = { type = "string", enum = { tool.name } }, arguments = arguments,
    },
  }, { order = KEYWORDS, properties = { properties = { order = names, properties = { arguments = ordering } } } })
end

---The JSON Schema that binds a reply, a branch for each tool: a small model that is bound by less writes the arguments of another.
---@param list inference.tool[]
---@return string
function tools.schema(list)
  if not bound[list] then
    local parts = {}
    for i, tool in ipairs(list) do parts[i] = reply_schema(tool) end
    bound[list] = '{"anyOf":[' .. table.concat(parts, ",") .. "]}"
  end
  return bound[list]
end

return tools
