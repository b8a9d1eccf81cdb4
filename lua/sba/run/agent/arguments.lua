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

-- Other names of arguments, for each tool that has the argument. Case, blanks, "_" and "-" do not count.
local others <const> = {
  path = {
    "file_path", "filename", "file", "target_file", "absolute_path", "relative_path", "target_path", "directory", "dir", "folder",
    "dir_path", "directory_path", "folder_path",
  },
  content = { "contents", "text", "file_text", "file_content", "file_contents", "new_content", "body", "data", "code" },
  old_text = { "old_string", "old_str", "old", "old_content", "old_code", "search", "find", "original", "original_text" },
  new_text = { "new_string", "new_str", "new", "new_content", "new_code", "replace", "replacement", "replace_with", "updated_text" },
  expected_count = { "count", "expected_replacements", "replacements", "expected_occurrences", "occurrences" },
  start_line = { "start", "from", "from_line", "line_start", "first_line", "begin_line", "start_line_number", "line_from" },
  end_line = { "end", "to", "to_line", "line_end", "last_line", "end_line_number", "stop_line", "line_to" },
  max_depth = { "depth", "level", "levels" },
  pattern = { "query", "regex", "regexp", "search", "search_term", "search_pattern", "search_query", "text", "expression" },
  include = { "glob", "include_pattern", "file_pattern", "file_glob", "include_glob", "files" },
  ignore_case = { "case_insensitive", "insensitive" },
  max_matches = { "max_results", "limit", "max_count" },
  diff = { "patch", "unified_diff", "patch_text", "content", "text", "input" },
  command = { "cmd", "script", "command_line", "cmdline", "bash", "shell_command", "bash_command", "code" },
  args = { "arguments", "parameters", "params" },
  working_dir = { "cwd", "workdir", "work_dir", "working_directory", "directory", "dir", "current_dir" },
  timeout_seconds = { "timeout", "timeout_secs", "timeout_sec", "timeout_s", "seconds", "max_time" },
  env = { "environment", "env_vars", "environment_variables" },
  stdin = { "input", "standard_input" },
  title = { "text", "item", "task", "content", "description", "todo", "name" },
  parent = { "parent_id" },
  id = { "todo_id", "item_id", "task_id", "item", "todo", "task" },
  status = { "state" },
  note = { "comment", "reason", "notes" },
  step = { "step_id", "id", "step_number" },
  answer = { "summary", "result", "message", "response", "final_answer", "text", "content", "output" },
  acceptance = { "acceptance_criteria", "criteria" },
}

local wrappers <const> = { "arguments", "parameters", "args", "input", "params", "kwargs" }

--- The arguments that a tool has, by each name in its plain form.
local by_schema = setmetatable({}, { __mode = "k", __index = function(known, schema)
  local names = {}
  for name in pairs(schema.properties) do
    for _, other in ipairs(others[name] or {}) do
      local plain = words.plain(other)
      names[plain] = names[plain] and names[plain] < name and names[plain] or name -- of two that have it, the first in byte order
    end
  end
  for alias, name in pairs(schema.aliases or {}) do names[words.plain(alias)] = name end
  for name in pairs(schema.properties) do names[words.plain(name)] = name end
  known[schema] = names
  return names
end })

--- {"arguments": {...}}: what the call was meant to hold.
local function unwrapped(given, schema)
  local name, inner = next(given)
  if name == nil or next(given, name) ~= nil or not json.is_object(inner) or schema.properties[name] then return given end
  return words.has(wrappers, name) and inner or given
end

--- The arguments by the names that the tool has for them. A name that the tool has is that argument; of other names the first in byte
--- order counts, and another value under a second name is a mistake.
local function renamed(given, schema)
  local result, from, names = {}, {}, {}
  for name, value in pairs(given) do
    if value ~= json.null then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local own = schema.properties[name] and name
    if own then result[own], from[own] = given[own], own end
  end
  for _, name in ipairs(names) do
    local meant = not schema.properties[name] and (by_schema[schema][words.plain(name)] or name)
    if meant and result[meant] == nil then
      result[meant], from[meant] = given[name], name
    elseif meant and result[meant] ~= given[name] then
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
  local given, mistake = renamed(json.copy(unwrapped(written, schema)), schema)
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
