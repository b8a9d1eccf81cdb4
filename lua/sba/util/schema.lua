-- SPDX-License-Identifier: Apache-2.0
-- Values against JSON Schema (draft 2020-12): whether they fit, and their final form. What is wrong with one that does not fit
-- is told by util/schema_mistakes.lua.
--
-- Keywords: type, required, properties, additionalProperties, items, enum, const, minimum, maximum, minLength, maxLength,
-- pattern, minItems, maxItems, oneOf, default, description, title; and three of our own: `order` (the order of keys when
-- written), `aliases` (another accepted name of an optional property -> its name; not both may be given) and `printed`
-- (keywords for the printed form only). A pattern is limited to what is a Lua pattern too, with \ for %. A schema may hold
-- itself.

local json = require "sba.util.json"

local schema = {}

local none <const> = {}

local function is_of(kind, value, name)
  if name == "integer" then return kind == "number" and math.tointeger(value) ~= nil end
  return kind == name
end

---Whether a value is of a type, or of one of a list.
---@param value any
---@param kind string the value's JSON type
---@param wanted string|string[]
---@return boolean
function schema.is_of_type(value, kind, wanted)
  if type(wanted) == "string" then return is_of(kind, value, wanted) end
  for _, name in ipairs(wanted) do
    if is_of(kind, value, name) then return true end
  end
  return false
end

---@param value any
---@param values any[]
---@return boolean
function schema.is_among(value, values)
  for i = 1, #values do
    if values[i] == value then return true end
  end
  return false
end

local exclusive = setmetatable({}, { __mode = "k" })

---The names of a oneOf whose parts each only require one, so that exactly one of these must be given; false for others.
---@param parts table[]
---@return string[]|false
function schema.exclusive_names(parts)
  if exclusive[parts] ~= nil then return exclusive[parts] end
  local names = {}
  for i, part in ipairs(parts) do
    local only = next(part)
    if only ~= "required" or next(part, only) or #part.required ~= 1 then
      names = false
      break
    end
    names[i] = part.required[1]
  end
  exclusive[parts] = names
  return names
end

local fits

-- A member that no property names. One that only order or required name is left to the walk.
local function fits_other(member, others)
  if others == nil or others == true then return true end
  return others and fits(member, others)
end

local function fits_object(value, wanted)
  local properties, aliases = wanted.properties or none, wanted.aliases or none
  for name, member in next, value do
    local meant = aliases[name]
    if meant and value[meant] ~= nil then return false end
    local property = properties[meant or name]
    if property then
      if not fits(member, property) then return false end
    elseif not fits_other(member, wanted.additionalProperties) then
      return false
    end
  end
  local required = wanted.required or none
  for i = 1, #required do
    if value[required[i]] == nil then return false end
  end
  return true
end

local function fits_array(value, wanted)
  local count, items = #value, wanted.items
  if wanted.minItems and count < wanted.minItems or wanted.maxItems and count > wanted.maxItems then return false end
  for i = 1, items and count or 0 do
    if not fits(value[i], items) then return false end
  end
  return true
end

local function fits_string(value, wanted)
  local least, most = wanted.minLength, wanted.maxLength
  if least or most then -- else it is not looked at: it may be long
    local length = utf8.len(value) or #value
    if length < (least or 0) or length > (most or math.huge) then return false end
  end
  return not wanted.pattern or value:find((wanted.pattern:gsub("\\", "%%"))) ~= nil -- bounded: patterns of our own schemas
end

local function fits_number(value, wanted)
  return value >= (wanted.minimum or -math.huge) and value <= (wanted.maximum or math.huge)
end

local function fits_one_of(value, kind, parts)
  local names = kind == "object" and schema.exclusive_names(parts)
  if not names then return false end
  local given = 0
  for i = 1, #names do
    if value[names[i]] ~= nil then given = given + 1 end
  end
  return given == 1
end

local by_kind = { object = fits_object, array = fits_array, string = fits_string, number = fits_number }

---Whether a decoded value fits, found out quickly: true is certain. False is not: where rare keywords are used, only
---schema_mistakes.find tells.
---@param value any
---@param wanted table a schema
---@return boolean
function schema.fits(value, wanted)
  local kind, named = json.kind(value), wanted.type
  if named and kind ~= named and not schema.is_of_type(value, kind, named) then return false end
  if wanted.const ~= nil and value ~= wanted.const or wanted.enum and not schema.is_among(value, wanted.enum) then return false end
  local further = by_kind[kind]
  if further and not further(value, wanted) then return false end
  return not wanted.oneOf or fits_one_of(value, kind, wanted.oneOf)
end

fits = schema.fits

-- Whether no value of a schema is changed by being resolved: schema -> boolean.
local inert = setmetatable({}, { __mode = "k" })

local is_inert

local function changes_nothing(wanted)
  if wanted.type == "integer" or wanted.aliases or wanted.items and not is_inert(wanted.items) then return false end
  for _, property in pairs(wanted.properties or none) do
    if property.default ~= nil or not is_inert(property) then return false end
  end
  return true
end

function is_inert(wanted)
  if inert[wanted] == nil then
    inert[wanted] = false -- until it is known: a schema may hold itself
    inert[wanted] = changes_nothing(wanted)
  end
  return inert[wanted]
end

local function copy(value)
  if type(value) ~= "table" then return value end
  local result = setmetatable({}, getmetatable(value))
  for key, part in pairs(value) do result[key] = copy(part) end
  return result
end

local function resolve_object(value, wanted)
  local properties = wanted.properties or none
  for alias, name in pairs(wanted.aliases or none) do
    if value[alias] ~= nil then value[name], value[alias] = value[alias], nil end
  end
  for name, property in next, properties do
    local member = value[name]
    if member == nil then
      if property.default ~= nil then value[name] = copy(property.default) end
    elseif not is_inert(property) then
      value[name] = schema.resolve(member, property)
    end
  end
end

---Puts a valid value into its final form, in place: names for aliases, integers for whole floats, defaults for what is absent.
---@param value any
---@param wanted table the schema it was validated by
---@return any value
function schema.resolve(value, wanted)
  if is_inert(wanted) then return value end
  local kind = json.kind(value)
  if kind == "number" and wanted.type == "integer" then
    return math.tointeger(value)
  elseif kind == "object" then
    resolve_object(value, wanted)
  elseif kind == "array" and wanted.items then
    for i = 1, #value do value[i] = schema.resolve(value[i], wanted.items) end
  end
  return value
end

---The standard form as text: loaded only where a schema is printed.
---@see sba.util.schema_document
function schema.print(...)
  return require "sba.util.schema_document" (...)
end

return schema
