-- SPDX-License-Identifier: Apache-2.0
-- What it does at a terminal is tested by e2e/test_repl.py.
local line_editor = require "native.line_editor"

describe("native.line_editor", function()
  it("wants a terminal", function()
    local line, failure = line_editor.read("> ", function() end)
    assert.is_nil(line)
    assert.equal("not_a_terminal", failure.code)
    assert.has_error(function() line_editor.read "> " end)
  end)
end)
