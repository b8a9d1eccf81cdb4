-- SPDX-License-Identifier: Apache-2.0
-- The exit statuses.

local interrupt = require "native.interrupt"

local exit = { OK = 0, FAILED = 1, REFUSED = 2, UNWRITABLE = 3, TIMEOUT = 124 }

--- Of a run that a signal ended: 128 and its number.
---@return integer? status nil where no signal came
function exit.signalled()
  local name = interrupt.signal()
  return name and (name == "SIGINT" and 130 or 143)
end

return exit
