-- SPDX-License-Identifier: Apache-2.0
-- Tools as models see them: as JSON; or, without tool calling, in the system text, with replies bound to a schema where the server can,
-- and results as the user's words.

local json = require "sba.util.json"
local table_of = json.table_of

local tools = {}

-- Every server takes type, description, enum, properties, required, additionalProperties, items, anyOf, in this order. Some refuse more
-- (OpenAI: anyOf at the top), fail at it (chat templates: an enum without a type) or drop it (Ollama).
local TOLD <const> = { "default", "minimum", "maximum", "pattern", "format" } -- in the description
local TAKEN <const> = { "type", "description", "items", "enum", table.unpack(TOLD) }
local DEEPEST <const> = 12 -- levels, for references may be circular
local MOST_PARTS <const> = 1000 -- of one tool's schema, for circles may have many branches
local LARGEST <const> = 64 * 1024 -- bytes of a gateway's schema; a larger one is left out
local LONGEST_THOUGHT <const> = 300 -- characters; a small model would think for ever

local function each(list, write)
  local parts = {}
  for i, item in ipairs(list) do parts[i] = write(item) end
  return table.concat(parts, ",")
end

---@param reference any a $ref
---@param root table a schema
---@return any part of it, or nil
function tools.resolve(reference, root)
  local place = type(reference) == "string" and reference:match "^#(/.*)$"
  local found = place and root or nil
  for name in (place or ""):gmatch "/([^/]*)" do
    found = type(found) == "table" and found[name:gsub("~1", "/"):gsub("~0", "~")] or nil
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

-- Resolves $ref, allOf, const and a single alternative. At the top all alternatives' properties are taken, none of them required.
local function flat(given, state, depth)
  local result, required, is_top = { properties = {} }, {}, depth == 0
  local function add(part, is_alternative)
    part, depth, state.left = table_of(part), depth + 1, state.left - 1
    if depth > DEEPEST or state.left < 0 then return end
    if part["$ref"] then add(tools.resolve(part["$ref"], state.root), is_alternative) end
    for name, property in pairs(table_of(part.properties)) do result.properties[name] = result.properties[name] or property end
    for _, name in ipairs(TAKEN) do
      if result[name] == nil then result[name] = part[name] end
    end
    if part.const ~= nil then result.enum = { part.const } end
    result.order = result.order or state.is_own and part.order or nil
    for _, name in ipairs(is_alternative and {} or table_of(part.required)) do required[name] = true end
    for _, one in ipairs(table_of(part.allOf)) do add(one, is_alternative) end
    local any = alternatives(part)
    if is_top or #any == 1 then
      for _, one in ipairs(any) do add(one, is_top) end
    elseif #any > 1 then
      result.anyOf = result.anyOf or any
    end
  end
  add(given)
  return result, required, depth
end

local function plain_type(wanted)
  local kind, kinds = wanted.type or next(wanted.properties) and "object" or nil, {}
  for _, one in ipairs(type(kind) == "table" and kind or { kind }) do
    if one ~= "null" and type(one) == "string" then kinds[#kinds + 1] = one end
  end
  local first = table_of(wanted.enum)[1]
  if #kinds > 0 or first == nil then return #kinds > 1 and json.array(kinds) or kinds[1] end
  return math.type(first) == "integer" and "integer" or json.kind(first)
end

local function description_of(wanted)
  local parts, words = {}, type(wanted.description) == "string" and wanted.description or ""
  for _, name in ipairs(TOLD) do
    local value = wanted[name]
    if value ~= nil and type(value) ~= "table" and value ~= json.null then parts[#parts + 1] = name .. " " .. tostring(value) end
  end
  if #parts == 0 then return words end
  return words .. (words ~= "" and " (" or "(") .. table.concat(parts, ", ") .. ")"
end

-- In the order of our own schemas, else in byte order.
local function names_of(wanted)
  if wanted.order then return wanted.order end
  local names = {}
  for name in pairs(wanted.properties) do names[#names + 1] = name end
  table.sort(names)
  return names
end

local written

local function written_properties(wanted, required, state, depth, is_closed)
  local parts, needed = {}, json.array {}
  for _, name in ipairs(names_of(wanted)) do
    local property = wanted.properties[name]
    if property ~= nil then parts[#parts + 1] = json.encode(name) .. ":" .. written(property, state, depth) end
    if required[name] then needed[#needed + 1] = name end
  end
  return '"properties":{' .. table.concat(parts, ",") .. "}" .. (#needed > 0 and ',"required":' .. json.encode(needed) or "")
    .. (is_closed and #parts > 0 and ',"additionalProperties":false' or "")
end

function written(given, state, depth, is_closed)
  local wanted, required
  wanted, required, depth = flat(given, state, depth)
  local members, kind, description = {}, plain_type(wanted), description_of(wanted)
  if kind then members[1] = '"type":' .. json.encode(kind) end
  if description ~= "" then members[#members + 1] = '"description":' .. json.encode(description) end
  if #table_of(wanted.enum) > 0 then members[#members + 1] = '"enum":' .. json.encode(wanted.enum) end
  if kind == "object" then members[#members + 1] = written_properties(wanted, required, state, depth, is_closed) end
  if wanted.items then members[#members + 1] = '"items":' .. written(wanted.items, state, depth) end
  if wanted.anyOf and not kind then
    local branches = each(wanted.anyOf, function(branch) return written(branch, state, depth) end)
    members[#members + 1] = '"anyOf":[' .. branches .. "]"
  end
  return "{" .. table.concat(members, ",") .. "}"
end

---@param tool inference.tool
---@param is_closed? boolean with additionalProperties false
---@return string json of an object
function tools.parameters(tool, is_closed)
  local given = tool.parameters
  local is_own = type(given) ~= "string"
  local root = table_of(is_own and given or not is_own and #given <= LARGEST and json.decode(given))
  return written({ type = "object", allOf = { root } }, { root = root, is_own = is_own, left = MOST_PARTS }, 0, is_closed)
end

-- The tools of a session are the same at every request.
local function remembering(make)
  local made <const> = setmetatable({}, { __mode = "k" })
  return function(list)
    made[list] = made[list] or make(list)
    return made[list]
  end
end

---A tool's parameters as they are shown, decoded.
---@type fun(tool: inference.tool): table
tools.shown = remembering(function(tool)
  local schema = json.decode(tools.parameters(tool))
  schema.order = table_of(tool.parameters).order
  schema.order = names_of(schema)
  return schema
end)

local EXAMPLES <const> = { string = "...", integer = 1, number = 1, boolean = true, array = json.array { "..." } }

---The form of a call's arguments: each that is required, or else the first.
---@param tool inference.tool
---@return string json
function tools.example(tool)
  local wanted, members = tools.shown(tool), {}
  for _, name in ipairs(wanted.required or { wanted.order[1] }) do
    local property = wanted.properties[name] or {}
    members[name] = table_of(property.enum)[1] or EXAMPLES[property.type] or {}
  end
  return json.encode(members, { order = wanted.order })
end

---@type fun(list: inference.tool[]): string
tools.json = remembering(function(list)
  return "[" .. each(list, function(tool)
    return ('{"type":"function","function":{"name":%s,"description":%s,"parameters":%s}}'):format(
      json.encode(tool.name), json.encode(tool.description or ""), tools.parameters(tool))
  end) .. "]"
end)

-- Models without tool calling

local INTRODUCTION <const> = [[

## Tools

You work by calling tools, one in each reply. Every reply is one JSON object and nothing else:

{"thought": "why, in a sentence", "tool": "name of a tool", "arguments": {...}}

The result of the call comes back as the next message. The arguments must fit the tool's JSON Schema. The tools:
]]

local function in_words(list)
  local parts = { INTRODUCTION }
  for _, tool in ipairs(list) do
    parts[#parts + 1] = ("### %s\n\n%s\n\n%s\n"):format(tool.name, tool.description or "", tools.parameters(tool))
  end
  return table.concat(parts, "\n")
end

local call_schema <const> = { order = { "thought", "tool", "arguments" } }

local function content_of(message)
  if message.said then return message.said end
  local parts, content = {}, message.content or ""
  for i, call in ipairs(message.tool_calls or {}) do
    parts[i] = json.encode({
      thought = i == 1 and content or "", tool = call.called or call.name,
      arguments = call.written and json.verbatim(call.written) or call.arguments,
    }, call_schema)
  end
  return #parts > 0 and table.concat(parts, "\n") or content
end

---Turns tool calls into text, and their results into words of the user.
---@param messages inference.message[]
---@param list inference.tool[]
---@return inference.message[]
function tools.messages(messages, list)
  local result, first = {}, messages[1]
  if not first or first.role ~= "system" then result[1] = { role = "system", content = in_words(list) } end
  for i, message in ipairs(messages) do
    local role, content = message.role, message.content or ""
    if role == "assistant" then content = content_of(message) end
    if role == "tool" then role, content = "user", ("Result of %s:\n%s"):format(message.tool_name or "the call", content) end
    if role == "system" and i == 1 then content = content .. "\n" .. in_words(list) end
    result[#result + 1] = { role = role, content = content }
  end
  return result
end

local REPLY <const> = '{"type":"object","properties":{"thought":{"type":"string","maxLength":%d},"tool":{"type":"string","enum":[%s]},'
  .. '"arguments":%s},"required":["thought","tool","arguments"],"additionalProperties":false}'

---The JSON Schema of a reply, a branch for each tool: otherwise a small model writes the arguments of another.
---@type fun(list: inference.tool[]): string
tools.schema = remembering(function(list)
  return '{"anyOf":[' .. each(list, function(tool)
    return REPLY:format(LONGEST_THOUGHT, json.encode(tool.name), tools.parameters(tool, true))
  end) .. "]}"
end)

return tools
