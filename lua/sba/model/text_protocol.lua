-- SPDX-License-Identifier: Apache-2.0
-- Tools for models that know no tool calls: the tools are told in the system text, the reply is bound to a JSON Schema where the
-- server can do that, and results go back as the user's words. calls.lua reads the replies.

local json = require "sba.util.json"
local schemas = require "sba.model.schemas"

local text_protocol = {}

local LONGEST_THOUGHT <const> = 300 -- characters; a small model would think for ever

local INTRODUCTION <const> = [[

## Tools

You work by calling tools, one in each reply. Every reply is one JSON object and nothing else:

{"thought": "why, in a sentence", "tool": "name of a tool", "arguments": {...}}

The result of the call comes back as the next message. The arguments must fit the tool's JSON Schema. The tools:
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

--- A reply that calls one of these tools. Its keys are in the order in which the model writes.
local function reply_schema(names, thought, arguments)
  return {
    type = "object", order = { "thought", "tool", "arguments" }, required = { "thought", "tool", "arguments" },
    properties = { thought = thought, tool = { type = "string", enum = names }, arguments = arguments },
  }
end

-- The tools of a session are the same at every request.
local made = setmetatable({}, { __mode = "k" })

--- A branch for each tool: a small model that is bound by less writes the arguments of another.
local function full_schema(tools)
  local branches = {}
  for i, tool in ipairs(tools) do
    local arguments = schemas.simplified(tool)
    if next(arguments.properties) then arguments.additionalProperties = false end
    branches[i] = reply_schema({ tool.name }, { type = "string", maxLength = LONGEST_THOUGHT }, arguments)
    branches[i].additionalProperties = false
  end
  return schemas.text { anyOf = branches }
end

---The JSON Schema that binds a reply.
---@param tools inference.tool[]
---@param kind "full"|"simple" simple: without branches and bounds, for servers that refuse them
---@return string
function text_protocol.schema(tools, kind)
  if kind == "full" then
    made[tools] = made[tools] or full_schema(tools)
    return made[tools]
  end
  local names = {}
  for i, tool in ipairs(tools) do names[i] = tool.name end
  return schemas.text(reply_schema(names, { type = "string" }, { type = "object" }))
end

return text_protocol
