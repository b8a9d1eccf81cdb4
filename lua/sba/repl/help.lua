-- SPDX-License-Identifier: Apache-2.0
-- help(): what is at hand at the prompt, and what a step type takes.

local catalogue = require "sba.catalogue"
local modules = require "sba.repl.modules"
local schema_check = require "sba.util.schema_check"
local words = require "sba.util.words"

local help = {}

local OVERVIEW <const> = [[
An expression shows its values; _ is the first of the last ones. Tab completes,
Ctrl-R finds what was typed before, Ctrl-C stops what runs or drops the line.

  job(file)              a job file, checked, with its context
  prompt(file)           what a model is told at the beginning of it
  step(type, arguments)  runs one step here: step("list_tree", {path="."})
  native.NAME, sba.NAME  modules, which need no `require`; their names show what they offer
  help "TYPE"            what a step type takes

Step types:
]]

local function about_step(step)
  local parts, required = { ("%s: %s"):format(step.name, step.summary) }, {}
  for _, argument in ipairs(step.arguments.required or {}) do required[argument] = true end
  for _, argument in ipairs(schema_check.names(step.arguments)) do
    local schema, mark = step.arguments.properties[argument], required[argument] and "" or "?"
    parts[#parts + 1] = ("  %s%s  %s. %s"):format(argument, mark, words.schema(schema), schema.description or "")
  end
  return table.concat(parts, "\n") .. "\n"
end

---What is known of a step type; without one, or of none that there is, an overview.
---@param type? string
---@return string text whole lines
function help.text(type)
  local step = type and catalogue.get(type)
  if step then return about_step(step) end
  local parts = {}
  for i, one in ipairs(catalogue.all()) do parts[i] = ("  %s  %s\n"):format(one.name, one.summary) end
  return OVERVIEW .. table.concat(parts) .. "\n" .. tostring(modules.below "native") .. "\n"
end

return help
