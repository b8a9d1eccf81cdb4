-- SPDX-License-Identifier: Apache-2.0
-- Globals are fixed: reading or setting one that does not exist is an error that names it. For jobs; what --lua runs
-- has them as Lua has them.

local strict = {}

local function refuse_read(_, name)
  error(("the global '%s' does not exist"):format(tostring(name)), 2)
end

local function refuse_write(_, name)
  error(("the global '%s' must not be created; declare a local"):format(tostring(name)), 2)
end

---From here on an unknown global is an error.
function strict.on()
  setmetatable(_G, { __index = refuse_read, __newindex = refuse_write })
end

return strict
