-- SPDX-License-Identifier: Apache-2.0
-- A step's entry in the result, made of what its run returned.

local failures = require "sba.result.failure"
local json = require "sba.util.json"
local native_secret = require "native.secret"
local output = require "sba.result.output"
local schema = require "sba.result.schema"

local entries = {}

local entry_schema = schema.properties.steps.items
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

--- Without secrets from here on: where parts of it are put together or cut later, none would be found. They go from the text
--- before it is bounded, for the mark may be longer than a secret.
local function fill(entry, result, text)
  entry.result = result
  entry.exit_code = type(result) == "table" and result.exit_code or nil
  entry.output = text and output(native_secret.redact(text)) or nil
  if native_secret.is_known() then require "sba.util.secret".clean(entry) end
end

--- Makes an entry, but for its place, name and times, of what xpcall(run, failures.traced) gave.
---@param ok boolean
---@param result any run's first value
---@param more any run's second value: the text, or the failure
---@return table entry, failure? failure the job's
function entries.make(ok, result, more)
  if ok and result ~= nil then
    -- With room for what comes later: a table that grows member by member is made anew four times.
    local entry = {
      index = nil, id = nil, type = nil, status = "success", started_at = nil, duration_ms = nil, exit_code = nil, output = nil,
      result = nil,
    }
    fill(entry, result, more)
    return entry
  end
  local problem = more
  if not ok then problem = failures.caught(result, true) end
  if type(problem) ~= "table" then problem = failures.caught("the step returned neither result nor failure") end
  local entry = {
    status = problem.code == "timeout" and "timeout" or "failure", error = problem.message, error_code = problem.code,
  }
  fill(entry, problem.result, problem.text)
  local failure = failures.of_step(problem.code, problem.message)
  failure.traceback = problem.traceback
  return entry, failure
end

--- The entry as JSON.
---@param entry table
---@param module? table of the step's type
---@return string
function entries.encode(entry, module)
  return json.encode(entry, schema_of(module))
end

return entries
