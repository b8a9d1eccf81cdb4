-- SPDX-License-Identifier: Apache-2.0
-- A workspace for specs, in a temporary directory of its own for each test.
local busted = require "busted"
local workspace = require "native.workspace"

---@class scratch
---@field above string path of the temporary directory, which is outside the workspace
---@field path string path of the workspace: above/work
---@field root native.root the workspace
local scratch = {}
scratch.__index = scratch

---Runs a command in the workspace. It must succeed.
---@param command string for a shell
---@return string output
function scratch:shell(command)
  local pipe = assert(io.popen(("cd '%s' && %s"):format(self.path, command)))
  local output = pipe:read "a"
  assert(pipe:close(), command)
  return output
end

---Writes a file of the workspace, and makes the directories that lead to it.
---@param path string
---@param content string
function scratch:put(path, content) assert(self.root:write(path, content)) end

---@param path string of a file of the workspace
---@return string content
function scratch:content(path) return assert(self.root:read(path)).content end

---Gives each test of the block that calls this an empty workspace, and removes it after the test, whatever the modes.
---@return scratch here its fields are set before each test
return function()
  local here = setmetatable({}, scratch)
  busted.before_each(function()
    local pipe <close> = assert(io.popen "mktemp -d")
    here.above = assert(pipe:read "l")
    here.path = here.above .. "/work"
    assert(os.execute(("mkdir '%s'"):format(here.path)))
    here.root = assert(workspace.open(here.path))
  end)
  busted.after_each(function()
    assert(os.execute(("chmod -R u+rwx '%s' && rm -rf '%s'"):format(here.above, here.above)))
  end)
  return here
end
