-- SPDX-License-Identifier: Apache-2.0
-- Tools for models that know no tool calls: the tools are told in the system text, the reply is bound to a JSON Schema where the
-- server can do that, one call a reply, and results go back as the user's words. What small models write instead of the JSON that
-- was asked for is read too: in a fence, in <tool_call> marks, in the middle of prose, with other names for the parts.

local fence = require "sba.inference.fence"
local json = require "sba.util.json"
local reply_schema = require "sba.inference.reply_schema"
local schemas = require "sba.inference.schemas"
local words = require "sba.util.words"

local text_protocol = {}

local INTRODUCTION <const> = [[

## Tools

You work by calling tools, one in each reply. Every reply is one JSON object and nothing else:

{"thought": "why, in a sentence", "tool": "name of a tool", "arguments": {...}}

The result of the call comes back as the next message. The arguments must fit the tool's JSON Schema. A text in them has less than
2000 characters; write a longer file in parts, with append. The tools:
]]

---The tools in words.
---@param tools inference.tool[]
---@return string
function text_protocol.describe(tools)
  local parts = { INTRODUCTION }
  for _, tool in ipairs(tools) do
    parts[#parts + 1] = ("### %s\n\n%s\n\n%s\n"):format(tool.name, tool.description or "", schemas.parameters(tool))
  end
  return table.concat(parts, "\n")
end

local call_schema = { order = { "thought", "tool" } }

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
---@param tools inference.tool[]
---@return inference.message[]
function text_protocol.messages(messages, tools)
  local result, described = {}, false
  for _, message in ipairs(messages) do
    local role, content = plain(message)
    if role == "system" and not described then
      content, described = content .. "\n" .. text_protocol.describe(tools), true
    end
    result[#result + 1] = { role = role, content = content }
  end
  if not described then table.insert(result, 1, { role = "system", content = text_protocol.describe(tools) }) end
  return result
end

local function first_of(object, names)
  for _, name in ipairs(names) do
    if object[name] ~= nil and object[name] ~= json.null then return object[name] end
  end
end

local NAME_KEYS <const> = { "tool", "name", "action", "tool_name", "function_name", "function" }
local ARGUMENT_KEYS <const> = { "arguments", "parameters", "args", "input", "action_input", "tool_input" }
local THOUGHT_KEYS <const> = { "thought", "thoughts", "reasoning", "reason", "explanation" }

--- {"read_file": {"path": "a"}}: the only key is the tool's name.
local function keyed_call(object, names)
  local key, value = next(object)
  if key == nil or next(object, key) ~= nil or type(value) ~= "table" then return nil end
  return words.has(names, key) and { name = key, arguments = value } or nil
end

--- The call that an object says, in one of the forms models have been seen to write.
local function call_of(object, names)
  local name = first_of(object, NAME_KEYS)
  if type(name) == "table" then return call_of(name, names) end
  if not name then return keyed_call(object, names) end
  local thought = first_of(object, THOUGHT_KEYS)
  return {
    name = name, arguments = first_of(object, ARGUMENT_KEYS), thought = type(thought) == "string" and thought or nil,
    id = type(object.id) == "string" and object.id or nil,
  }
end

local function calls_of(value, names, found)
  local kind = json.kind(value)
  if kind == "array" then
    for _, one in ipairs(value) do calls_of(one, names, found) end
  elseif kind == "object" then
    if json.is_array(value.tool_calls) then return calls_of(value.tool_calls, names, found) end
    found[#found + 1] = call_of(value, names)
  end
  return found
end

local function calls_in(text, names, found)
  local value, failure = json.decode_repaired(text)
  if failure then return nil, failure end
  return calls_of(value, names, found or {})
end

--- The calls of the first of these texts that holds any.
local function first_calls(texts, names)
  for _, part in ipairs(texts) do
    local found = calls_in(part, names)
    if found and #found > 0 then return found end
  end
end

--- What stands between <tool_call> marks.
local function marked(content, names)
  local found = {}
  for _, part in ipairs(fence.marked(content)) do calls_in(part, names, found) end
  return #found > 0 and found or nil
end

local MOST_PLACES <const> = 32 -- where an object might begin in prose
local MOST_READ <const> = 1024 * 1024 -- bytes of these objects, the last one aside: one may hold the next

--- The first object in the middle of a text that is a call.
local function embedded(content, names)
  local from, size = 0, 0
  for _ = 1, MOST_PLACES do
    from = content:find("{", from + 1, true)
    if not from or size > MOST_READ then return nil end
    local object = content:match("^%b{}", from)
    local found = first_calls({ object }, names)
    if found then return found end
    size = size + #(object or "")
  end
end

local function names_of(tools)
  local names = {}
  for _, tool in ipairs(tools) do
    names[#names + 1] = tool.name
    table.move(tool.called or {}, 1, #(tool.called or {}), #names + 1, names)
  end
  return names
end

--- Why calls whose reply was bound cannot be done: the bound cut one of their texts.
local function cut_mistake(found)
  for _, call in ipairs(found) do
    local name = reply_schema.cut_argument(call.arguments)
    if name then
      return ("the text of %s is too long and was cut off; a text may have less than %d characters, so do it in parts (write_file has "
        .. "append)"):format(name, reply_schema.LONGEST)
    end
  end
end

---Reads the calls of a reply that was asked for as JSON.
---@param content string without thinking
---@param tools inference.tool[]
---@param is_bound? boolean whether the server bound the reply to reply_schema.of
---@return inference.raw_call[]? calls each may have a thought, string? mistake why there is none, one line for the model
function text_protocol.read(content, tools, is_bound)
  local names = names_of(tools)
  local found, failure = calls_in(content, names)
  if not found or #found == 0 then
    found = marked(content, names) or first_calls(fence.code(content), names) or embedded(content, names)
  end
  local mistake = found and is_bound and cut_mistake(found)
  if mistake then return nil, mistake end
  if found then return found end
  if failure then return nil, "the reply is not the JSON object that was asked for: " .. failure.message end
  return nil, 'the reply names no tool; it must be {"thought": ..., "tool": ..., "arguments": {...}}'
end

---Finds calls that a model with tool calling wrote as text all the same: nothing but <tool_call> marks or JSON, and the names of tools
---there are. Prose that mentions a call is not one.
---@param content string
---@param tools inference.tool[]
---@return inference.raw_call[]? calls
function text_protocol.find(content, tools)
  if not content:find("^%s*[<{%[`]") then return nil end
  local names = names_of(tools)
  local found = content:find("^%s*<tool_call>") and marked(content, names) or calls_in(fence.inside(content), names)
  if not found or #found == 0 then return nil end
  for _, call in ipairs(found) do
    if not words.has(names, call.name) or call.arguments == nil then return nil end
  end
  return found
end

return text_protocol
