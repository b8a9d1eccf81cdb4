-- SPDX-License-Identifier: Apache-2.0
-- The step types that are bundled: every module below sba.steps. Each is loaded when it is first asked for. The build refuses a module
-- that is no step type (cmake/step_mistake.lua), so they are not checked again when the program runs.

local bundle = require "native.bundle"

local catalogue = {}

local names
local known -- name -> true, or the step once it is loaded

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
  if known[name] == true then known[name] = require("sba.steps." .. name) end
  return known[name]
end

---@return sba.step[] all of them, in byte order of name
function catalogue.all()
  local steps = {}
  for i, name in ipairs(catalogue.names()) do steps[i] = catalogue.get(name) end
  return steps
end

return catalogue
