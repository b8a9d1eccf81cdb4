-- SPDX-License-Identifier: Apache-2.0
-- --lua: scripts in the host, and a prompt to try things.

local exit = require "sba.util.exit"
local file = require "native.file"
local globals = require "sba.repl.globals"
local identity = require "native.identity"
local session = require "sba.repl.session"

--- A signal or the deadline raises a table; returns its message for people.
local function traced(problem)
  if type(problem) == "table" and problem.message then return problem end
  return debug.traceback(tostring(problem), 2)
end

--- The chunk, or nil and why there is none.
local function read(name, code)
  if name == "-e" and code then return load(code, "=(command line)", "t") end
  if name == "-e" then return nil, "-e requires code: --lua -e CODE" end
  if name and name ~= "-" and name:sub(1, 1) == "-" then
    return nil, ("--lua does not know %s; it takes FILE, -e CODE, or - for stdin"):format(name)
  end
  return loadfile(name ~= "-" and name or nil, "t")
end

--- Runs a script to its end; returns the exit status.
---@param arguments string[] as they follow --lua
local function run_script(arguments)
  local chunk, message = read(arguments[1], arguments[2])
  if not chunk then return exit.because(message, exit.FAILED) end
  local first = arguments[1] == "-e" and 3 or 2
  _G.arg = { [0] = arguments[1] or "-", table.unpack(arguments, first) }
  local ok, problem = xpcall(chunk, traced, table.unpack(arguments, first))
  return ok and exit.OK or exit.because(type(problem) == "table" and problem.message or problem, exit.FAILED)
end

---Runs `FILE ARG...`, `-e CODE ARG...`, `-` (stdin), or what stands on stdin where there is no argument: a person at a terminal gets
---a prompt. Whoever --user names, it becomes first.
---@param settings cli.settings
---@param environment table<string, string>
---@return integer status 0; 1 after an error; 2 where it could not begin; os.exit's own
return function(settings, environment)
  if settings.user then
    local ok, failure = identity.become(settings.user)
    if not ok then return exit.because("cannot run as the user of --user: " .. failure.message, exit.REFUSED) end
  end
  globals.install(environment)
  local status
  if not settings.script[1] and file.terminal_columns(0) then
    status = session.run()
  else
    status = run_script(settings.script)
  end
  globals.finish()
  return status
end
