-- SPDX-License-Identifier: Apache-2.0
-- What is wrong with a step type, for the build and for specs: the program itself takes its step types as they are.

local metaschema = require "metaschema"

local FIELDS <const> = {
  name = "string", summary = "string", arguments = "table", run = "function",
  result = "table", check = "function", what = "function", show = "function",
  ticks = "boolean", brief = "boolean", redacts = "boolean", takes_secrets = "boolean",
}
local NEEDED <const> = { "name", "summary", "arguments", "run" }

-- What the model calls already: the agent's own tools (sba/agent/tools.lua).
local OF_THE_AGENT <const> = { todo_add = true, todo_update = true, read_output = true, finish = true }

local function misnamed(name)
  if name:find(".", 1, true) then return "is in a directory of its own; put step types into sba/steps itself" end
  if not name:find("^%l[%l%d_]*$") or #name > 64 then
    return "is not a valid name: use lower-case letters, digits and _, at most 64"
  end
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
  for _, field in ipairs { "arguments", "result" } do
    mistake = step[field] and metaschema(step[field])
    if mistake then return ("has a mistake in its schema of %s: %s"):format(field, mistake) end
  end
end

---What is wrong with a step type, its schemas and its loading included.
---@param name string
---@return string? mistake one line without the file's name; nil: nothing
return function(name)
  local loaded, step = pcall(require, "sba.steps." .. name)
  if not loaded then return "cannot be loaded: " .. tostring(step):match("^[^\n]*") end
  return mistake_in(step, name)
end
