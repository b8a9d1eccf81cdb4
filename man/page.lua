-- SPDX-License-Identifier: Apache-2.0
-- cynode-sba --lua man/page.lua: prints the manual page, which is page.mdoc with the options, the step types and the failure codes of the
-- program. A test compares cynode-sba.1 with it.

local catalogue = require "sba.catalogue"
local cli = require "sba.cli"
local failure_code = require "sba.result.result_schema".properties.failure_code
local failures = require "sba.report.outcome".failures
local humanize = require "sba.util.humanize"

--- Text as mdoc takes it: a sentence begins a line, lines are short, dashes stay dashes, and no line begins with a control character.
local function plain(words)
  words = words:gsub("\\", "\\e"):gsub("%-%-", "\\-\\-")
  local lines, line = {}, ""
  for word in words:gmatch("%S+") do
    if line ~= "" and (#line + #word > 78 or line:find("[.!?]$")) then lines[#lines + 1], line = line, "" end
    line = line == "" and word:gsub("^[.']", "\\&%0") or line .. " " .. word
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

local function sentence(words)
  return plain(words:gsub("^%l", string.upper):gsub("[^.]$", "%0."))
end

local function about(option)
  if not option.variables or not option.default then return option.summary end
  if not option.values then return "the default is " .. option.summary end
  return ("%s; the default is %s: %s"):format(humanize.list(option.values, "or"), option.default, option.summary)
end

local function option_item(option)
  local lines = { ".It Fl Fl " .. option.name .. (option.value and " Ar " .. plain(option.value):gsub("[%[%]|]", "\\&%0") or "") }
  lines[2] = sentence(about(option))
  if option.variables then lines[3] = ".Pq Ev " .. table.concat(option.variables, " , ") end
  return table.concat(lines, "\n")
end

local lists = { options = {}, steps = {}, failures = {} }
for i, option in ipairs(cli.options) do lists.options[i] = option_item(option) end
for i, step in ipairs(catalogue.all()) do lists.steps[i] = (".It Cm %s\n%s"):format(step.name, sentence(step.summary)) end
for _, code in ipairs(failure_code.enum) do
  local about = failures[code]
  if about then table.insert(lists.failures, (".It Cm %s\n%s\n%s"):format(code, plain(about[1]), plain(about[2]))) end
end

local prose <close> = assert(io.open((arg[0]:gsub("page%.lua$", "page.mdoc"))))
io.write((prose:read("a"):gsub("@(%l+)@", function(name) return table.concat(lists[name], "\n") end)))
