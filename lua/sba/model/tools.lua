-- SPDX-License-Identifier: Apache-2.0
-- Tools as models see them: as JSON; or, without tool calling, in the system text, with replies
-- bound to a schema where the server can, and results as the user's words.

local decoded = require "sba.util.percent".decode
local json = require "sba.util.json"
local table_of = json.table_of

local tools = {}

-- Every server takes type, description, enum, properties, required, additionalProperties, items,
-- anyOf, in this order. Some refuse more (OpenAI: anyOf at the top), fail at it (chat templates: an
-- enum without a type) or drop it (Ollama).
-- These go into the description.
local TOLD <const> = { "default", "minimum", "maximum", "pattern", "format" }
local TAKEN <const> = { "type", "description", "items", "enum", table.unpack(TOLD) }
local DEEPEST <const> = 12 -- levels, for references may be circular
-- Parts of one tool's schema: circles may have many branches.
local MOST_PARTS <const> = 1000
-- Bytes of a gateway's schema; a larger one is left out.
local LARGEST <const> = 64 * 1024
-- Characters; a small model would think for ever.
local LONGEST_THOUGHT <const> = 300

local function each(list, separator, write)
  local parts = {}
  for i, item in ipairs(list) do parts[i] = write(item) end
  return table.concat(parts, separator)
end

---Follows a reference, for example "#/$defs/a" or, as zod's schemas have them,
---"#/properties/a/anyOf/1". What a URL cannot hold is percent-encoded: "#/$defs/List%3CA%3E".
---@param reference any a $ref
---@param root table a schema
---@return any part of it, or nil
function tools.resolve(reference, root)
  local place = type(reference) == "string" and reference:match "^#(/.*)$"
  local found = place and root or nil
  for name in decoded(place or ""):gmatch "/([^/]*)" do
    local key = name:gsub("~1", "/"):gsub("~0", "~")
    if json.is_array(found) then key = (tonumber(key) or -1) + 1 end -- the first is 0
    found = type(found) == "table" and found[key] or nil
  end
  return found
end

local function alternatives(part)
  local list = {}
  for _, branch in ipairs(table_of(part.anyOf or part.oneOf)) do
    if table_of(branch).type ~= "null" then list[#list + 1] = branch end
  end
  return list
end

-- Adds what a part of a schema says to the result, and then what the parts say that it refers to or
-- is made of ($ref, allOf, const and a single alternative): {"allOf": [{"$ref": "#/$defs/a"},
-- {"const": 1}]} is what "a" says and {"enum": [1]}. At the top all alternatives' properties are
-- taken. Of an alternative nothing is required.
local function add(result, part, state, is_alternative)
  part, result.depth, state.left = table_of(part), result.depth + 1, state.left - 1
  if result.depth > DEEPEST or state.left < 0 then return end
  local reference, properties = part["$ref"], result.properties
  if reference then add(result, tools.resolve(reference, state.root), state, is_alternative) end
  for name, property in pairs(table_of(part.properties)) do
    if type(name) == "string" then properties[name] = properties[name] or property end
  end
  for _, name in ipairs(TAKEN) do
    if result[name] == nil then result[name] = part[name] end
  end
  if part.const ~= nil then result.enum = { part.const } end
  if state.is_own then result.order = result.order or part.order end
  local required = is_alternative and {} or table_of(part.required)
  for _, name in ipairs(required) do result.required[name] = true end
  for _, one in ipairs(table_of(part.allOf)) do add(result, one, state, is_alternative) end
  local any = alternatives(part)
  if result.is_top or #any == 1 then
    for _, one in ipairs(any) do add(result, one, state, result.is_top) end
  elseif #any > 1 then
    result.anyOf = result.anyOf or any
  end
end

local KINDS <const> = { "object", "array", "string", "number", "integer", "boolean" }
-- Of Python, as some servers write them; others say nothing.
local OTHER_TYPES <const> = {
  str = "string", int = "integer", float = "number", bool = "boolean", list = "array", dict = "object",
}

local function kind_of(value) return math.type(value) == "integer" and "integer" or json.kind(value) end

-- The types that are taken, without null; an enumeration has those of its members.
local function types_of(wanted)
  local kinds, kind = {}, wanted.type
  if kind == nil and next(wanted.properties) then kind = "object" end
  for _, one in ipairs(type(kind) == "table" and kind or { kind }) do
    one = OTHER_TYPES[one] or one
    if json.contains(KINDS, one) then kinds[#kinds + 1] = one end
  end
  local first = table_of(wanted.enum)[1]
  if #kinds == 0 and first ~= nil then kinds[1] = kind_of(first) end
  return kinds
end

local function description_of(wanted)
  local parts, words, given = {}, {}, wanted.description
  if type(given) == "string" and given ~= "" then words[1] = given end
  for _, name in ipairs(TOLD) do
    local value = wanted[name]
    if value ~= nil and type(value) ~= "table" and value ~= json.null then
      parts[#parts + 1] = name .. " " .. tostring(value)
    end
  end
  if #parts > 0 then words[#words + 1] = ("(%s)"):format(table.concat(parts, ", ")) end
  return #words > 0 and table.concat(words, " ") or nil
end

-- In the order of our own schemas, else in byte order.
local function names_of(wanted)
  if wanted.order then return wanted.order end
  local names = {}
  for name in pairs(wanted.properties) do names[#names + 1] = name end
  table.sort(names)
  return names
end

-- An enumeration's members of a type.
local function members_of(enum, kind)
  local list = json.array {}
  for _, member in ipairs(table_of(enum)) do
    if json.kind(member) == kind or kind_of(member) == kind then list[#list + 1] = member end
  end
  return #list > 0 and list or nil
end

local KEYWORDS <const> = { order = {
  "type", "description", "enum", "properties", "required", "additionalProperties", "items", "anyOf",
} }
KEYWORDS.properties = { anyOf = { items = KEYWORDS } }

local written

-- The keywords of one type. OpenAI and Gemini refuse an array without items.
local function of_type(kind, wanted, state, is_closed)
  local result, depth = { type = kind, enum = members_of(wanted.enum, kind) }, wanted.depth
  if kind == "array" then result.items = json.verbatim(written(wanted.items, state, depth)) end
  if kind ~= "object" then return result end
  local properties, needed, names = {}, json.array {}, names_of(wanted)
  for _, name in ipairs(names) do
    local property = wanted.properties[name]
    if property ~= nil then properties[name] = json.verbatim(written(property, state, depth)) end
    if wanted.required[name] then needed[#needed + 1] = name end
  end
  if is_closed and next(properties) then result.additionalProperties = false end
  result.required = #needed > 0 and needed or nil
  result.properties = json.verbatim(json.encode(properties, { order = names }))
  return result
end

function written(given, state, depth, is_closed)
  local wanted = { properties = {}, required = {}, depth = depth, is_top = depth == 0 }
  add(wanted, given, state, false)
  local kinds, any = types_of(wanted), json.array {}
  for i, kind in ipairs(kinds) do any[i] = of_type(kind, wanted, state, is_closed and #kinds == 1) end
  for i, branch in ipairs(#kinds == 0 and wanted.anyOf or {}) do
    any[i] = json.verbatim(written(branch, state, wanted.depth))
  end
  local result = any[1]
  -- Gemini refuses a list of types.
  if #kinds ~= 1 then result = { anyOf = #any > 0 and any or nil } end
  result.description = description_of(wanted)
  return json.encode(result, KEYWORDS)
end

---@param tool model.tool
---@param is_closed? boolean with additionalProperties false
---@return string json of an object
function tools.parameters(tool, is_closed)
  local given = tool.parameters
  local is_own = type(given) ~= "string"
  if not is_own then given = #given <= LARGEST and json.decode(given) end
  local root = table_of(given)
  local state = { root = root, is_own = is_own, left = MOST_PARTS }
  return written({ type = "object", allOf = { root } }, state, 0, is_closed)
end

-- Makes a text once for each list. The tools of a session are the same list at every request, until
-- others are offered.
local function remembering(make)
  local made <const> = setmetatable({}, { __mode = "k" })
  return function(list)
    made[list] = made[list] or make(list)
    return made[list]
  end
end

---A tool's parameters as they are shown, decoded.
---@type fun(tool: model.tool): table
tools.shown = remembering(function(tool)
  local schema = json.decode(tools.parameters(tool))
  schema.order = table_of(tool.parameters).order
  schema.order = names_of(schema)
  return schema
end)

local EXAMPLES <const> = { string = "...", integer = 1, number = 1, boolean = true, array = json.array { "..." } }

---The form of a call's arguments: each that is required, or else the first.
---@param tool model.tool
---@return string json
function tools.example(tool)
  local wanted, members = tools.shown(tool), {}
  for _, name in ipairs(wanted.required or { wanted.order[1] }) do
    local property = wanted.properties[name] or {}
    members[name] = table_of(property.enum)[1] or EXAMPLES[property.type] or {}
  end
  return json.encode(members, { order = wanted.order })
end

local FUNCTION <const> = '{"type":"function","function":{"name":%s,"description":%s,"parameters":%s}}'

---@type fun(list: model.tool[]): string
tools.json = remembering(function(list)
  return "[" .. each(list, ",", function(tool)
    local name, words = json.encode(tool.name), json.encode(tool.description or "")
    return FUNCTION:format(name, words, tools.parameters(tool))
  end) .. "]"
end)

-- Models without tool calling

local INTRODUCTION <const> = [[

## Tools

You work by calling tools, one in each reply. Every reply is one JSON object and nothing else:

{"thought": "...", "tool": "...", "arguments": {...}}

The thought says why, in a sentence. The arguments must fit the tool's JSON Schema. The result of the call
comes back as the next message. The tools:
]]

-- What a schema does not name cannot be written in a reply that it binds.
local function whole(tool) return tool.whole and { parameters = tool.whole } or tool end

local SECTION <const> = "\n### %s\n\n%s\n\n%s\n"

local in_words = remembering(function(list)
  return INTRODUCTION .. each(list, "", function(tool)
    return SECTION:format(tool.name, tool.description or "", tools.parameters(whole(tool)))
  end)
end)

local call_schema <const> = { order = { "thought", "tool", "arguments" } }

local function content_of(message)
  if message.said then return message.said end
  local parts, content = {}, message.content or ""
  for i, call in ipairs(message.tool_calls or {}) do
    local arguments = json.verbatim(call.written or json.encode(call.arguments))
    local thought = i == 1 and content or ""
    local said = { thought = thought, tool = call.called or call.name, arguments = arguments }
    parts[i] = json.encode(said, call_schema)
  end
  return #parts > 0 and table.concat(parts, "\n") or content
end

-- A message without calls and results. It is made once, so that a session writes it once.
local as_text = remembering(function(message)
  local role, content = message.role, message.content or ""
  if role == "assistant" then content = content_of(message) end
  if role == "tool" then
    role, content = "user", ("Result of %s:\n%s"):format(message.tool_name or "the call", content)
  end
  return { role = role, content = content }
end)

---Turns tool calls into text, and their results into words of the user.
---@param messages model.message[]
---@param list model.tool[]
---@return model.message[]
function tools.messages(messages, list)
  local words, first = in_words(list), messages[1] or {}
  local has_system = first.role == "system"
  if has_system then words = (first.content or "") .. "\n" .. words end
  local result = { { role = "system", content = words } }
  for i = has_system and 2 or 1, #messages do result[#result + 1] = as_text(messages[i]) end
  return result
end

local REPLY <const> = '{"type":"object","properties":{"thought":{"type":"string","maxLength":%d},'
  .. '"tool":{"type":"string","enum":[%s]},"arguments":%s},'
  .. '"required":["thought","tool","arguments"],"additionalProperties":false}'

---The JSON Schema of a reply, a branch for each tool: otherwise a small model writes the arguments
---of another.
---@type fun(list: model.tool[]): string
tools.schema = remembering(function(list)
  return '{"anyOf":[' .. each(list, ",", function(tool)
    return REPLY:format(LONGEST_THOUGHT, json.encode(tool.name), tools.parameters(whole(tool), true))
  end) .. "]}"
end)

return tools
