-- SPDX-License-Identifier: Apache-2.0
local entries = require "sba.result.entry"

describe("entries.skipped", function()
  it("encodes as encode does", function()
    local at = "2026-01-31T09:05:00.123Z"
    local skipped = entries.skipped(at)
    for index, step in ipairs { { "a", "write_file" }, { 'q"\\%s%d\1\u{e9}\n', "read_file" }, { "999999999", "write_file" } } do
      assert.are.equal(entries.encode {
        index = index, id = step[1], type = step[2], status = "skipped", started_at = at, duration_ms = 0,
      }, skipped(index, step[1], step[2]))
    end
  end)
end)
