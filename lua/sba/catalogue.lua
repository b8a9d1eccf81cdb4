-- SPDX-License-Identifier: Apache-2.0
-- The step types that are bundled: every module below sba.steps. Each is loaded when it is first asked for.
--
-- A module that is no step type is a mistake in the build, so it raises an error that names the file. Whether its schemas hold
-- only keywords that are understood is checked by all(), which --schema and the tests go through, not at each start.

local bundle = require "native.bundle"
local metaschema = require "sba.util.metaschema"

local catalogue = {}

local FIELDS <const> = {
  name = "string", summary = "string", arguments = "table", run = "function",
  result = "table", check = "function", lint = "function", show = "function", ticks = "boolean", brief = "boolean",
}
local NEEDED <const> = { "name", "summary", "arguments", "run" }

-- What the model calls already: the agent's own tools (run/agent/tools.lua).
local OF_THE_AGENT <const> = { todo_add = true, todo_update = true, read_output = true, finish = true }

local function misnamed(name)
  if name:find(".", 1, true) then return "is in a directory of its own; put step types into sba/steps itself" end
  if not name:find("^%l[%l%d_]*$") or #name > 64 then return "is not a valid name: use lower-case letters, digits and _, at most 64" end
  if OF_THE_AGENT[name] then return "has a name that is taken by a tool of the agent" end
end

local function mistyped(step)
  for _, field in ipairs(NEEDED) do
    if step[field] == nil then return ("has no %s"):format(field) end
  end
  for field, value in pairs(step) do
    local wanted = FIELDS[field] or field == "for_model" and (value == false and "boolean" or "table")
    if not wanted then return ("has the unknown field '%s'"):format(tostring(field)) end
    if type(value) ~= wanted then return ("has a %s that is not a %s"):format(field, wanted) end
  end
end

local function mistake_in(step, name)
  if type(step) ~= "table" then return "does not return a table" end
  local mistake = misnamed(name) or mistyped(step)
  if mistake then return mistake end
  if step.name ~= name then return ("has the name '%s': name and file name must be the same"):format(step.name) end
  if step.summary == "" then return "has an empty summary" end
  if step.arguments.type ~= "object" then return "has arguments that are not a schema of type object" end
end

local function schema_mistake_in(step)
  local mistake = metaschema(step.arguments)
  if mistake then return "has a mistake in its schema of arguments: " .. mistake end
  mistake = step.result and metaschema(step.result)
  return mistake and "has a mistake in its schema of result: " .. mistake
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

---What is wrong with a step type, its schemas and its loading included. For builds.
---@param name string
---@return string? mistake one line without the file's name; nil: nothing
function catalogue.mistake(name)
  local loaded, step = pcall(require, "sba.steps." .. name)
  if not loaded then return "cannot be loaded: " .. tostring(step):match("^[^\n]*") end
  return mistake_in(step, name) or schema_mistake_in(step)
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
