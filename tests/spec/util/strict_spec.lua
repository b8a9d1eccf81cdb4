-- SPDX-License-Identifier: Apache-2.0
local strict = require "sba.util.strict"

describe("strict globals", function()
  it("refuse unknown names", function()
    local before = getmetatable(_G)
    strict.on()
    local read, read_message = pcall(load "return no_such_global")
    local written, written_message = pcall(load "no_such_global = 1")
    local known = pcall(load "return print")
    setmetatable(_G, before)
    assert.are.same({ false, false, true }, { read, written, known })
    assert.is_truthy(read_message:find("the global 'no_such_global' does not exist", 1, true))
    assert.is_truthy(written_message:find("'no_such_global' must not be created", 1, true))
  end)
end)
