-- SPDX-License-Identifier: Apache-2.0
-- The globals of scripts and of the prompt of --lua, in addition to Lua's own.

local help = require "sba.repl.help"
local inspect = require "sba.inspect"
local namespace = require "sba.repl.namespace"
local process = require "native.process"

local globals = {}

local GRACE <const> = 2 -- seconds
local environment
local tried = false -- whether a step was run

---A job file, checked, with its context. Its mistakes are raised, each on a line.
---@param file string
---@return sba.job
function globals.job(file)
  return inspect.job(file)
end

---What a model is told at the beginning of a job whose workspace is the current directory: the system text, the task, and what comes
---last in every request.
---@param file string of the job
---@return string
function globals.prompt(file)
  return inspect.prompt(file, environment)
end

---Runs one step in the current directory: step("write_file", { path = "a", content = "b" }). help "steps" lists the types.
---@param type string
---@param arguments? table as in a job
---@return table? result, table? entry nil and the whole entry of a step that failed; wrong arguments are raised
function globals.step(type, arguments)
  tried = true
  return inspect.step(type, arguments, environment)
end

---Says what is known of a module, function, handle or step type, by itself or by its name; of nothing: what there is.
---@param thing? any
function globals.help(...)
  return help.print(...)
end

---Ends what steps have left running, as the end of a job does.
function globals.finish()
  if tried then process.finish(GRACE) end
end

---Sets job, prompt, step, help, native and sba.
---@param variables table<string, string> the environment, for steps
function globals.install(variables)
  environment = variables
  for _, name in ipairs { "job", "prompt", "step", "help" } do _G[name] = globals[name] end
  _G.native, _G.sba = namespace.new "native", namespace.new "sba"
end

return globals
