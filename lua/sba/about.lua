-- SPDX-License-Identifier: Apache-2.0
-- The modes that run no job: what this program is, what it accepts, whether a job is valid; and the idle one of sessions.

local exit = require "sba.util.exit"

local about = {}

local LARGEST_JOB <const> = 64 * 1024 * 1024 -- bytes

--- --version
function about.version()
  local bundle = require "native.bundle"
  print(("cynode-sba %s (%s)"):format(bundle.version, bundle.libraries))
  return 0
end

--- --help
function about.help()
  io.write(require "sba.cli".help)
  return 0
end

--- --idle
function about.idle()
  require "native.process".idle()
  return exit.signalled() or exit.OK
end

--- The schema of a step as a job holds it: one alternative a type.
local function steps_schema()
  local catalogue = require "sba.catalogue"
  local schema = {
    title = "Step types of cynode-sba", oneOf = require "sba.util.json".array {}, ["$defs"] = {},
    order = { "title", "oneOf", "$defs" },
  }
  for _, name in ipairs(catalogue.names()) do
    local step = catalogue.get(name)
    schema["$defs"][name .. ".arguments"], schema["$defs"][name .. ".result"] = step.arguments, step.result
    table.insert(schema.oneOf, {
      type = "object", description = step.summary, required = { "type", "arguments" }, additionalProperties = false,
      order = { "id", "type", "arguments" },
      properties = {
        id = { type = "string" }, type = { const = name }, arguments = { ["$ref"] = "#/$defs/" .. name .. ".arguments" },
      },
    })
  end
  return schema
end

local schemas = {
  job = function() return require "sba.job.schema" end,
  result = function() return require "sba.result.schema" end,
  steps = steps_schema,
}

--- --schema
---@param what "job"|"result"|"steps"
function about.schema(what)
  io.write(require "sba.util.schema".print(schemas[what]()), "\n")
  return 0
end

--- --validate: every error on a line of its own, "POINTER: message".
---@param path string "-" is stdin
---@param environment table<string, string>
function about.validate(path, environment)
  local bytes, failure = require "native.file".read(path, LARGEST_JOB)
  local job
  if bytes then job, failure = require "sba.job".parse(bytes, require "sba.catalogue", environment) end
  if job then
    print(path .. ": valid")
    return 0
  end
  for _, problem in ipairs(failure.errors or { { pointer = "", message = failure.message } }) do
    io.write(problem.pointer, ": ", problem.message, "\n")
  end
  return exit.REFUSED
end

return about
