-- SPDX-License-Identifier: Apache-2.0
local command_words = require "sba.util.words".command

describe("the words of a command", function()
  it("are its program and its arguments, in one list", function()
    assert.are.same({ "a", "b", "c" }, command_words { command = "a", args = { "b", "c" } })
    assert.are.same({ "a" }, command_words { command = "a" })
    assert.are.same({ "a", "b" }, command_words { argv = { "a", "b" } })
  end)

  it("may be more than a function returns", function()
    local args <const> = {}
    for i = 1, 1 << 20 do args[i] = "x" end
    assert.equal(#args + 1, #command_words { command = "a", args = args })
  end)
end)
