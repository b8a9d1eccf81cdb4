-- SPDX-License-Identifier: Apache-2.0
-- The program: arguments in, exit status out.

local bundle = require "native.bundle"

---@param argv string[] argv[0] is the program's name
---@return integer status
return function(argv)
  if argv[1] == "--lua" then
    local script = assert(argv[2], "--lua wants a file")
    arg = { [0] = script, table.unpack(argv, 3) }
    local chunk
    if script == "-e" then chunk = assert(load(argv[3], "=(command line)")) else chunk = assert(loadfile(script)) end
    chunk(table.unpack(arg))
    return 0
  end
  print("cynode-sba " .. bundle.version .. " (" .. bundle.libraries .. ")")
  return 0
end
