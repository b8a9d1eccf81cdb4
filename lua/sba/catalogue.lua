-- SPDX-License-Identifier: Apache-2.0
-- The step types that are bundled: every module below sba.steps. Each is loaded when it is first asked for.
--
-- A module that is no step type is a mistake in the build, so it raises an error that names the file. Whether its schemas hold
-- only keywords that are understood is checked by all(), which --schema and the tests go through, not at each start.

local bundle = require "native.bundle"

local catalogue = {}

---@class sba.step
---@field name string the file's name
---@field summary string one sentence, for people and for the model
---@field arguments table JSON Schema of an object
---@field result? table JSON Schema
---@field check? fun(arguments: table): string?, string? what the schema cannot say: one line, and the argument it is about
---@field show? fun(result: table): string the whole of a result as a model reads it; default: its text
---@field for_model? boolean false: not offered to models
---@field run fun(arguments: table, job_context: table): table?, string|table|nil

local function mistake_in(step, name)
  if type(step) ~= "table" then return "returns no table" end
  if step.name ~= name then return ("calls itself '%s'"):format(tostring(step.name)) end
  if type(step.summary) ~= "string" or step.summary == "" then return "has no summary" end
  if type(step.run) ~= "function" then return "has no function run" end
  if type(step.arguments) ~= "table" or step.arguments.type ~= "object" then return "has no arguments schema of type object" end
  if step.check ~= nil and type(step.check) ~= "function" then return "has a check that is no function" end
end

local function schema_mistake_in(step)
  local metaschema = require "sba.util.metaschema"
  local mistake = metaschema(step.arguments)
  if mistake then return "arguments: " .. mistake end
  mistake = step.result and metaschema(step.result)
  return mistake and "result: " .. mistake
end

local function raise(name, mistake)
  error(("lua/sba/steps/%s.lua %s"):format(name, mistake), 0)
end

local names, known
local checked = {}

---@return string[] the names of all step types, in byte order
function catalogue.names()
  if not names then
    names, known = bundle.list "sba.steps.", {}
    for _, name in ipairs(names) do known[name] = true end
  end
  return names
end

---@param name string
---@return sba.step? step nil where there is no such type
function catalogue.get(name)
  catalogue.names()
  if not known[name] then return nil end
  if not checked[name] then
    local step = require("sba.steps." .. name)
    local mistake = mistake_in(step, name)
    if mistake then raise(name, mistake) end
    checked[name] = step
  end
  return checked[name]
end

---@return sba.step[] all of them, in byte order of name
function catalogue.all()
  local steps = {}
  for i, name in ipairs(catalogue.names()) do
    steps[i] = catalogue.get(name)
    local mistake = schema_mistake_in(steps[i])
    if mistake then raise(name, mistake) end
  end
  return steps
end

return catalogue
