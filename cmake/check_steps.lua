-- SPDX-License-Identifier: Apache-2.0
-- Build tool: cynode-sba --lua check_steps.lua ROOT...: looks at every step type that was bundled from the
-- directories, which are laid out like lua/, and says of each mistake the file and what is wrong. It is no test: step
-- types come from elsewhere too, and the builder of the image has no tests/.

package.path = arg[0]:gsub("[^/]*$", "?.lua")

local catalogue = require "sba.catalogue"
local mistake_in = require "step_mistake"

local function file_of(name)
  local path = "/sba/steps/" .. name:gsub("%.", "/") .. ".lua"
  for _, root in ipairs(arg) do
    local handle = io.open(root .. path)
    if handle then
      handle:close()
      return root .. path
    end
  end
  return path
end

local mistakes = 0
for _, name in ipairs(catalogue.names()) do
  local mistake = mistake_in(name)
  if mistake then
    io.stderr:write(("step type: %s %s\n"):format(file_of(name), mistake))
    mistakes = mistakes + 1
  end
end
os.exit(mistakes == 0 and 0 or 1)
