-- SPDX-License-Identifier: Apache-2.0
local words = require "sba.util.words"

describe("the words of a command", function()
  it("are its program and its arguments, in one list", function()
    assert.same({ "a", "b", "c" }, words.command { command = "a", args = { "b", "c" } })
    assert.same({ "a" }, words.command { command = "a" })
    assert.same({ "a", "b" }, words.command { argv = { "a", "b" } })
  end)

  it("may be more than a function returns", function()
    local args <const> = {}
    for i = 1, 1 << 20 do args[i] = "x" end
    assert.equal(#args + 1, #words.command { command = "a", args = args })
  end)
end)
