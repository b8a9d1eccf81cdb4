-- SPDX-License-Identifier: Apache-2.0
-- In place of the real one in the test build `hanging`: a step that never ends and looks at nothing, in one of several
-- ways.

local ways = {}

function ways.find() return (("a"):rep(1e5) .. "b"):find((".-"):rep(40) .. "c") end

function ways.c(arguments) return assert(package.loadlib(arguments.library, "hang"))() end

return {
  name = "list_tree", summary = "Hang.",
  arguments = { type = "object", properties = { way = { type = "string" }, library = { type = "string" } } },
  run = function(arguments)
    local result = ways[arguments.way](arguments)
    return result and {} or nil
  end,
}
