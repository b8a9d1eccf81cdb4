-- SPDX-License-Identifier: Apache-2.0
-- lua/types/native.lua says what C offers, no more and no less.
local definitions = arg[0]:gsub("tests/[^/]*$", "lua/types/native.lua")

---What modules and handles are declared with: the classes that have functions, and their fields.
---Options may have a function too.
---@return table<string, table<string, true>> members "native.text", or "native.root" for a handle -> names
local function declared()
  local fields, members, class = {}, {}, nil
  for line in io.lines(definitions) do
    class = line:match "^%-%-%-@class (native%.[%w_.]+)" or class
    local name = line:match "^%-%-%-@field ([%w_]+)"
    if name then
      fields[class] = fields[class] or {}
      fields[class][name] = true
      if line:find("^%-%-%-@field [%w_]+ fun%(") then members[class] = fields[class] end
    end
  end
  return members
end

---Adds the members of the modules or metatables that C has registered under a name that begins with "native.".
local function add_offered(found, registry, members_of)
  for name, value in pairs(registry) do
    local members = type(name) == "string" and name:find("^native%.") and members_of(name, value)
    if members then
      found[name] = {}
      for member in pairs(members) do found[name][member] = not member:find("^__") or nil end
    end
  end
end

describe("lua/types/native.lua", function()
  it("declares each native module with its functions and values, and each handle with its methods", function()
    local offered = {}
    add_offered(offered, package.preload, require)
    local directory = require("native.workspace").open(".")
    directory:walk "." -- types that C makes when the first is begun
    directory:snapshot { directory = "/nowhere" }
    -- A metatable without __index only owns something in C.
    add_offered(offered, debug.getregistry(), function(_, metatable) return metatable.__index end)
    assert.same(declared(), offered)
  end)
end)
