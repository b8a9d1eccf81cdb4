-- SPDX-License-Identifier: Apache-2.0
-- lua/types/native.lua says what C offers, no more and no less. help()'s manual is made of it.
local manual = require "sba.repl.manual"

---What modules and handles are declared with.
---@return table<string, table<string, true>> members "native.text", or "native.root" for a handle -> names
local function declared()
  local members, values = {}, {}
  for _, entry in ipairs(manual) do
    if not entry.name:find("^native%.") then goto continue end
    if entry.of == "" then
      values[entry.name] = entry.text
    else
      members[entry.of] = members[entry.of] or {}
      members[entry.of][entry.name:match("[%w_]+$")] = true
    end
    ::continue::
  end
  for name, list in pairs(members) do
    for value in ("\n" .. values[name]):gmatch("\n  ([%w_]+)") do list[value] = true end
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
    directory:transaction() -- types that C makes when the first is begun
    directory:snapshot { directory = "/nowhere" }
    add_offered(offered, debug.getregistry(), function(_, metatable) return metatable.__index end) -- else it only owns something in C
    assert.same(declared(), offered)
  end)
end)
