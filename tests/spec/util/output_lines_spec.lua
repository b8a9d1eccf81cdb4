-- SPDX-License-Identifier: Apache-2.0
local excerpt = require "sba.util.excerpt"

describe("lines of output", function()
  it("are the last ones, as a terminal would show them", function()
    local list, more = excerpt.last_lines("1\n2\n 50%\r100%\r\nend", 3)
    assert.are.same({ "2", "100%", "end" }, list)
    assert.is_true(more)
    assert.are.same({ "", "" }, (excerpt.last_lines("\r\n\r", 3)))
    list, more = excerpt.last_lines("", 3)
    assert.are.same({ {}, false }, { list, more })
  end)
end)
