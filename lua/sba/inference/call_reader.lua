-- SPDX-License-Identifier: Apache-2.0
-- The calls of a reply as every caller wants them, from what servers and models really write. Lenient here, strict later: whether
-- the arguments fit a tool's schema is for the caller to check.

local fence = require "sba.inference.fence"
local json = require "sba.util.json"
local native_text = require "native.text"
local redact = require "native.secret".redact
local words = require "sba.util.words"

local call_reader = {}

local LONGEST_NAME <const> = 256
local LONGEST_CALLED <const> = 64 -- that servers take

---@class inference.call
---@field id string unique in the session
---@field name string as the tool is called, where it could be found out
---@field arguments table an object; empty where mistake says why
---@field size integer bytes of the arguments as JSON
---@field written? string the arguments as the model wrote them: JSON of an object
---@field called? string the tool's name as the model wrote it, where it is another
---@field mistake? string why the arguments cannot be read, one line for the model

---@class inference.raw_call
---@field id? string
---@field name any
---@field arguments any a table, or JSON as a string
---@field text? string JSON of the arguments as it came, where they are a table

--- Arguments given as text: JSON, in a fence, or JSON that was encoded twice.
local function decode(text)
  if not text:find("%S") then return {} end
  local value, failure = json.decode_repaired(fence.inside(text))
  if failure then return nil, "the arguments are not JSON: " .. failure.message end
  if type(value) ~= "string" then return value end
  value, failure = json.decode_repaired(value)
  if failure then return nil, "the arguments are a string, not an object" end
  return value
end

---Arguments as an object.
---@param given any
---@return table? arguments, string? mistake
function call_reader.arguments(given)
  local value, mistake = given, nil
  if type(given) == "string" then value, mistake = decode(given) end
  if mistake then return nil, mistake end
  local kind = value == nil and "null" or json.kind(value)
  if kind == "null" or kind == "array" and #value == 0 then return {} end
  if kind ~= "object" then return nil, "the arguments must be an object, not " .. words.value(value) end
  return value
end

local function plain(name)
  return (name:lower():gsub("[^%w]", ""))
end

---@class inference.names
---@field [integer] string the names of the tools there are
---@field guessed string[] those that are meant by a name near to theirs
---@field others table<string, string> other names, plain, and the tools that they mean

---The names that calls may have.
---@param tools inference.tool[]
---@return inference.names
function call_reader.names(tools)
  local names = { guessed = {}, others = {} }
  for i, tool in ipairs(tools) do
    names[i] = tool.name
    if not tool.exact then names.guessed[#names.guessed + 1] = tool.name end
    for _, other in ipairs(tool.called or {}) do names.others[plain(other)] = tool.name end
  end
  return names
end

---The tool that is meant by a name.
---@param name any
---@param names inference.names
---@return string? name nil where none is meant
function call_reader.name(name, names)
  if type(name) ~= "string" or #name > LONGEST_NAME then return nil end
  local bare = native_text.trim(name):gsub("^functions[.:]", ""):gsub("^default_api[.:]", ""):gsub("%(.*$", "")
  local mapped = bare:gsub("[^%w_-]", "_") -- from the name that a gateway has for it
  for _, known in ipairs(names) do
    if known == name or known == bare or known == mapped then return known end
  end
  return names.others[plain(bare)] or words.near(bare, names.guessed)
end

--- The arguments as they were written, where that is JSON that servers take back.
local function written(given, arguments)
  local text = type(given.arguments) == "string" and given.arguments or given.text
  if not text or not arguments then return nil end
  text = native_text.trim(text)
  return text:sub(1, 1) == "{" and native_text.is_utf8(text) and text or nil
end

--- A name as it was written, where servers take it back.
local function called(given, name)
  return given ~= name and given:find("^[%w_-]+$") and #given <= LONGEST_CALLED and given or nil
end

local function unused_id(session, id, used)
  if type(id) == "string" and id ~= "" and not used[id] then return id end
  repeat
    session.calls = session.calls + 1
    id = ("call%05d"):format(session.calls) -- templates of Mistral's models take nine letters and digits, and nothing else
  until not used[id]
  return id
end

---Puts the calls of one reply into their final form.
---@param raw inference.raw_call[]
---@param names inference.names
---@param session { calls: integer, ids: table<string, boolean> } numbers the calls that have no id of their own
---@return inference.call[] calls, string[] notes
function call_reader.normal(raw, names, session)
  local list, notes = json.array {}, {}
  for i, given in ipairs(raw) do
    local arguments, mistake = call_reader.arguments(given.arguments)
    local name = call_reader.name(given.name, names)
    local shown = type(given.name) == "string" and native_text.cut(redact(given.name), LONGEST_NAME) or "(no name)"
    if name and name ~= given.name then notes[#notes + 1] = ("the tool %s was taken for %s"):format(words.quoted(shown), name) end
    local id = unused_id(session, given.id, session.ids)
    session.ids[id] = true
    list[i] = {
      id = id, name = name or shown, arguments = arguments or {}, size = given.size or 0, mistake = mistake,
      written = written(given, arguments), called = name and called(shown, name),
    }
  end
  return list, notes
end

return call_reader
