-- SPDX-License-Identifier: Apache-2.0
-- What a run_command runs, as one list.

---The program of a run_command and its arguments, of which there may be millions: too many for table.unpack.
---@param arguments { argv?: string[], command?: string, args?: string[] }
---@return string[]
return function(arguments)
  local args = arguments.args or {}
  return arguments.argv or table.move(args, 1, #args, 2, { arguments.command })
end
