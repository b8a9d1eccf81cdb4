-- SPDX-License-Identifier: Apache-2.0
-- --lua with a script: a file, -e CODE, or stdin.

local exit = require "sba.util.exit"
local interrupt = require "native.interrupt"

local script = {}

--- A signal or the deadline raises a table; returns its message for people.
local function traced(problem)
  if type(problem) == "table" and problem.message then return problem end
  return debug.traceback(tostring(problem), 2)
end

--- The chunk, or why there is none; and which argument is the script's first.
local function read(arguments)
  local name = arguments[1]
  if name == "-e" then
    if not arguments[2] then return nil, "-e requires code: --lua -e CODE", 3 end
    local chunk, message = load(arguments[2], "=(command line)", "t")
    return chunk, message, 3
  end
  if name and name ~= "-" and name:sub(1, 1) == "-" then
    return nil, ("--lua does not know %s; it takes FILE, -e CODE, or - for stdin"):format(name), 2
  end
  local chunk, message = loadfile(name ~= "-" and name or nil, "t")
  return chunk, message, 2
end

---Runs a script to its end.
---@param arguments string[] as they follow --lua
---@param complain fun(message: string)
---@return integer status
function script.run(arguments, complain)
  local chunk, message, first = read(arguments)
  if not chunk then
    complain(message)
    return exit.signalled() or exit.FAILED
  end
  _G.arg = { [0] = arguments[1] or "-", table.unpack(arguments, first) }
  local ok, problem = xpcall(chunk, traced, table.unpack(arguments, first))
  if ok then return exit.OK end
  complain(type(problem) == "table" and problem.message or problem)
  return type(problem) == "table" and interrupt.signal() and exit.signalled() or exit.FAILED
end

return script
