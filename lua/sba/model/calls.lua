-- SPDX-License-Identifier: Apache-2.0
-- The tool calls of a reply, from whatever form they came in (text_calls/ reads those that are
-- text): their names, ids and arguments. The caller checks arguments against a tool's schema.

local humanize = require "sba.util.humanize"
local json = require "sba.util.json"
local json_mended = require "sba.util.json_mended"
local redact = require "native.secret".redact
local text = require "native.text"

local calls = {}

-- Times that a text is decoded: some encode their JSON again.
local MOST_DECODED <const> = 3
local LONGEST_SHOWN <const> = 256 -- bytes of a model's own name, in messages
local LONGEST_CALLED <const> = 64 -- the same, as servers take it back

---@class model.call
---@field id string unique in the session
---@field name string the tool's, if known
---@field arguments table empty after a mistake
---@field written? string the model's own JSON of the arguments
---@field called? string the model's own name, if it differs
---@field mistake? string for the model: why the arguments cannot be read
---@field note? string for the model: how they were read
---@field extra? table what the server sent beside it, and wants back

---@class model.raw_call
---@field id? string
---@field name any
---@field arguments any a table, or JSON as a string
---@field text? string arguments that are a table, as they came
---@field thought? string
---@field note? string as of model.call
---@field extra? any what the server sent beside it

---@param given any
---@return table? arguments an object, string? mistake
function calls.arguments(given)
  local value, failure = given
  if value == nil or type(value) == "string" and not value:find "%S" then return {} end
  for _ = 1, MOST_DECODED do
    if type(value) == "string" and not failure then value, failure = json_mended.decode(value) end
  end
  if failure then return nil, "the arguments are not JSON: " .. failure.message end
  if json.is_array(value) and #value == 1 and json.is_object(value[1]) then value = value[1] end
  local kind = json.kind(value)
  if kind == "object" then return value end
  if kind == "null" or kind == "array" and #value == 0 then return {} end
  return nil, "the arguments must be an object, not " .. humanize.value(value)
end

-- Names and ids

---A tool's own name comes before the models' other names, and these before one that is near.
---@param given any
---@param tools model.tool[]
---@return string? name of the tool that is meant
function calls.name(given, tools)
  if type(given) ~= "string" or #given > LONGEST_SHOWN then return nil end
  local bare = text.trim(given):gsub("^functions[.:]", ""):gsub("^default_api[.:]", "")
  -- But not "(...)": it holds arguments.
  bare = bare:gsub("<.*$", ""):gsub("%(%)$", "")
  -- From the name that a gateway has for it.
  local mapped = bare:gsub("[^%w_-]", "_")
  for _, tool in ipairs(tools) do
    if json.contains({ given, bare, mapped }, tool.name) then return tool.name end
  end
  local guessed = {}
  for _, tool in ipairs(tools) do
    for _, called in ipairs(tool.called or {}) do
      if humanize.plain(called) == humanize.plain(mapped) then return tool.name end
    end
    if not tool.exact then guessed[#guessed + 1] = tool.name end
  end
  return humanize.near(bare, guessed)
end

-- The arguments as they came, if servers take them back.
local function written(given)
  local bytes = type(given.arguments) == "string" and given.arguments or given.text
  local object = text.trim(bytes or "")
  if object:sub(1, 1) == "{" and json.decode(object) then return object end
end

-- Templates of Mistral's models take nine letters and digits for an id, and nothing else.
local function unused_id(session, id)
  while type(id) ~= "string" or id == "" or session.ids[id] do
    session.calls = session.calls + 1
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
    local name, called = given.name, "(no name)"
    local meant = calls.name(name, tools)
    if type(name) == "string" then called = text.cut(redact(name), LONGEST_SHOWN) end
    local call = { id = unused_id(session, given.id), name = meant or called, mistake = mistake }
    call.note = given.note
    call.arguments, call.written = arguments or {}, arguments and written(given)
    call.extra = type(given.extra) == "table" and given.extra or nil
    local may_go_back = #called <= LONGEST_CALLED and called:find "^[%w_-]+$"
    if meant and meant ~= called and may_go_back then call.called = called end
    list[i] = call
  end
  return list
end

return calls
