-- SPDX-License-Identifier: Apache-2.0
-- cynode-sba --lua change.lua WORKSPACE: one change of many kinds, as one transaction.
-- Prints "done" or the failure's code.
local transaction = require "sba.patch.transaction"
local workspace = require "native.workspace"

local directory = assert(workspace.open(arg[1]))

local function change()
  local all <close> = transaction.new(directory)
  local steps = {
    function() return all:write("a", "new a", 420) end,
    function() return all:write("b", "new b", 493) end,
    function() return all:write("sub/c", "new c", 420) end,
    function() return all:write("new/deep/file", "made") end,
    function() return all:symlink("link", "new/deep") end,
    function() return all:remove("directory/gone") end,
    function() return all:remove("file") end,
    function() return all:write("file/below", "a directory now") end,
    function() return all:remove("tree/x/y") end,
    function() return all:remove("tree/z") end,
    function() return all:write("tree", "a file now") end,
    function() return all:chmod("mode", 384) end,
  }
  for _, step in ipairs(steps) do
    local staged, failure = step()
    if not staged then return nil, failure end
  end
  return all:commit()
end

local committed, failure = change()
print(committed and "done" or failure.code)
if failure then io.stderr:write(failure.message, "\n") end
