-- SPDX-License-Identifier: Apache-2.0
local humanize = require "sba.util.humanize"

describe("the words of a command", function()
  it("are its program and its arguments, in one list", function()
    assert.same({ "a", "b", "c" }, humanize.command { command = "a", args = { "b", "c" } })
    assert.same({ "a" }, humanize.command { command = "a" })
    assert.same({ "a", "b" }, humanize.command { argv = { "a", "b" } })
  end)

  it("may be more than a function returns", function()
    local args <const> = {}
    for i = 1, 1 << 20 do args[i] = "x" end
    assert.equal(#args + 1, #humanize.command { command = "a", args = args })
  end)
end)

describe("the words of a step with a diff", function()
  local function of(...) return humanize.step { arguments = { diff = table.concat({ ... }, "\n") } } end
  local function file(old, new) return ("--- %s\n+++ %s\n@@ -1 +1 @@\n--- removed\n"):format(old, new) end

  it("are its files, each once, a deleted one by its old name", function()
    assert.equal("x, y", of(file("a/x\t2026-01-31", "b/x\t2026-01-31"), file("a/y", "/dev/null"), file("a/x", "b/x")))
    assert.equal("new", of(file("/dev/null", "b/new")))
    assert.equal("", of "no diff")
  end)

  it("are three of its files, and how many more there are", function()
    assert.equal("1, 2, 3 and 2 more", of(file("a/1", "b/1"), file("2", "2"), file("a/3", "b/3"), file("4", "4"),
      file("5", "5")))
  end)

  it("are those of *** Begin Patch", function()
    assert.equal("x, y z", of("*** Begin Patch", "*** Update File: x", "@@", "+++ b/other", "*** Add File: y z\r",
      "+a", "*** End Patch"))
  end)
end)
