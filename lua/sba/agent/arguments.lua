-- SPDX-License-Identifier: Apache-2.0
-- A call's arguments, as the tool takes them, from what models write: other names, numbers and lists as text, fields that the tool
-- does not have. What has one meaning is taken; where there are two, the answer says the right form.

local json = require "sba.util.json"
local native_text = require "native.text"
local schema_check = require "sba.util.schema_check"
local words = require "sba.util.words"

local arguments = {}

local MOST_MISTAKES <const> = 5 -- that one answer names
local MOST_LEFT_OUT <const> = 8 -- fields that one answer names

-- Other names of arguments, as the tools of other agents have them. Case, blanks, "_" and "-" do not count.
local others <const> = {
  cmd = "command", workdir = "working_dir", timeout = "timeout_seconds", filepath = "path", filename = "path", query = "pattern",
  glob = "include", oldstring = "old_text", oldstr = "old_text", newstring = "new_text", newstr = "new_text", patch = "diff",
  summary = "answer", result = "answer",
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

local function decoded(value, kind)
  local found, failure = json.decode(value)
  return not failure and json.kind(found) == kind and found or nil
end

function converted.number(value)
  local digits = type(value) == "string" and native_text.trim(value):match("^[+-]?[%d.]+$")
  return digits and tonumber(digits) or nil
end

function converted.integer(value)
  local number = converted.number(value)
  return number and math.tointeger(number)
end

local ids <const> = { id = true, parent = true, step = true, criterion = true } -- texts that may be given as a number
local truths <const> = { ["true"] = true, ["false"] = false, ["1"] = true, ["0"] = false, yes = true, no = false }

function converted.boolean(value)
  if type(value) ~= "string" and math.type(value) ~= "integer" then return nil end
  return truths[native_text.trim(tostring(value)):lower()]
end

function converted.array(value)
  if json.kind(value) == "object" then return json.array { value } end
  return type(value) == "string" and decoded(value, "array") or nil
end

function converted.object(value)
  return type(value) == "string" and decoded(value, "object") or nil
end

local function fits(value, kind)
  local is = json.kind(value)
  return is == kind or kind == "integer" and math.type(value) == "integer" or kind == "number" and is == "number"
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
  for name, member in pairs(value) do
    value[name] = math.type(member) == "integer" and tostring(member) or convert(member, schema.additionalProperties)
  end
  return value
end

--- A value of the type that a schema wants, where it says so in another one; else the value.
function convert(value, schema)
  local kind = schema.type
  if type(kind) ~= "string" then return value end
  if not fits(value, kind) and converted[kind] then
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

local function quoted_list(names)
  local list = {}
  for i = 1, math.min(#names, MOST_LEFT_OUT) do list[i] = words.quoted(names[i]) end
  if #names > MOST_LEFT_OUT then list[#list + 1] = ("%d more"):format(#names - MOST_LEFT_OUT) end
  return words.list(list, "and")
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
  for _, name in ipairs(names) do given[name] = nil end
  return ("left out, because %s does not have it: %s; it has %s"):format(tool.name, quoted_list(names), arguments.form(tool))
end

local function mistakes_of(errors, note)
  local lines = {}
  for i = 1, math.min(#errors, MOST_MISTAKES) do
    lines[i] = schema_check.line(errors[i], "arguments"):gsub("^/", "")
  end
  lines[#lines + 1] = note
  return table.concat(lines, "; ")
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
  local checked, errors = schema_check.check(given, schema)
  if errors.total > 0 then return nil, mistakes_of(errors, note or "it has " .. arguments.form(tool)) end
  mistake = step and step.check and step.check(checked)
  if mistake then return nil, mistake end
  return checked, note
end

return arguments
