-- SPDX-License-Identifier: Apache-2.0
-- A tool's result as text for the model: texts as they are, what is no text as a line that says what there was.

local json = require "sba.util.json"
local native_text = require "native.text"
local printable = require "sba.util.printable"

local tool_result = {}

local MOST_NAMED <const> = 200 -- bytes of a name or type in a placeholder

local function named(value, otherwise)
  if type(value) ~= "string" or value == "" then return otherwise end
  return native_text.cut(printable.line(value), MOST_NAMED)
end

--- How many bytes a base64 text stands for.
local function decoded_size(data)
  if type(data) ~= "string" then return 0 end
  return #data // 4 * 3 - (#data - #native_text.trim_end(data, "="))
end

local function binary(kind, block, data)
  return ("[%s, %s, %d bytes]"):format(kind, named(block.mimeType, "type unknown"), decoded_size(data))
end

local show = {}

function show.text(block)
  return type(block.text) == "string" and block.text or ""
end

function show.image(block) return binary("image", block, block.data) end
function show.audio(block) return binary("audio", block, block.data) end

function show.resource_link(block)
  local about = named(block.description, named(block.title, named(block.name, "")))
  return ("[resource %s%s]"):format(named(block.uri, "without an address"), about ~= "" and ": " .. about or "")
end

function show.resource(block)
  local resource = type(block.resource) == "table" and block.resource or {}
  local name = "resource " .. named(resource.uri, "without an address")
  if type(resource.text) == "string" then return ("[%s]\n%s"):format(name, resource.text) end
  return binary(name, resource, resource.blob)
end

local function block_shown(block)
  if type(block) ~= "table" then return "[not a block]" end
  local how = type(block.type) == "string" and show[block.type]
  return how and how(block) or ("[%s, not shown]"):format(named(block.type, "block without a type"))
end

---@class gateway.answer
---@field content string for the model
---@field structured any as the server sent it; nil where there is none
---@field is_error boolean the tool ran and failed
---@field parts table[] the content's blocks, raw

---@param result table of tools/call
---@return gateway.answer
function tool_result.of_mcp(result)
  local parts = json.is_array(result.content) and result.content or json.array {}
  local shown, has_text = {}, false
  for i, block in ipairs(parts) do
    shown[i] = block_shown(block)
    has_text = has_text or (type(block) == "table" and block.type == "text" and shown[i] ~= "")
  end
  local structured = result.structuredContent
  if structured == json.null then structured = nil end
  if structured ~= nil and not has_text then shown[#shown + 1] = json.encode(structured) end
  return {
    content = table.concat(shown, "\n"), structured = structured,
    is_error = result.isError == true, parts = parts,
  }
end

---The answer of the plain form: any JSON. One in the form of MCP's results is read as such.
---@param value any decoded
---@return gateway.answer
function tool_result.of_plain(value)
  if type(value) == "table" and json.is_array(value.content) then return tool_result.of_mcp(value) end
  local content = type(value) == "string" and value or json.encode(value)
  return {
    content = content, structured = value, parts = json.array {},
    is_error = type(value) == "table" and value.status == "error",
  }
end

return tool_result
