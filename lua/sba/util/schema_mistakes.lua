-- SPDX-License-Identifier: Apache-2.0
-- What is wrong with a value that does not fit its schema: every error at once, in a fixed order, in words for people. Loaded
-- only where something is wrong; whether it is, util/schema.lua tells.

local json = require "sba.util.json"
local redact = require "native.secret".redact
local schema = require "sba.util.schema"
local text = require "native.text"
local words = require "sba.util.words"

local mistakes = {}

local MAX_ERRORS <const> = 100
local MAX_COUNTED <const> = 1000 -- then the search ends, so that a large value that is all wrong is refused in no time

---@class sba.schema.error
---@field pointer string RFC 6901
---@field expected string
---@field got string
---@field message string one line

---@class sba.schema.errors list of at most 100
---@field total integer how many were found; no more are looked for from 1,000 on

---Whether so many were found that no more should be looked for.
---@param errors sba.schema.errors
---@return boolean
function mistakes.enough(errors)
  return errors.total >= MAX_COUNTED
end

---Adds an error. Without a message: "expected X, got Y".
---@param errors sba.schema.errors
---@param pointer string
---@param expected string
---@param got string
---@param message? string
function mistakes.refuse(errors, pointer, expected, got, message)
  errors.total = errors.total + 1
  if #errors >= MAX_ERRORS then return end
  message = message or ("expected %s, got %s"):format(expected, got)
  errors[#errors + 1] = { pointer = pointer, expected = expected, got = got, message = message }
end

---One line for people: "/steps/3/type: expected ...". The whole document is "(job)" or what name says.
---@param failed sba.schema.error
---@param name? string
---@return string
function mistakes.line(failed, name)
  local pointer = failed.pointer == "" and "(" .. (name or "job") .. ")" or failed.pointer
  if pointer:find("[%c]") then pointer = words.quoted(pointer) end
  return pointer .. ": " .. failed.message
end

---A reference token of RFC 6901. A very long name is cut.
---@param name string|integer
---@return string
function mistakes.token(name)
  local token = redact(tostring(name))
  if #token > 256 then token = text.cut(token, 256) .. "..." end
  return (token:gsub("~", "~0"):gsub("/", "~1"))
end

-- What a schema's objects need, worked out once: names, all property names in a fixed order; required, a set; known, the names
-- an object may have, aliases included.
local plans = setmetatable({}, { __mode = "k" })
local none = {}

local function make_plan(wanted)
  local plan = { names = {}, required = {}, known = {}, aliases = wanted.aliases }
  local rest = {}
  for _, name in ipairs(wanted.required or none) do plan.required[name] = true end
  for _, list in ipairs { wanted.order or none, wanted.required or none } do
    for _, name in ipairs(list) do
      if not plan.known[name] then plan.names[#plan.names + 1], plan.known[name] = name, true end
    end
  end
  for name in pairs(wanted.properties or none) do
    if not plan.known[name] then rest[#rest + 1], plan.known[name] = name, true end
  end
  table.sort(rest)
  table.move(rest, 1, #rest, #plan.names + 1, plan.names)
  for alias in pairs(wanted.aliases or none) do plan.known[alias] = true end
  return plan
end

local function plan_of(wanted)
  local plan = plans[wanted]
  if not plan then
    plan = make_plan(wanted)
    plans[wanted] = plan
  end
  return plan
end

local validate

-- A walk: the errors, the pointer it began at, and the tokens from there to the value at hand.
local function pointer_of(walk, depth)
  local tokens = { walk.base }
  for i = 1, depth do
    local step = walk.path[i]
    tokens[i + 1] = mistakes.token(math.type(step) and step - 1 or step)
  end
  return table.concat(tokens, "/")
end

local function fail(walk, depth, expected, got, message)
  mistakes.refuse(walk.errors, pointer_of(walk, depth), expected, got, message)
end

local function refuse_unknown(walk, depth, name, plan)
  local known = {}
  for one in pairs(plan.known) do known[#known + 1] = one end
  table.sort(known)
  local near = words.near(name, known)
  local hint = near and ("; did you mean %s?"):format(words.quoted(near)) or ""
  fail(walk, depth, near or words.alternatives(known), words.quoted(name), "unknown field " .. words.quoted(name) .. hint)
end

-- Members that no property names.
local function validate_others(walk, depth, value, wanted, plan)
  local others, names = wanted.additionalProperties, nil
  if others == nil or others == true then return end
  for name in pairs(value) do
    if not plan.known[name] then
      names = names or {}
      names[#names + 1] = name
    end
  end
  if not names then return end
  table.sort(names)
  for _, name in ipairs(names) do
    if mistakes.enough(walk.errors) then return end
    walk.path[depth + 1] = name
    if others then validate(walk, depth + 1, value[name], others) else refuse_unknown(walk, depth + 1, name, plan) end
  end
end

-- The aliases that an object uses: name -> alias. An alias beside its name is an error.
local function aliases_used(walk, depth, value, plan)
  local used = none
  if not plan.aliases then return used end
  for alias, name in pairs(plan.aliases) do
    if value[alias] ~= nil then
      if used == none then used = {} end
      used[name] = alias
      if value[name] ~= nil then
        walk.path[depth + 1] = alias
        fail(walk, depth + 1, "only one of the two", "both",
          ("%s and %s are two names of one field; give only one"):format(words.quoted(alias), words.quoted(name)))
      end
    end
  end
  return used
end

local function validate_object(walk, depth, value, wanted)
  local plan, properties = plan_of(wanted), wanted.properties or none
  local used, names = aliases_used(walk, depth, value, plan), plan.names
  for i = 1, #names do
    local name = names[i]
    local key = used[name] or name
    local member, property = value[key], properties[name]
    if member ~= nil and property then
      walk.path[depth + 1] = key
      validate(walk, depth + 1, member, property)
    elseif member == nil and plan.required[name] then
      local expected = words.schema(property or none)
      walk.path[depth + 1] = key
      fail(walk, depth + 1, expected, "nothing", "is missing; expected " .. expected)
    end
  end
  validate_others(walk, depth, value, wanted, plan)
end

local function validate_array(walk, depth, value, wanted)
  if #value < (wanted.minItems or 0) then fail(walk, depth, words.schema(wanted), words.value(value)) end
  if wanted.maxItems and #value > wanted.maxItems then
    fail(walk, depth, ("at most %d elements"):format(wanted.maxItems), words.value(value))
  end
  if not wanted.items then return end
  for i, element in ipairs(value) do
    if mistakes.enough(walk.errors) then return end
    walk.path[depth + 1] = i
    validate(walk, depth + 1, element, wanted.items)
  end
end

local function validate_string(walk, depth, value, wanted)
  local length = (wanted.minLength or wanted.maxLength) and (utf8.len(value) or #value) -- else not looked at: it may be long
  if wanted.minLength and length < wanted.minLength then
    local expected = wanted.minLength == 1 and "a non-empty string" or ("a string of at least %d characters"):format(wanted.minLength)
    fail(walk, depth, expected, words.value(value))
  end
  if wanted.maxLength and length > wanted.maxLength then
    fail(walk, depth, ("a string of at most %d characters"):format(wanted.maxLength), words.value(value))
  end
  if wanted.pattern and not value:find((wanted.pattern:gsub("\\", "%%"))) then -- bounded: patterns of our own schemas
    fail(walk, depth, "a string that matches " .. wanted.pattern, words.value(value))
  end
end

local function validate_number(walk, depth, value, wanted)
  if wanted.minimum and value < wanted.minimum or wanted.maximum and value > wanted.maximum then
    fail(walk, depth, words.schema(wanted), words.value(value))
  end
end

local function validate_exclusive(walk, depth, value, names)
  local count = 0
  for _, name in ipairs(names) do
    if value[name] ~= nil then count = count + 1 end
  end
  if count == 1 then return end
  local present = {}
  for _, name in ipairs(names) do
    if value[name] ~= nil then present[#present + 1] = words.quoted(name) end
  end
  fail(walk, depth, "exactly one of " .. words.alternatives(names), count == 0 and "none" or words.list(present, "and"))
end

local function validate_one_of(walk, depth, value, parts)
  local names = json.kind(value) == "object" and schema.exclusive_names(parts)
  if names then return validate_exclusive(walk, depth, value, names) end
  local matching = 0
  for _, part in ipairs(parts) do
    local trial = { errors = { total = 0 }, base = walk.base, path = walk.path }
    validate(trial, depth, value, part)
    if trial.errors.total == 0 then matching = matching + 1 end
  end
  if matching == 1 then return end
  local list = {}
  for i, part in ipairs(parts) do list[i] = words.schema(part) end
  fail(walk, depth, "exactly one of " .. words.list(list, "or"), words.value(value))
end

local by_kind = { object = validate_object, array = validate_array, string = validate_string, number = validate_number }

function validate(walk, depth, value, wanted)
  local kind = json.kind(value)
  if wanted.type and not schema.is_of_type(value, kind, wanted.type) or wanted.const ~= nil and value ~= wanted.const
    or wanted.enum and not schema.is_among(value, wanted.enum) then
    local expected = words.schema(wanted)
    local near = wanted.enum and kind == "string" and words.near(value, wanted.enum)
    local got = words.value(value)
    return fail(walk, depth, expected, got, near and ("expected %s, got %s; did you mean %s?"):format(expected, got, words.quoted(near)))
  end
  local further = by_kind[kind]
  if further then further(walk, depth, value, wanted) end
  if wanted.oneOf then validate_one_of(walk, depth, value, wanted.oneOf) end
end

---Walks over a decoded value and adds what is wrong to errors.
---@param value any
---@param wanted table a schema
---@param errors sba.schema.errors
---@param pointer? string of the value, default "" (the whole document)
function mistakes.find(value, wanted, errors, pointer)
  validate({ errors = errors, base = pointer or "", path = {} }, 0, value, wanted)
end

---All that is wrong with a decoded value.
---@param value any
---@param wanted table a schema
---@return sba.schema.errors
function mistakes.of(value, wanted)
  local errors = { total = 0 }
  if not schema.fits(value, wanted) then mistakes.find(value, wanted, errors) end
  return errors
end

return mistakes
