-- SPDX-License-Identifier: Apache-2.0
-- What `--schema job` and `--schema steps` print: the job's schema with the arguments of every step type in it.

local job_schema = require "sba.job.job_schema"
local json = require "sba.util.json"
local print_schema = require "sba.util.schema_document"

local printed = {}

-- The schema of a step of one type: the general one with the type's name and arguments.
local function step_schema(general, step)
  local properties = {}
  for name, property in pairs(general.properties) do properties[name] = property end
  properties.type = { const = step.name, description = step.summary }
  properties.arguments = step.arguments
  local own = { properties = properties }
  for keyword, value in pairs(general) do own[keyword] = own[keyword] or value end
  if #(step.arguments.required or {}) > 0 then
    local either = json.array { { required = json.array { "arguments" } }, { required = json.array { "args" } } }
    own.printed = { anyOf = either }
  end
  return own
end

---@param catalogue { names: (fun(): string[]), all: (fun(): sba.step[]) }
---@return string text
function printed.job(catalogue)
  local whole = job_schema(catalogue.names())
  local items, one_of, definitions = whole.properties.steps.items, {}, {}
  for i, step in ipairs(catalogue.all()) do
    one_of[i] = step_schema(items, step)
    definitions[step.name] = one_of[i]
  end
  whole.properties.steps.items = { oneOf = one_of }
  return print_schema(whole, definitions, true)
end

---One document: each step type with its arguments and its result.
---@param catalogue { all: (fun(): sba.step[]) }
---@return string text
function printed.steps(catalogue)
  local properties, order = {}, {}
  for i, step in ipairs(catalogue.all()) do
    order[i] = step.name
    properties[step.name] = {
      type = "object", description = step.summary, order = { "arguments", "result" },
      properties = { arguments = step.arguments, result = step.result or { type = "object" } },
    }
  end
  return print_schema {
    title = "The step types of cynode-sba", description = "For each type of step: what its arguments are, and what its result is.",
    type = "object", order = order, properties = properties, additionalProperties = false,
    printed = { ["$id"] = "urn:cynode-sba:schema:steps:1" },
  }
end

return printed
