-- SPDX-License-Identifier: Apache-2.0
-- The step types: every bundled module below sba.steps, loaded when first asked for. The build has
-- checked them (cmake/step_mistake.lua).

local bundle = require "native.bundle"
local json = require "sba.util.json"
local lazy = require "sba.util.lazy"

local humanize = lazy "sba.util.humanize"

local catalogue = {}

local names, steps = nil, {}

---@return string[] in byte order
function catalogue.names()
  names = names or bundle.list "sba.steps."
  return names
end

---@param name string
---@return sba.step?
function catalogue.get(name)
  if not steps[name] and json.contains(catalogue.names(), name) then steps[name] = require("sba.steps." .. name) end
  return steps[name]
end

---@return sba.step[] in byte order of name
function catalogue.all()
  local list = {}
  for i, name in ipairs(catalogue.names()) do list[i] = catalogue.get(name) end
  return list
end

---@param step { type: string, arguments: table }
---@param result? table what it returned, once it has succeeded
---@return string what it does, or did, in a few words for people: what the type says, or else its arguments
function catalogue.what(step, result)
  local module = catalogue.get(step.type)
  if module and module.what then
    local ok, said = pcall(module.what, step.arguments, result)
    if ok and type(said) == "string" then return humanize.brief(said) end
  end
  return humanize.step(step)
end

return catalogue
