-- SPDX-License-Identifier: Apache-2.0
local output_lines = require "sba.util.output_lines"

describe("lines of output", function()
  it("are the last ones, as a terminal would show them", function()
    local list, more = output_lines.last("1\n2\n 50%\r100%\r\nend", 3)
    assert.are.same({ "2", "100%", "end" }, list)
    assert.is_true(more)
    assert.are.same({ "", "" }, (output_lines.last("\r\n\r", 3)))
    list, more = output_lines.last("", 3)
    assert.are.same({ {}, false }, { list, more })
  end)
end)
