-- SPDX-License-Identifier: Apache-2.0
-- Where a hunk stands in a file that repeats itself: line by line, these searches take minutes.
local edit = require "native.edit"
local interrupt = require "native.interrupt"

describe("a hunk whose lines are nearly everywhere in the file", function()
  local half <const>, pairs_before <const> = 20000, 80000
  local context <const> = (" alpha\n beta\n"):rep(half // 2)
  local diff <const> = ("@@ -1,%d +1,%d @@\n"):format(2 * half + 1, 2 * half + 1) .. context .. "-alpha\n+new\n"
    .. context
  local before <const>, after <const> = ("alpha\nbeta\n"):rep(pairs_before), ("alpha\nbeta\n"):rep(20000)

  local function applied(bytes)
    local hunks = edit.hunks(diff)
    assert(hunks:read(1, 1))
    return hunks:apply(1, 1, bytes)
  end

  after_each(function() interrupt.set_deadline(1e9) end)

  it("is found in the file's own time", function()
    interrupt.set_deadline(60)
    assert.equal(before .. "new\n" .. after, (applied(before .. "alpha\n" .. after)))
    local trailing = before:gsub("\n", " \n")
    assert.equal(trailing .. "new\n" .. after, (applied(trailing .. "alpha\n" .. after)))
    assert.equal("patch_mismatch", select(2, applied(before .. after)).code)
    assert.equal("patch_mismatch", select(2, applied((before .. after):gsub("alpha", "\talpha"))).code)
  end)

  it("is looked for no longer than the job may run", function()
    interrupt.set_deadline(0)
    assert.equal("timeout", select(2, applied(before .. "alpha\n" .. after)).code)
  end)

  it("is looked for no longer below an anchor that stands on every line, each indented more", function()
    local lines = {}
    for i = 1, 1000 do lines[i] = (" "):rep(i) .. "x" end
    local hunks = edit.hunks "@@ x\n-foo\n+bar\n"
    assert(hunks:read(1, 1, #"@@ x\n" + 1, #"@@ x\n-foo\n+bar\n" + 1, true))
    interrupt.set_deadline(0)
    assert.equal("timeout", select(2, hunks:apply(1, 1, table.concat(lines, "\n"))).code)
  end)

  it("is in no place of its own where the search below its anchor gives up behind the first", function()
    local block, lines = {}, {}
    for i = 1, 60 do block[i], lines[i] = "    a\n", " a\n" end
    local head, change <const> = "@@ def f:\n", table.concat(lines) .. "-a\n+b\n"
    for _, count in ipairs { 10, 100, 2000 } do
      local hunks = edit.hunks(head .. change)
      assert(hunks:read(1, 1, #head + 1, #head + #change + 1, true))
      local twice = table.concat(block) .. "    a\n"
      local bytes = "def f:\n" .. twice .. ("  a\n"):rep(count) .. twice
      assert.equal("patch_ambiguous", (select(2, hunks:apply(1, 1, bytes)) or {}).code)
    end
  end)
end)
