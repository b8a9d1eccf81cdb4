-- SPDX-License-Identifier: Apache-2.0
-- A call's arguments, as the tool takes them, from what models write: a few other names, numbers and lists as text. Fields that the tool
-- does not have are left out; for the rest the schema answers.

local json = require "sba.util.json"
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
  cancelled = "dropped", skipped = "dropped",
}

--- The tool's name for an argument; the name itself where it has none.
local function meant_by(name, schema)
  local plain = words.plain(name)
  for own in pairs(schema.properties) do
    if words.plain(own) == plain then return own end
  end
  local other = (schema.aliases or {})[plain] or others[plain]
  return other and schema.properties[other] and other or name
end

--- The arguments by the names that the tool has for them. Two values for one are a mistake.
local function renamed(given, schema)
  local result = {}
  for name, value in pairs(given) do
    local meant = meant_by(name, schema)
    if value ~= json.null then -- which is as if left out
      if (result[meant] or value) ~= value then return nil, ("there are two values for %s; give one"):format(meant) end
      result[meant] = value
    end
  end
  return result
end

local ids <const> = { id = true, parent = true, step = true, criterion = true } -- texts that may be given as a number

--- A value of the type that a schema wants, where it is written as text; else the value. Integers become text where they name something,
--- and as variables of the environment.
local function convert(value, schema)
  local kind = schema.type
  if schema.enum then
    local word = words.plain(tostring(value))
    word = synonyms[word] or word
    return words.has(schema.enum, word) and word or value
  end
  if type(value) == "string" and type(kind) == "string" and kind ~= "string" then
    local found, failure = json.decode(kind == "boolean" and value:lower() or value)
    if not failure and json.kind(found) == (kind == "integer" and "number" or kind) then value = found end
  end
  if kind == "array" and json.kind(value) == "object" then value = json.array { value } end
  if kind == "array" and schema.items then
    for i, element in ipairs(json.table_of(value)) do value[i] = convert(element, schema.items) end
  elseif kind == "object" then
    local properties, more = schema.properties or {}, schema.additionalProperties
    for name, member in pairs(json.table_of(value)) do
      if math.type(member) == "integer" and (ids[name] or type(more) == "table") then
        value[name] = tostring(member)
      elseif properties[name] then
        value[name] = convert(member, properties[name])
      end
    end
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
local function leave_out(given, tool)
  local names = {}
  for name in pairs(given) do
    if not tool.accepted.properties[name] then given[name], names[#names + 1] = nil, words.quoted(name) end
  end
  if #names == 0 then return nil end
  table.sort(names)
  return ("left out, because %s does not have it: %s; it has %s"):format(
    tool.name, words.list(table.move(names, 1, MOST_LEFT_OUT, 1, {}), "and"), arguments.form(tool))
end

---Reads the arguments of a call.
---@param tool agent.tool
---@param written table as the model wrote them; is not changed
---@param step? sba.step of a step tool
---@return table? arguments as the step or tool takes them, defaults filled in
---@return string? note what was left out of them, or the mistake; one line for the model
function arguments.read(tool, written, step)
  if tool.kind == "gateway" then return json.copy(written) end
  local given, mistake = renamed(json.copy(written), tool.accepted)
  given = given and convert(given, tool.accepted)
  if given and tool.read then given, mistake = tool.read(given) end
  if not given then return nil, mistake end
  local note = leave_out(given, tool)
  local checked, errors = schema_check.check(given, tool.accepted, { total = 0, limit = MOST_MISTAKES })
  if errors.total > 0 then
    local lines = {}
    for i, one in ipairs(errors) do lines[i] = schema_check.line(one, "arguments"):gsub("^/", "") end
    lines[#lines + 1] = note or "it has " .. arguments.form(tool)
    return nil, table.concat(lines, "; ")
  end
  mistake = step and step.check and step.check(checked)
  return not mistake and checked or nil, mistake or note
end

return arguments
