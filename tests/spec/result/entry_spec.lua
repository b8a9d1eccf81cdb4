-- SPDX-License-Identifier: Apache-2.0
local entries = require "sba.result.entry"

describe("entries.parts", function()
  local function step(name, text, again)
    return {
      index = 0, id = ',"output":"x"', type = "t", status = "success", started_at = "", duration_ms = 0, output = text,
      result = { exit_code = 0, other = '"output":"x"', [name] = again or text },
    }
  end

  for what, entry in pairs {
    ["a long text that the result repeats"] = step("stdout", ('a"\u{e9}\n\0'):rep(4000)),
    ["one that it repeats as another member"] = step("content", ("x"):rep(16 * 1024)),
    ["a short text"] = step("stdout", "x"),
    ["a long text that it does not repeat"] = step("stdout", ("x"):rep(20000), ("x"):rep(19999) .. "y"),
    ["no text"] = { index = 0, id = "a", type = "t", status = "failure", started_at = "", duration_ms = 0, error = "e", error_code = "c" },
  } do
    it("is the entry's JSON: " .. what, function()
      local parts = entries.parts(entry)
      assert.are.equal(entries.encode(entry), type(parts) == "string" and parts or table.concat(parts))
    end)
  end

  it("has a text that is there twice once", function()
    local parts = entries.parts(step("stdout", ("x"):rep(50000)))
    assert.are.equal(5, #parts)
    assert.are.equal(parts[2], parts[4])
    assert.is_true(#parts[1] + #parts[3] + #parts[5] < 400)
  end)
end)

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
