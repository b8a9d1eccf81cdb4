-- SPDX-License-Identifier: Apache-2.0
-- A tool's result for the model: texts as they are, everything else named in a line.

local excerpt = require "sba.util.excerpt"
local http = require "sba.util.http"
local json = require "sba.util.json"
local printable = require "sba.util.printable"
local text = require "native.text"

local tool_result = {}

local MOST_NAMED <const> = 200 -- bytes of a name or type in a placeholder

local function named(value, otherwise)
  if type(value) ~= "string" or value == "" then return otherwise end
  return text.cut(printable.line(value), MOST_NAMED)
end

local function binary(kind, block, data)
  return ("[%s, %s, %d bytes]"):format(kind, named(block.mimeType, "type unknown"),
    type(data) == "string" and excerpt.base64_size(data) or 0)
end

local show = {}

-- Some servers write a value for the text, or the text as another member.
function show.text(block)
  local words = block.text
  if words == json.null then return "" end
  if type(words) == "string" then return words end
  return excerpt.without_base64(json.encode(words == nil and block or words))
end

function show.image(block) return binary("image", block, block.data) end
function show.audio(block) return binary("audio", block, block.data) end

function show.resource_link(block)
  local about = named(block.description, named(block.title, named(block.name, "")))
  if about ~= "" then about = ": " .. about end
  return ("[resource %s%s]"):format(named(block.uri, "without an address"), about)
end

function show.resource(block)
  local resource = json.table_of(block.resource)
  local name = "resource " .. named(resource.uri, "without an address")
  if type(resource.text) == "string" then return ("[%s]\n%s"):format(name, resource.text) end
  return binary(name, resource, resource.blob)
end

local function block_shown(block)
  if type(block) == "string" then return block end
  if type(block) ~= "table" then return "[not a block]" end
  if block.type == nil and type(block.text) == "string" then return block.text end
  local shown = show[block.type]
  return shown and shown(block) or ("[%s, not shown]"):format(named(block.type, "block without a type"))
end

---@class gateway.answer
---@field content string for the model
---@field structured any the server's; nil if it says the same as the text
---@field is_error boolean the tool ran and failed
---@field parts table[] raw blocks

-- Whether a text is a value, or its JSON.
local function says(words, value)
  if value == nil or words == value then return value ~= nil end
  local decoded = json.decode(words)
  return decoded ~= nil and json.encode(decoded) == json.encode(value)
end

-- Whether a structured value only repeats the content: the JSON of its text; or its text, texts or
-- blocks in the only member, as in {"result": ...}.
local function repeats(structured, texts, parts)
  local name, only = next(json.is_object(structured) and structured or {})
  if name == nil or next(structured, name) ~= nil then only = nil end
  if #texts == 1 and (says(texts[1], structured) or says(texts[1], only)) then return true end
  if not json.is_array(only) or #only == 0 then return false end
  if json.encode(only) == json.encode(parts) then return true end
  if #only ~= #texts or #texts == 1 then return false end
  for i, words in ipairs(texts) do
    if not says(words, only[i]) then return false end
  end
  return true
end

local members_of_mcp <const> = {
  _meta = true, isError = true, resultType = true, content = true, structuredContent = true,
}

-- What an object holds besides the members that are known; nil: nothing.
local function rest_of(object, known)
  local rest = {}
  for name, value in pairs(object) do
    if not known[name] then rest[name] = value end
  end
  return next(rest) and rest or nil
end

local function holds_a_block(list)
  for _, value in ipairs(list) do
    local block = json.table_of(value)
    local has_text = type(block.type) == "string" or type(block.text) == "string"
    if has_text or type(value) == "string" then return true end
  end
  return #list == 0
end

-- The blocks of a result. Servers also write one block, a text, or a value; some have no content,
-- but members of their own: what is not known is shown as it is.
local function parts_of(result)
  local content, structured = json.given(result.content), json.given(result.structuredContent)
  if json.is_array(content) and holds_a_block(content) then return content end
  if content == nil and structured == nil then content = rest_of(result, members_of_mcp) end
  if content == nil then return json.array {} end
  if json.is_object(content) and show[content.type] then return json.array { content } end
  if type(content) ~= "string" then content = excerpt.without_base64(json.encode(content)) end
  return json.array { { type = "text", text = content } }
end

---@param result table of tools/call
---@return gateway.answer
function tool_result.of_mcp(result)
  local parts, lines, texts = parts_of(result), {}, {}
  for i, block in ipairs(parts) do
    local shown = block_shown(block)
    local is_text = type(block) == "table" and block.type == "text"
    if is_text and shown ~= "" then texts[#texts + 1] = shown end
    lines[i] = shown
  end
  local structured, is_error = json.given(result.structuredContent), result.isError
  if structured ~= nil and repeats(structured, texts, parts) then structured = nil end
  if structured ~= nil and #texts == 0 then
    local whole = json.encode(structured)
    lines[#lines + 1] = excerpt.without_base64(whole)
    if lines[#lines] == whole then structured = nil end
  end
  is_error = is_error == true or is_error == "true"
  return { content = table.concat(lines, "\n"), structured = structured, is_error = is_error, parts = parts }
end

local of_error <const> = { error = true, jsonrpc = true, id = true }

-- Nil unless the answer is nothing but an error.
local function error_words(value)
  local given = json.is_object(value) and value.error
  if type(given) ~= "string" and not json.is_object(given) then return nil end
  return not rest_of(value, of_error) and http.words(value) or nil
end

---@param value any decoded: any JSON, or a result in MCP's form
---@return gateway.answer
function tool_result.of_plain(value)
  if json.is_object(value) and json.is_array(value.content) then return tool_result.of_mcp(value) end
  local problem = error_words(value)
  local words = problem or type(value) == "string" and value
  local answer = tool_result.of_mcp(words and { content = words } or { structuredContent = value })
  answer.is_error = problem ~= nil or type(value) == "table" and value.status == "error"
  return answer
end

return tool_result
