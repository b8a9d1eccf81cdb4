-- SPDX-License-Identifier: Apache-2.0
-- lua/types/native.lua says what C offers, no more and no less.

local types = arg[0]:match("^(.*)tests/") .. "lua/types/native.lua"

---What the definitions declare.
---@return table<string, table<string, true>> modules "native.text" -> names of functions and values
---@return table<string, table<string, true>> handles "native.root" -> names of methods
local function declared()
  local modules, handles, class_of = {}, {}, {}
  local class, fields
  for line in io.lines(types) do
    local name = line:match("^%-%-%-@class (%S+)")
    if name then class, fields = name, {} end
    local field = line:match("^%-%-%-@field ([%w_]+)")
    if field then fields[field] = true end
    local variable = line:match("^local ([%w_]+) = {}")
    if variable then class_of[variable] = { name = class, members = fields } end
    local owner, separator, member = line:match("^function ([%w_]+)([.:])([%w_]+)")
    if owner then
      local kind, about = separator == "." and modules or handles, class_of[owner]
      kind[about.name] = about.members
      about.members[member] = true
    end
  end
  return modules, handles
end

local function names_of(members)
  local names = {}
  for name in pairs(members) do
    if not name:find("^__") then names[name] = true end
  end
  return names
end

---Modules or metatables that C has registered under a name that begins with "native.".
local function offered(registry)
  local found = {}
  for name, value in pairs(registry) do
    if type(name) == "string" and name:find("^native%.") then found[name] = value end
  end
  return found
end

describe("lua/types/native.lua", function()
  local modules, handles = declared()

  it("declares each native module with its functions and values", function()
    local actual = {}
    for name in pairs(offered(package.preload)) do actual[name] = names_of(require(name)) end
    assert.same(modules, actual)
  end)

  it("declares each handle with its methods", function()
    for name in pairs(offered(package.preload)) do require(name) end
    local directory = require("native.workspace").open(".")
    directory:transaction() -- types that C makes when the first is begun
    directory:snapshot { directory = "/nowhere" }
    local actual = {}
    for name, metatable in pairs(offered(debug.getregistry())) do
      if metatable.__index then actual[name] = names_of(metatable.__index) end -- else it only owns something in C
    end
    assert.same(handles, actual)
  end)
end)
