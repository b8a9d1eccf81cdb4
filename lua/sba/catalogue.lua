-- SPDX-License-Identifier: Apache-2.0
-- The step types: every bundled module below sba.steps, loaded when it is first asked for. The build refuses a module that is no step type
-- (cmake/step_mistake.lua), so they are not checked again when the program runs.

local bundle = require "native.bundle"
local words = require "sba.util.words"

local catalogue = {}

local names, steps = nil, {}

---@return string[] in byte order
function catalogue.names()
  names = names or bundle.list "sba.steps."
  return names
end

---@param name string
---@return sba.step? nil where there is no such type
function catalogue.get(name)
  if not steps[name] and words.has(catalogue.names(), name) then steps[name] = require("sba.steps." .. name) end
  return steps[name]
end

---@return sba.step[] in byte order of name
function catalogue.all()
  local list = {}
  for i, name in ipairs(catalogue.names()) do list[i] = catalogue.get(name) end
  return list
end

return catalogue
