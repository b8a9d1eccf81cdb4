-- SPDX-License-Identifier: Apache-2.0
-- The modes that tell about the program: --version, --help, --schema, --completion; and --idle for sessions.

local bundle = require "native.bundle"
local catalogue = require "sba.catalogue"
local cli = require "sba.cli"
local completion = require "sba.completion"
local exit = require "sba.util.exit"
local printed = require "sba.job.printed"
local process = require "native.process"
local result_schema = require "sba.result.result_schema"
local schema_document = require "sba.util.schema_document"

local about = {}

--- --version
function about.version()
  print(("cynode-sba %s (%s)"):format(bundle.version, bundle.libraries))
  return exit.OK
end

local SHOWN_TOGETHER <const> = { version = "-V, --version, -h, --help" } -- one line for both
local HEAD <const> = [[
cynode-sba [OPTION...] [JOB]: run a job and write its result; see cynode-sba(1)
]]
local TAIL <const> = [[
                     CYNODE_ARTIFACTS_DIR     artifacts/ next to the result
exit: 0 success, 1 the job failed, 2 job or command line refused, 3 the result
could not be written, 124 timeout, 143 SIGTERM, 130 SIGINT
]]

--- Options that take a variable too have the default as their summary; they stand in a table of their own.
local function usage()
  local modes, settings = {}, { ("%-20s %-24s %s\n"):format("option", "environment", "default") }
  for _, option in ipairs(cli.options) do
    local shown = "--" .. option.name .. (option.value and " " .. option.value or "")
    if option.variables then
      settings[#settings + 1] = ("%-20s %-24s %s\n"):format(shown, option.variables[1], option.summary)
    elseif option.name ~= "help" and not option.of then
      modes[#modes + 1] = ("  %-28s %s\n"):format(SHOWN_TOGETHER[option.name] or shown, option.summary)
    end
  end
  return HEAD .. table.concat(modes) .. table.concat(settings) .. TAIL
end

about.usage = usage()

--- --help
function about.help()
  io.write(about.usage)
  return exit.OK
end

--- --idle
function about.idle()
  process.idle()
  return exit.signalled() or exit.OK
end

local schemas = {
  job = function() return printed.job(catalogue) end,
  result = function() return schema_document(result_schema) end,
  steps = function() return printed.steps(catalogue) end,
}

--- --schema
---@param what "job"|"result"|"steps"
function about.schema(what)
  io.write(schemas[what]())
  return exit.OK
end

--- --completion
---@param shell "bash"|"fish"|"zsh"
function about.completion(shell)
  io.write(completion[shell](cli.options))
  return exit.OK
end

return about
