-- SPDX-License-Identifier: Apache-2.0
-- The arguments of a model's call, as its tool's schema wants them: our own tools' and the
-- gateway's. What has one meaning is taken: other names, texts for numbers, JSON in a text, an
-- object around them all. The rest is answered with the form. A call never runs without an
-- argument that was written.

local json = require "sba.util.json"
local json_place = require "sba.util.json_place"
local lpeg = require "lpeg"
local prompts = require "sba.agent.prompts"
local schema_check = require "sba.util.schema_check"
local humanize = require "sba.util.humanize"
local json_mended = require "sba.util.json_mended"
local tools_of = require "sba.model.tools"

local arguments = {}

local plain, quoted = humanize.plain, humanize.quoted
local contains, table_of = json.contains, json.table_of
local P, S, R = lpeg.P, lpeg.S, lpeg.R

local MOST_MISTAKES <const> = 5 -- that one answer names
local MOST_PARTS <const> = 12 -- of a schema: references may go in circles
-- Line ends written as \n in a text of one line: one may be meant, as in "a\n" of a program.
local LEAST_ESCAPED <const> = 2
-- From here on a "timeout" may be in milliseconds, as in other agents' tools.
local LONGEST_SECONDS <const> = 1000

-- Names

-- Those that the tools of other agents have. Case, blanks, "_" and "-" do not count.
local others <const> = {
  cmd = "command", workdir = "working_dir", query = "pattern", glob = "include",
  filepath = "path", filename = "path", filetext = "content", contents = "content",
  oldstring = "old_text", oldstr = "old_text", newstring = "new_text", newstr = "new_text",
  patch = "diff", input = "diff", summary = "answer", result = "answer", message = "answer",
  response = "answer", finalanswer = "answer",
}

-- They say why, and change nothing: they are left out.
local comments <const> = {
  "description", "explanation", "thought", "reason", "reasoning", "why", "justification", "purpose",
  "comment", "securityrisk",
}

--- Returns the tool's own name, and the unit of a time whose name does not say seconds: "ms", or
--- "?". For example timeout_seconds is meant by "Timeout-Seconds"; by "timeout" ("?") and
--- "timeout_ms" ("ms").
local function meant_by(name, schema)
  if schema.properties[name] then return name end
  local bare = plain(name)
  for own in pairs(schema.properties) do
    if plain(own) == bare then return own end
    local base = own:match "^(.*)_seconds$"
    base = base and plain(base)
    if base == bare then return own, "?" end
    if base and (bare == base .. "ms" or bare == base .. "milliseconds") then return own, "ms" end
  end
  local other = table_of(schema.aliases)[bare] or others[bare]
  if other and schema.properties[other] then return other end
  return name
end

local UNITS <const> = { ms = 0.001, s = 1, sec = 1, seconds = 1, m = 60, min = 60, minutes = 60 }

--- 2.0 as 2.
local function shortest(number) return math.tointeger(number) or number end

--- "2 min" says its unit itself.
local function seconds_of(name, value, unit, own)
  local number, words = tonumber(value), tostring(value)
  local digits, named = words:match "^%s*([%d.]+)%s*(%a+)%s*$"
  if UNITS[named] and tonumber(digits) then return shortest(digits * UNITS[named]) end
  if unit == "ms" and number then return shortest(number * UNITS.ms) end
  if not number or number < LONGEST_SECONDS then return value end
  return nil, prompts.which_unit:format(name, quoted(words), own)
end

local function given_twice(meant, one, another)
  if one == meant or another ~= meant and another < one then one = another end
  return ("%s is another name for %s; give one of them"):format(quoted(one), quoted(meant))
end

--- {"arguments": {"path": "a"}} and its like: one other name holds an object of the tool's
--- arguments. A name may say which tool.
local function unwrapped(given, schema, tool)
  local properties, holder = schema.properties, nil
  for name, value in pairs(given) do
    local says_tool = name == "name" and value == tool.name
    if properties[name] or holder and not says_tool then return given end
    if not says_tool then holder = name end
  end
  local inner = given[holder]
  if type(inner) == "string" then inner = json_mended.decode(inner) end
  if json.kind(inner) ~= "object" then return given end
  for name in pairs(inner) do
    if not properties[meant_by(name, schema)] then return given end
  end
  return inner
end

-- Values

-- Of the members of an enumeration.
local synonyms <const> = {
  success = "done", succeeded = "done", completed = "done", complete = "done", finished = "done",
  ok = "done", ["true"] = "done", ["false"] = "failed", failure = "failed", error = "failed",
  blocked = "failed", impossible = "failed", todo = "pending", open = "pending",
  started = "in_progress", active = "in_progress", cancelled = "dropped", skipped = "dropped",
}

local function member_of(enum, value)
  if contains(enum, value) then return value end
  local word = plain(tostring(value))
  for _, member in ipairs(enum) do
    if type(member) == "string" and plain(member) == word then return member end
  end
  return contains(enum, synonyms[word]) and synonyms[word] or value
end

--- Adds a schema, and those it refers to or offers.
local function add_parts(list, schema, root)
  if type(schema) ~= "table" or #list > MOST_PARTS then return list end
  list[#list + 1] = schema
  if schema["$ref"] then add_parts(list, tools_of.resolve(schema["$ref"], root), root) end
  for _, keyword in ipairs { "allOf", "anyOf", "oneOf" } do
    for _, part in ipairs(table_of(schema[keyword])) do add_parts(list, part, root) end
  end
  return list
end

--- The types that are taken, by name; none: any.
local function types_of(parts)
  local types = {}
  for _, part in ipairs(parts) do
    local kinds = type(part.type) == "table" and part.type or { part.type }
    for _, kind in ipairs(kinds) do types[kind] = true end
    local members = table_of(part.enum)
    if part.const ~= nil then members = { part.const } end
    for _, member in ipairs(members) do types[json.kind(member)] = true end
  end
  return types
end

local function fits(value, types)
  local is_whole = type(value) == "number" and math.tointeger(value)
  return types[json.kind(value)] or is_whole and types.integer
end

--- Not a name: a number for one is a mistake.
local function is_free_text(schema)
  return schema.type == "string" and not schema.enum and not schema.minLength and schema.nul ~= false
end

--- A value that does not fit as one that does, if it has one meaning.
local function converted(value, types, schema, root)
  local kind = math.type(value) or json.kind(value)
  if kind == "string" then
    local found, failure = json_mended.decode(value)
    if failure then found, failure = json.decode(value:lower()) end -- True
    if failure or found == value then return value end
    if not fits(found, types) then found = converted(found, types, schema, root) end
    if fits(found, types) then return found end
    return value
  end
  if kind == "integer" and types.string and is_free_text(schema) then return tostring(value) end
  if kind == "object" and types.array then return json.array(next(value) and { value } or {}) end
  -- Our own tools' are written as the model did.
  local is_for_gateway = root.order == nil
  if kind == "object" and types.string and is_for_gateway then return json.encode(value) end
  if types.boolean and (value == 0 or value == 1) then return value == 1 end
  return value
end

local convert

-- Some models write it so for an argument that they leave out.
local NOTHING <const> = { "", "null", "None" }

local function is_required(schema, name) return contains(table_of(schema.required), name) end

--- One schema of several, so that a member is converted once, whatever there are.
local function any_of(schemas) return #schemas > 1 and { anyOf = schemas } or schemas[1] end

local function convert_members(value, parts, root)
  for name, member in pairs(value) do
    local schemas, is_needed = {}, false
    local says_nothing = member == json.null or contains(NOTHING, member)
    for _, part in ipairs(parts) do
      local schema, more = table_of(part.properties)[name], part.additionalProperties
      if schema == nil and type(more) == "table" then
        schema = more -- such as of env
        local is_number = math.type(member) == "integer"
        if is_number and more.type == "string" then member = tostring(member) end
      end
      schemas[#schemas + 1] = schema
      -- The names that are required may be many: they are gone through only where that decides.
      if says_nothing and schema ~= nil then is_needed = is_needed or is_required(part, name) end
    end
    local schema = any_of(schemas)
    local types = says_nothing and types_of(add_parts({}, schema, root)) or {}
    local is_left_out = next(types) and not is_needed and not fits(member, types)
    if is_left_out then value[name] = nil else value[name] = convert(member, schema, root) end
  end
end

function convert(value, schema, root)
  if type(schema) ~= "table" then return value end
  -- It is a tool of ours.
  if schema.enum and root.order then return member_of(schema.enum, value) end
  local parts, items = add_parts({}, schema, root), {}
  local types = types_of(parts)
  if next(types) and not fits(value, types) then value = converted(value, types, schema, root) end
  local kind = json.kind(value)
  if kind == "object" then convert_members(value, parts, root) end
  for _, part in ipairs(parts) do items[#items + 1] = part.items end
  for i, item in ipairs(kind == "array" and value or {}) do value[i] = convert(item, any_of(items), root) end
  if schema.nul ~= false or kind ~= "string" then return value end
  -- A name or a command holds no NUL; a line end at its end is none of it.
  return value:match "^[\r\n]*([^\r\n]*)[\r\n]*$" or value -- bounded: the three parts share no character
end

-- Our own tools

--- Whether an argument says nothing: some models fill in all, with an empty text, or with a 0 for a
--- number from 1.
local function is_empty(value, property)
  if value == "" then return not (property and property.takes_empty) end
  return tonumber(value) == 0 and property ~= nil and property.minimum == 1
end

--- By the tool's own names, without comments and what says nothing. An object for a text is meant as
--- JSON, as it was written. Also returns notes; or nil and the mistake.
local function renamed(given, schema, call)
  local result, names = {}, {}
  local left_out, notes = {}, {}
  for name, value in pairs(given) do
    local meant, unit = meant_by(name, schema)
    local property, mistake = schema.properties[meant], nil
    local is_nothing = value == json.null or is_empty(value, property) and not is_required(schema, meant)
    if not is_nothing and not property and contains(comments, plain(name)) then
      left_out[#left_out + 1] = quoted(name)
    elseif not is_nothing then
      if unit then value, mistake = seconds_of(name, value, unit, meant) end
      if property and is_free_text(property) and json.kind(value) == "object" and next(value) then
        local whole = call.written and json_place.of(call.written):text("/" .. name)
        value, notes[1] = whole or json.indented(json.encode(value)), prompts.object_as_text:format(meant)
      end
      if names[meant] and result[meant] ~= value then mistake = given_twice(meant, name, names[meant]) end
      if mistake then return nil, mistake end
      result[meant], names[meant] = value, name
    end
  end
  table.sort(left_out)
  if #left_out > 0 then
    table.insert(notes, 1, prompts.left_out:format(humanize.list(left_out, "and")))
  end
  return result, notes
end

--- A text that was escaped twice has no line ends. Returns a note.
local function note_line_ends(given, schema)
  for name, property in pairs(schema.properties) do
    local value = is_free_text(property) and tostring(given[name]) or ""
    local _, count = value:gsub("\\n", "")
    if count >= LEAST_ESCAPED and not value:find "\n" then return prompts.no_line_ends:format(name) end
  end
end

---@param tool model.tool
---@return string form "read_file {path, start_line?, end_line?}"
function arguments.form(tool)
  local shown, names = tools_of.shown(tool), {}
  for i, name in ipairs(shown.order) do names[i] = is_required(shown, name) and name or name .. "?" end
  return ("%s {%s}"):format(tool.name, table.concat(names, ", "))
end

local function mistakes_of(errors, tool)
  local lines = {}
  for i, one in ipairs(errors) do lines[i] = schema_check.line(one, "arguments"):gsub("^/", "") end
  lines[#lines + 1] = "it has " .. arguments.form(tool)
  return table.concat(lines, "; ")
end

-- A path is a name as it stands: what only a shell or a browser reads would be made, such as a
-- directory called "~".
local dollar = "$" * P "{" ^ -1
local variable = dollar * (R "AZ" + "_") ^ 1 * P "}" ^ -1 * "/"
local home, artifacts = P "~" * (P "/" + -1), dollar * "CYNODE_ARTIFACTS_DIR"
local no_path = (home + "file:" + S " \t\"'`" + variable) - artifacts

local function read_own(tool, call, step)
  local schema = tool.accepted
  local given, notes = renamed(unwrapped(json.copy(call.arguments), schema, tool), schema, call)
  if not given then return nil, notes end
  given = convert(given, schema, schema)
  if tool.read then
    local read, note = tool.read(given)
    if not read then return nil, note end
    given, notes[#notes + 1] = read, note
  end
  local checked, errors = schema_check.check(given, schema, { total = 0, limit = MOST_MISTAKES })
  if errors.total > 0 then return nil, mistakes_of(errors, tool) end
  local mistake, name
  if step and step.check then mistake, name = step.check(checked, true) end
  if mistake then return nil, name and ("%s: %s"):format(name, mistake) or mistake end
  local path = checked.path
  if path and lpeg.match(no_path, path) then return nil, prompts.no_path:format(quoted(path)) end
  notes[#notes + 1] = note_line_ends(checked, schema)
  return checked, #notes > 0 and table.concat(notes, "; ") or nil
end

---@param tool agent.tool
---@param call model.call
---@param step? sba.step of a tool that is one
---@return table? read
---@return string? note on what was taken otherwise, or the mistake
function arguments.read(tool, call, step)
  if tool.kind ~= "gateway" then return read_own(tool, call, step) end
  local schema = table_of(json.decode(tool.parameters))
  schema.order = nil -- a keyword of our own
  if not json.is_object(schema.properties) then schema.properties = {} end
  return convert(unwrapped(json.copy(call.arguments), schema, tool), schema, schema)
end

return arguments
