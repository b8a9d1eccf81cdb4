-- SPDX-License-Identifier: Apache-2.0
-- A call's arguments, as the tool takes them, from what models write: other names, numbers and lists as text, fields that the tool
-- does not have. What has one meaning is taken; where there are two, the answer says the right form.

local json = require "sba.util.json"
local native_text = require "native.text"
local schema_check = require "sba.util.schema_check"
local words = require "sba.util.words"

local arguments = {}

local MOST_MISTAKES <const> = 5 -- that one answer names
local MOST_LEFT_OUT <const> = 8 -- fields, likewise

-- Other names of arguments, as the tools of other agents have them. Case, blanks, "_" and "-" do not count.
local others <const> = {
  cmd = "command", workdir = "working_dir", timeout = "timeout_seconds", filepath = "path", filename = "path", query = "pattern",
  glob = "include", oldstring = "old_text", oldstr = "old_text", newstring = "new_text", newstr = "new_text", patch = "diff",
  summary = "answer", result = "answer",
}

-- Other words for the members of an enumeration.
local synonyms <const> = {
  success = "done", succeeded = "done", completed = "done", complete = "done", finished = "done", ok = "done", ["true"] = "done",
  failure = "failed", error = "failed", blocked = "failed", impossible = "failed", ["false"] = "failed",
  todo = "pending", open = "pending", inprogress = "in_progress", started = "in_progress", active = "in_progress",
  cancelled = "dropped", canceled = "dropped", skipped = "dropped",
}

--- The tool's name for an argument; the name itself where it has none.
local function meant_by(name, schema)
  if schema.properties[name] then return name end
  local plain = words.plain(name)
  for own in pairs(schema.properties) do
    if words.plain(own) == plain then return own end
  end
  local other = (schema.aliases or {})[plain] or others[plain]
  return other and schema.properties[other] and other or name
end

--- The arguments by the names that the tool has for them. A name that the tool has is that argument; of other names the first in byte
--- order counts, and another value under a second name is a mistake.
local function renamed(given, schema)
  local result, from, names, properties = {}, {}, {}, schema.properties
  for name, value in pairs(given) do
    if value ~= json.null then names[#names + 1] = name end
  end
  table.sort(names, function(a, b)
    if (properties[a] == nil) ~= (properties[b] == nil) then return properties[a] ~= nil end
    return a < b
  end)
  for _, name in ipairs(names) do
    local meant = meant_by(name, schema)
    if result[meant] == nil then
      result[meant], from[meant] = given[name], name
    elseif result[meant] ~= given[name] then
      return nil, ("%s and %s are two values for %s; give one"):format(words.quoted(from[meant]), words.quoted(name), meant)
    end
  end
  return result
end

local converted = {}

function converted.number(value)
  local digits = type(value) == "string" and native_text.trim(value):match("^[+-]?[%d.]+$")
  return digits and tonumber(digits) or nil
end

function converted.integer(value)
  local number = converted.number(value)
  return number and math.tointeger(number)
end

local truths <const> = { ["true"] = true, ["false"] = false, ["1"] = true, ["0"] = false }

function converted.boolean(value) return truths[native_text.trim(tostring(value)):lower()] end

--- A list or an object as JSON text, or a list of one.
function converted.array(value)
  if json.kind(value) == "object" then return json.array { value } end
  local found = type(value) == "string" and json.decode(value)
  return json.is_array(found) and found or nil
end

function converted.object(value)
  local found = type(value) == "string" and json.decode(value)
  return json.kind(found) == "object" and found or nil
end

local ids <const> = { id = true, parent = true, step = true, criterion = true } -- texts that may be given as a number

--- The member of an enumeration that a word stands for; else the word.
local function member_meant(word, enum)
  local plain = words.plain(tostring(word))
  local meant = synonyms[plain] or plain
  return words.has(enum, meant) and meant or word
end

local convert

local function convert_members(value, schema)
  for name, property in pairs(schema.properties or {}) do
    local member = value[name]
    if ids[name] and math.type(member) == "integer" then
      value[name] = tostring(member)
    elseif member ~= nil then
      value[name] = convert(member, property)
    end
  end
  if type(schema.additionalProperties) ~= "table" then return value end -- variables of the environment
  for name, member in pairs(value) do value[name] = math.type(member) == "integer" and tostring(member) or member end
  return value
end

--- A value of the type that a schema wants, where it says so in another one; else the value.
function convert(value, schema)
  local kind, is = schema.type, json.kind(value)
  if schema.enum and (is == "string" or is == "boolean") then return member_meant(value, schema.enum) end
  if type(kind) ~= "string" then return value end
  if is ~= kind and math.type(value) ~= kind and converted[kind] then
    local other = converted[kind](value)
    if other == nil then return value end
    value = other
  end
  if kind == "object" then return convert_members(value, schema) end
  if kind == "array" and schema.items then
    for i, element in ipairs(value) do value[i] = convert(element, schema.items) end
  end
  return value
end

---The arguments that a tool is shown to have: "read_file {path, start_line?, end_line?}".
---@param tool agent.tool
---@return string
function arguments.form(tool)
  local schema, required, names = tool.parameters, {}, {}
  for _, name in ipairs(schema.required or {}) do required[name] = true end
  for i, name in ipairs(schema.order or {}) do names[i] = required[name] and name or name .. "?" end
  return ("%s {%s}"):format(tool.name, table.concat(names, ", "))
end

--- Leaves out what the tool does not have; says what.
local function left_out(given, schema, tool)
  local names = {}
  for name in pairs(given) do
    if not schema.properties[name] then names[#names + 1] = name end
  end
  if #names == 0 then return nil end
  table.sort(names)
  for i, name in ipairs(names) do given[name], names[i] = nil, i <= MOST_LEFT_OUT and words.quoted(name) or nil end
  return ("left out, because %s does not have it: %s; it has %s"):format(tool.name, words.list(names, "and"), arguments.form(tool))
end

---Reads the arguments of a call.
---@param tool agent.tool
---@param written table as the model wrote them; is not changed
---@param step? sba.step of a step tool
---@return table? arguments as the step or tool takes them, defaults filled in
---@return string? note what was left out of them, or the mistake; one line for the model
function arguments.read(tool, written, step)
  if tool.kind == "gateway" then return json.copy(written) end
  local schema = tool.accepted
  local given, mistake = renamed(json.copy(written), schema)
  if not given then return nil, mistake end
  given = convert_members(given, schema)
  if tool.read then given, mistake = tool.read(given) end
  if not given then return nil, mistake end
  local note = left_out(given, schema, tool)
  local checked, errors = schema_check.check(given, schema, { total = 0, limit = MOST_MISTAKES })
  if errors.total > 0 then
    local lines = {}
    for i, one in ipairs(errors) do lines[i] = schema_check.line(one, "arguments"):gsub("^/", "") end
    lines[#lines + 1] = note or "it has " .. arguments.form(tool)
    return nil, table.concat(lines, "; ")
  end
  mistake = step and step.check and step.check(checked)
  if mistake then return nil, mistake end
  return checked, note
end

return arguments
