-- SPDX-License-Identifier: Apache-2.0
-- --lua: scripts in the host, and a prompt to try things.

local exit = require "sba.util.exit"
local file = require "native.file"
local globals = require "sba.repl.globals"
local identity = require "native.identity"
local script = require "sba.repl.script"
local session = require "sba.repl.session"

local repl = {}

local function complain(message)
  io.stderr:write("cynode-sba: ", message, "\n")
end

---Runs `FILE ARG...`, `-e CODE ARG...`, `-` (stdin), or what stands on stdin where there is no argument: a person at a terminal gets
---a prompt. Whoever --user names, it becomes first.
---@param settings cli.settings
---@param environment table<string, string>
---@return integer status 0; 1 after an error; 2 where it could not begin; os.exit's own
function repl.main(settings, environment)
  if settings.user then
    local ok, failure = identity.become(settings.user)
    if not ok then
      complain("cannot run as the user of --user: " .. failure.message)
      return exit.REFUSED
    end
  end
  globals.install(environment)
  local status
  if not settings.script[1] and file.terminal_columns(0) then
    status = session.run(environment)
  else
    status = script.run(settings.script, complain)
  end
  globals.finish()
  return status
end

return repl
