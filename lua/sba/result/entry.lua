-- SPDX-License-Identifier: Apache-2.0
-- A step's entry in the result, made of what its run returned.

local excerpt = require "sba.util.excerpt"
local failures = require "sba.result.failure"
local json = require "sba.util.json"
local raw = require "native.json".raw
local result_schema = require "sba.result.result_schema"
local secret = require "sba.util.secret"
local text = require "native.text"

local entries = {}

local MOST_OUTPUT <const> = 1024 * 1024 -- bytes
local SHARED <const> = 16 * 1024 -- bytes, from which on a text that an entry has twice is encoded and kept once
local HOLE <const> = raw "\0" -- which JSON never has

local entry_schema = result_schema.properties.steps.items
local schemas = setmetatable({}, { __mode = "k" })

--- The entry's schema with a step type's result in it, so that every key has its order.
local function schema_of(module)
  if not module then return entry_schema end
  local own = schemas[module]
  if not own then
    own = { order = entry_schema.order, properties = {} }
    for name, property in pairs(entry_schema.properties) do own.properties[name] = property end
    own.properties.result = module.result
    schemas[module] = own
  end
  return own
end

--- What a step says comes from outside. Secrets go from the text before it is shortened, for a part of one would not be found.
local function fill(entry, module, limit, result, words, is_cut)
  if not (module and module.redacts) then
    result, words = secret.clean(result, module and module.result), words and secret.redact(words)
  end
  entry.result = result
  entry.exit_code = type(result) == "table" and result.exit_code or nil
  entry.error = entry.error and secret.redact(entry.error)
  if not words then return end
  local is_shortened
  entry.output, is_shortened = excerpt.of(text.repair(words), math.min(limit, MOST_OUTPUT))
  entry.output_truncated = (is_cut or is_shortened) and true or nil
end

--- Makes an entry, but for its place, name and times, of what xpcall(run, failures.traced) gave.
---@param module table of the step's type
---@param limit integer bytes of the plain text
---@param ok boolean
---@param result any run's first value
---@param more any run's second value: the text, or the failure
---@param is_cut? boolean run's third value: something is missing from the text
---@return table entry, failure? failure the job's
function entries.make(module, limit, ok, result, more, is_cut)
  if ok and result ~= nil then
    -- With room for what comes later: a table that grows member by member is made anew four times.
    local entry = {
      index = nil, id = nil, type = nil, status = "success", started_at = nil, duration_ms = nil, exit_code = nil, output = nil,
      output_truncated = nil, result = nil,
    }
    fill(entry, module, limit, result, more, is_cut)
    return entry
  end
  local problem = more
  if not ok then problem = failures.caught(result, true) end
  if type(problem) ~= "table" then problem = failures.caught("the step returned neither result nor failure") end
  local entry = {
    status = problem.code == "timeout" and "timeout" or "failure", error = problem.message, error_code = problem.code,
  }
  fill(entry, module, limit, problem.result, problem.text, problem.is_cut)
  local failure = failures.of_step(problem.code, entry.error)
  failure.traceback = problem.traceback
  return entry, failure
end

---The bytes that the plain text of a step may have.
---@param step { arguments: table }
---@param context { max_output_bytes: integer }
---@return integer
function entries.limit(step, context)
  local arguments = step.arguments
  return math.min(context.max_output_bytes, arguments.max_output_bytes or arguments.max_bytes or math.maxinteger)
end

--- The entry as JSON.
---@param entry table
---@param module? table of the step's type
---@return string
function entries.encode(entry, module)
  return json.encode(entry, schema_of(module))
end

--- The member of the result that repeats the plain text, as a command's stdout or a file's content does.
local function repeated(entry)
  local output, result = entry.output, entry.result
  if not output or #output < SHARED or type(result) ~= "table" then return nil end
  for name, value in next, result do
    if value == output then return name end
  end
end

local function with(object, name, value)
  local copy = {}
  for key, member in next, object do copy[key] = member end
  copy[name] = value
  return copy
end

---The entry as JSON, whole, or in strings that are written one after the other.
---@param entry table
---@param module? table of the step's type
---@return string|string[]
function entries.parts(entry, module)
  local name = repeated(entry)
  if not name then return entries.encode(entry, module) end
  local result = with(entry.result, name, HOLE)
  local whole = entries.encode(with(with(entry, "output", HOLE), "result", result), module)
  local output, first = json.encode(entry.output), whole:find("\0", 1, true)
  local second = whole:find("\0", first + 1, true)
  return { whole:sub(1, first - 1), output, whole:sub(first + 1, second - 1), output, whole:sub(second + 1) }
end

local function split(whole, word)
  local from, to = whole:find(word, 1, true)
  return whole:sub(1, from - 1), whole:sub(to + 1)
end

---Encodes entries of steps that were not reached: many times as fast as one by one, for there may be very many.
---@param started_at string
---@return fun(index: integer, id: string, type: string): string
function entries.skipped(started_at)
  local before_index, before_id, before_type, rest
  before_index, rest = split(entries.encode {
    index = 123456789, id = "<id>", type = "<type>", status = "skipped", started_at = started_at, duration_ms = 0,
  }, "123456789")
  before_id, rest = split(rest, '"<id>"')
  before_type, rest = split(rest, '"<type>"')
  local types = setmetatable({}, { __index = function(known, name)
    known[name] = json.encode(name)
    return known[name]
  end })
  return function(index, id, type)
    return before_index .. index .. before_id .. json.encode(id) .. before_type .. types[type] .. rest
  end
end

return entries
