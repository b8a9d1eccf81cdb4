-- SPDX-License-Identifier: Apache-2.0
-- The tool calls of a reply, from whatever form they came in (text_calls/ reads those that are text): their names,
-- ids and arguments. The caller checks arguments against a tool's schema.

local humanize = require "sba.util.humanize"
local json = require "sba.util.json"
local redact = require "native.secret".redact
local text = require "native.text"
local values = require "sba.model.text_calls.values"

local calls = {}

local MOST_ENCODED <const> = 2 -- times that a text of JSON is encoded once more
local LONGEST_NAME <const>, LONGEST_CALLED <const> = 256, 64 -- bytes: in messages; that servers take

---@class model.call
---@field id string unique in the session
---@field name string the tool's, if known
---@field arguments table empty after a mistake
---@field written? string the model's own JSON of the arguments
---@field called? string the model's own name, if it differs
---@field mistake? string for the model: why the arguments cannot be read

---@class model.raw_call
---@field id? string
---@field name any
---@field arguments any a table, or JSON as a string
---@field text? string arguments that are a table, as they came
---@field thought? string

---@param given any
---@return table? arguments an object, string? mistake
function calls.arguments(given)
  local value, failure = given, nil
  if type(given) == "string" then value, failure = values.decode(given:find "%S" and given or "{}") end
  for _ = 1, MOST_ENCODED do -- it was encoded twice, or once more
    if type(value) == "string" and not failure then value, failure = values.decode(value) end
  end
  if failure then return nil, "the arguments are not JSON: " .. failure.message end
  if json.is_array(value) and #value == 1 and json.is_object(value[1]) then value = value[1] end
  local kind = value == nil and "null" or json.kind(value)
  if kind == "null" or kind == "array" and #value == 0 then return {} end
  if kind ~= "object" then return nil, "the arguments must be an object, not " .. humanize.value(value) end
  return value
end

-- Names and ids

local function plain(given) return (given:lower():gsub("[^%w]", "")) end

---@param given any
---@param tools model.tool[]
---@return string? name of the tool that is meant
function calls.name(given, tools)
  if type(given) ~= "string" or #given > LONGEST_NAME then return nil end
  local bare = text.trim(given):gsub("^functions[.:]", ""):gsub("^default_api[.:]", ""):gsub("[(<].*$", "")
  local mapped = bare:gsub("[^%w_-]", "_") -- from the name that a gateway has for it
  local wanted, guessed, other = plain(bare), {}, nil
  for _, tool in ipairs(tools) do
    if tool.name == given or tool.name == bare or tool.name == mapped then return tool.name end
    if not tool.exact then guessed[#guessed + 1] = tool.name end
    for _, called in ipairs(tool.called or {}) do other = other or plain(called) == wanted and tool.name or nil end
  end
  return other or humanize.near(bare, guessed)
end

-- The arguments as they came, if servers take them back.
local function written(given)
  local bytes = text.trim(type(given.arguments) == "string" and given.arguments or given.text or "")
  return bytes:sub(1, 1) == "{" and json.decode(bytes) and bytes or nil
end

local function unused_id(session, id)
  while type(id) ~= "string" or id == "" or session.ids[id] do
    session.calls = session.calls + 1
    -- Templates of Mistral's models take nine letters and digits, and nothing else.
    id = ("call%05d"):format(session.calls)
  end
  session.ids[id] = true
  return id
end

---@param raw model.raw_call[]
---@param tools model.tool[]
---@param session { calls: integer, ids: table<string, boolean> } numbers the new ids
---@return model.call[]
function calls.normal(raw, tools, session)
  local list = json.array {}
  for i, given in ipairs(raw) do
    local arguments, mistake = calls.arguments(given.arguments)
    local meant = calls.name(given.name, tools)
    local called = type(given.name) == "string" and text.cut(redact(given.name), LONGEST_NAME) or "(no name)"
    list[i] = {
      id = unused_id(session, given.id), name = meant or called, arguments = arguments or {}, mistake = mistake,
      written = arguments and written(given),
      called = meant and called ~= meant and called:find("^[%w_-]+$") and #called <= LONGEST_CALLED and called or nil,
    }
  end
  return list
end

return calls
