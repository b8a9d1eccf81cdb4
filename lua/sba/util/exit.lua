-- SPDX-License-Identifier: Apache-2.0
-- The exit statuses.

local interrupt = require "native.interrupt"
local redact = require "native.secret".redact

local exit = { OK = 0, FAILED = 1, REFUSED = 2, UNWRITABLE = 3, TIMEOUT = 124 }

---@return integer? status 128 and the signal's number; nil where no signal came
function exit.signalled()
  local name = interrupt.signal()
  return name and (name == "SIGINT" and 130 or 143)
end

---Says on stderr why the program ends.
---@param message string
---@param status integer
---@return integer status that, or the signal's
function exit.because(message, status)
  io.stderr:write("cynode-sba: ", redact(message), "\n")
  return exit.signalled() or status
end

return exit
