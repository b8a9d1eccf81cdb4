-- SPDX-License-Identifier: Apache-2.0
-- Checks values against JSON Schema (draft 2020-12), and puts them into their final form.
--
-- Keywords: type, required, properties, additionalProperties, propertyNames (a pattern and, as its title, what
-- is expected), items, enum, const, minimum,
-- exclusiveMinimum, maximum, minLength, maxLength, pattern (that is a Lua pattern too, with \ for %),
-- minItems, maxItems, oneOf (of parts that each require one name), default, description, examples,
-- title; and five of our own: order (of keys when written), aliases (other name of an optional property -> its name;
-- not both may be given), nul (false: a string must hold none), printed (keywords for the printed
-- form only) and keeps_null. A schema may hold itself. An optional property that is null counts as
-- absent, unless its type says null, or the object's schema has keeps_null.

local json = require "sba.util.json"
local lazy = require "sba.util.lazy"
local printable = require "sba.util.printable"
local redact = require "native.secret".redact

local humanize = lazy "sba.util.humanize"

local schema_check = {}

local MAX_ERRORS <const> = 100
-- Then the walk ends: a large value that is all wrong is refused quickly.
local MAX_COUNTED <const> = 1000
local MAX_TOKEN <const> = 256 -- bytes

local none <const> = {}

---@class sba.schema.error: { pointer: string, message: string } a pointer of RFC 6901, and one line

---@class sba.schema.errors at most 100
---@field total integer found
---@field limit? integer looked for; default 1,000

---@param errors sba.schema.errors
---@return boolean
function schema_check.is_enough(errors) return errors.total >= (errors.limit or MAX_COUNTED) end

---@param errors sba.schema.errors
---@param pointer string
---@param message string
function schema_check.refuse(errors, pointer, message)
  errors.total = errors.total + 1
  if #errors < MAX_ERRORS then errors[#errors + 1] = { pointer = pointer, message = message } end
end

---@param failed sba.schema.error
---@param name? string of the document; default: job
---@return string "/steps/3/type: expected ..."
function schema_check.line(failed, name)
  local pointer = failed.pointer
  if pointer == "" then pointer = "(" .. (name or "job") .. ")" end
  if pointer:find("[%c]") then pointer = humanize.quoted(pointer) end
  return pointer .. ": " .. failed.message
end

---@param name string|integer
---@return string of RFC 6901; a very long one is cut
function schema_check.token(name)
  local token = printable.cut(redact(tostring(name)), MAX_TOKEN)
  return (token:gsub("~", "~0"):gsub("/", "~1"))
end

-- A whole number, also one that JSON writes as a float. One beyond 64 bits is the largest, or the
-- least, of them. (A "number" is the nearest double.)
local function as_integer(value, kind)
  if kind == "long number" and value[1]:find "^-?%d+$" then
    value = tonumber(value[1])
  elseif kind ~= "number" or value % 1 ~= 0 then
    return nil
  end
  local beyond = value < 0 and math.mininteger or math.maxinteger
  return math.tointeger(value) or beyond
end

local function is_of_type(value, kind, wanted)
  if type(wanted) == "table" then
    for _, name in ipairs(wanted) do
      if is_of_type(value, kind, name) then return true end
    end
    return false
  end
  if wanted == "integer" then return kind == "number" and math.tointeger(value) ~= nil end
  return kind == wanted
end

-- What the schema of an object asks for. names: by key_order, then by bytes; sets of names: known,
-- aliases too; absent: required or with a default; no_null: for which null is absence.
local plans = setmetatable({}, { __mode = "k" })

local function takes_null(property)
  if property.enum then return json.contains(property.enum, json.null) end
  if property.const ~= nil then return false end
  return property.type == nil or is_of_type(json.null, "null", property.type)
end

local function make_plan(wanted)
  local plan, rest, properties = { absent = {}, no_null = {} }, {}, wanted.properties or none
  plan.names, plan.known = json.key_order(wanted)
  for _, name in ipairs(wanted.required or none) do plan.absent[name] = true end
  for name, property in pairs(properties) do
    if not plan.known[name] then rest[#rest + 1], plan.known[name] = name, true end
    plan.no_null[name] = not (wanted.keeps_null or plan.absent[name] or takes_null(property)) or nil
    plan.absent[name] = plan.absent[name] or property.default ~= nil or nil
  end
  table.sort(rest)
  table.move(rest, 1, #rest, #plan.names + 1, plan.names)
  for alias, name in pairs(wanted.aliases or none) do
    plan.known[alias], plan.no_null[alias] = true, plan.no_null[name]
  end
  plans[wanted] = plan
  return plan
end

-- A walk holds the errors, the pointer it began at (base), and the names from there (path).
local visit

local function pointer_of(walk, depth)
  local tokens = { walk.base }
  for i = 1, depth do
    local step = walk.path[i]
    tokens[i + 1] = schema_check.token(math.type(step) and step - 1 or step)
  end
  return table.concat(tokens, "/")
end

local function fail(walk, depth, message)
  if schema_check.is_enough(walk.errors) then return end
  schema_check.refuse(walk.errors, pointer_of(walk, depth), message)
end

local function mismatch(walk, depth, expected, value, hint)
  fail(walk, depth, ("expected %s, got %s%s"):format(expected, humanize.value(value), hint or ""))
end

local function visit_member(walk, depth, value, name, key, wanted)
  walk.path[depth + 1] = key
  value[name] = visit(walk, depth + 1, value[name], wanted)
end

local function did_you_mean(name, names)
  local near = humanize.near(name, names)
  return near and ("; did you mean %s?"):format(humanize.quoted(near)) or ""
end

local function refuse_unknown(walk, depth, name, plan)
  local known = {}
  for one in pairs(plan.known) do known[#known + 1] = one end
  table.sort(known)
  walk.path[depth + 1] = name
  fail(walk, depth + 1, "unknown field " .. humanize.quoted(name) .. did_you_mean(name, known))
end

-- Removes optional members that are null. Returns the names of unknown ones, which the same walk
-- finds.
local function drop_nulls(value, plan)
  local others
  for name, member in next, value do
    if not plan.known[name] then
      others = others or {}
      others[#others + 1] = name
    elseif member == json.null and plan.no_null[name] then
      value[name] = nil
    end
  end
  return others
end

local function visit_others(walk, depth, value, wanted, names, plan)
  if wanted == nil or wanted == true then return end
  table.sort(names)
  for _, name in ipairs(names) do
    if schema_check.is_enough(walk.errors) then return end
    if wanted then
      visit_member(walk, depth, value, name, name, wanted)
    else
      refuse_unknown(walk, depth, name, plan)
    end
  end
end

local function visit_names(walk, depth, names, wanted)
  table.sort(names)
  for _, name in ipairs(names) do
    if not name:find(wanted.pattern) then -- bounded: it is one of ours
      walk.path[depth + 1] = name
      fail(walk, depth + 1, ("expected %s, got %s"):format(wanted.title, humanize.value(name)))
    end
  end
end

-- Returns name -> alias, since pointers name what was written.
local function rename(walk, depth, value, aliases)
  local used = none
  for alias, name in pairs(aliases) do
    if value[alias] ~= nil and value[name] ~= nil then
      local both = { humanize.quoted(alias), humanize.quoted(name) }
      walk.path[depth + 1] = alias
      fail(walk, depth + 1, table.concat(both, " and ") .. " are two names of one field; give only one")
    elseif value[alias] ~= nil then
      if used == none then used = {} end
      used[name], value[name], value[alias] = alias, value[alias], nil
    end
  end
  return used
end

local function visit_absent(walk, depth, value, name, property)
  if property.default ~= nil then
    value[name] = json.copy(property.default)
    return
  end
  local message, examples = "is missing; expected " .. humanize.schema(property), property.examples
  if examples then message = message .. ", such as " .. json.encode(examples[1]) end
  walk.path[depth + 1] = name
  fail(walk, depth + 1, message)
end

local function visit_object(walk, depth, value, wanted)
  local is_any = not (wanted.properties or wanted.required) and wanted.additionalProperties == nil
  if is_any then return end
  local plan, properties = plans[wanted] or make_plan(wanted), wanted.properties or none
  -- First its final form, in which nulls and aliases are gone; then what it holds. Each object by
  -- itself, because a pointer names a member as it was written: /steps/0/timeout, though the member
  -- is timeout_seconds by now.
  local others, absent, names = drop_nulls(value, plan), plan.absent, plan.names
  local used = wanted.aliases and rename(walk, depth, value, wanted.aliases) or none
  for i = 1, #names do
    local name = names[i]
    if value[name] == nil then
      if absent[name] then visit_absent(walk, depth, value, name, properties[name] or none) end
    elseif properties[name] then
      visit_member(walk, depth, value, name, used[name] or name, properties[name])
    end
  end
  if others and wanted.propertyNames then visit_names(walk, depth, others, wanted.propertyNames) end
  if others then visit_others(walk, depth, value, wanted.additionalProperties, others, plan) end
end

local function visit_array(walk, depth, value, wanted)
  local count, most, items = #value, wanted.maxItems, wanted.items
  if count < (wanted.minItems or 0) then mismatch(walk, depth, humanize.schema(wanted), value) end
  if most and count > most then mismatch(walk, depth, "at most " .. most .. " elements", value) end
  for i = 1, items and count or 0 do visit_member(walk, depth, value, i, i, items) end
end

local function visit_string(walk, depth, value, wanted)
  local least, most, pattern = wanted.minLength, wanted.maxLength, wanted.pattern
  local length
  -- Where there is no limit its characters are not counted: it may be long.
  if least or most then length = utf8.len(value) or #value end
  if least and length < least then
    local words = least == 1 and "a non-empty string" or "a string of at least %d characters"
    mismatch(walk, depth, words:format(least), value)
  elseif most and length > most then
    mismatch(walk, depth, ("a string of at most %d characters"):format(most), value)
  end
  local has_nul = wanted.nul == false and value:find("\0", 1, true)
  if has_nul then mismatch(walk, depth, "a string without NUL", value) end
  if pattern and not value:find((pattern:gsub("\\", "%%"))) then -- bounded: it is one of ours
    mismatch(walk, depth, "a string that matches " .. pattern, value)
  end
end

local function visit_number(walk, depth, value, wanted)
  local is_less = wanted.minimum and value < wanted.minimum
  local is_least = wanted.exclusiveMinimum and value <= wanted.exclusiveMinimum
  local is_more = wanted.maximum and value > wanted.maximum
  if is_less or is_least or is_more then mismatch(walk, depth, humanize.schema(wanted), value) end
end

-- Exactly one of the names that the parts require must be given.
local function visit_one_of(walk, depth, value, parts)
  local count = 0
  for _, part in ipairs(parts) do
    if value[part.required[1]] ~= nil then count = count + 1 end
  end
  if count == 1 then return end
  local names, present = {}, {}
  for i, part in ipairs(parts) do
    names[i] = part.required[1]
    if value[names[i]] ~= nil then present[#present + 1] = humanize.quoted(names[i]) end
  end
  local wanted = humanize.alternatives(names)
  local got = count == 0 and "none" or humanize.list(present, "and")
  fail(walk, depth, ("expected exactly one of %s, got %s"):format(wanted, got))
end

local by_kind <const> = {
  object = visit_object, array = visit_array, string = visit_string, number = visit_number,
}

local function fits(value, kind, wanted)
  local kinds = wanted.type
  if kinds and kind ~= kinds and not is_of_type(value, kind, kinds) then return false end
  if wanted.const ~= nil and value ~= wanted.const then return false end
  return not wanted.enum or json.contains(wanted.enum, value)
end

-- Returns the value in its final form, also where it does not fit.
function visit(walk, depth, value, wanted)
  if walk.errors.total > 0 and schema_check.is_enough(walk.errors) then return value end
  local kind, kinds = type(value), wanted.type
  if kind == "table" or kind == "userdata" then kind = json.kind(value) end
  local integer = kinds == "integer" and as_integer(value, kind)
  if integer then value, kind = integer, "number" end
  if kinds == "number" and kind == "long number" then value, kind = tonumber(value[1]), "number" end
  local is_plain = kind == kinds and not wanted.enum and wanted.const == nil
  if not is_plain and not fits(value, kind, wanted) then
    local hint = wanted.enum and kind == "string" and did_you_mean(value, wanted.enum)
    mismatch(walk, depth, humanize.schema(wanted), value, hint)
    return value
  end
  local further = by_kind[kind]
  if further then further(walk, depth, value, wanted) end
  if wanted.oneOf and kind == "object" then visit_one_of(walk, depth, value, wanted.oneOf) end
  return value
end

---Checks a value and puts it into its final form, in place: names for aliases, integers for whole
---floats, defaults for what is absent, nothing for null. One with mistakes may be changed in part.
---@param value any
---@param wanted table a schema
---@param errors? sba.schema.errors to add to
---@param pointer? string of the value; default: ""
---@return any value, sba.schema.errors errors
function schema_check.check(value, wanted, errors, pointer)
  errors = errors or { total = 0 }
  return visit({ errors = errors, base = pointer or "", path = {} }, 0, value, wanted), errors
end

---A copy in which some properties differ.
---@param schema table
---@param properties table<string, table>
---@return table
function schema_check.with(schema, properties)
  local copy = {}
  for keyword, value in pairs(schema) do copy[keyword] = value end
  copy.properties = {}
  for name, property in pairs(schema.properties) do
    copy.properties[name] = properties[name] or property
  end
  return copy
end

---@param members any[] names and schemas by turns, in the order of writing; "name!" is required
---@param schema? table other keywords
---@return table schema of objects with no other members
function schema_check.object(members, schema)
  schema = schema or {}
  local order, required, properties = {}, {}, {}
  for i = 1, #members, 2 do
    local name = members[i]
    if name:sub(-1) == "!" then
      name = name:sub(1, -2)
      required[#required + 1] = name
    end
    order[#order + 1], properties[name] = name, members[i + 1]
  end
  schema.type, schema.additionalProperties, schema.properties = "object", false, properties
  schema.order, schema.required = order, #required > 0 and required or nil
  return schema
end

---@param kind string|string[]
---@param description? string
---@param keywords? table others, here and below
---@return table schema
function schema_check.typed(kind, description, keywords)
  keywords = keywords or {}
  keywords.type, keywords.description = kind, description
  return keywords
end

local typed = schema_check.typed

---@param description? string
---@param keywords? table
---@return table
function schema_check.text(description, keywords) return typed("string", description, keywords) end

---@param description? string
---@param keywords? table
---@return table
function schema_check.flag(description, keywords) return typed("boolean", description, keywords) end

---@param description? string
---@param keywords? table minimum: default 0
---@return table
function schema_check.count(description, keywords)
  local schema = typed("integer", description, keywords)
  schema.minimum = schema.minimum or 0
  return schema
end

return schema_check
