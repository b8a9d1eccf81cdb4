-- SPDX-License-Identifier: Apache-2.0
-- A step's entry in the result, made of what its run returned.

local failures = require "sba.result.failure"
local json = require "sba.util.json"
local output = require "sba.result.output"
local schema = require "sba.result.schema"
local secret = require "sba.util.secret"

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

--- What a step says comes from outside. Secrets go from the text before it is shortened, for a part of one would not be found.
local function fill(entry, module, result, text)
  entry.result = result ~= nil and secret.clean(result, module and module.result) or nil
  entry.exit_code = type(result) == "table" and result.exit_code or nil
  entry.output = text and output(secret.redact(text)) or nil
  entry.error = entry.error and secret.redact(entry.error)
end

--- Makes an entry, but for its place, name and times, of what xpcall(run, failures.traced) gave.
---@param module table of the step's type
---@param ok boolean
---@param result any run's first value
---@param more any run's second value: the text, or the failure
---@return table entry, failure? failure the job's
function entries.make(module, ok, result, more)
  if ok and result ~= nil then
    -- With room for what comes later: a table that grows member by member is made anew four times.
    local entry = {
      index = nil, id = nil, type = nil, status = "success", started_at = nil, duration_ms = nil, exit_code = nil, output = nil,
      result = nil,
    }
    fill(entry, module, result, more)
    return entry
  end
  local problem = more
  if not ok then problem = failures.caught(result, true) end
  if type(problem) ~= "table" then problem = failures.caught("the step returned neither result nor failure") end
  local entry = {
    status = problem.code == "timeout" and "timeout" or "failure", error = problem.message, error_code = problem.code,
  }
  fill(entry, module, problem.result, problem.text)
  local failure = failures.of_step(problem.code, entry.error)
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
