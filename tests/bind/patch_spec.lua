-- SPDX-License-Identifier: Apache-2.0
local patch = require "native.patch"

describe("native.patch", function()
  it("describes the files of a diff", function()
    local parsed = assert(patch.parse("diff --git a/x b/y\nold mode 100644\nnew mode 100755\nrename from x\nrename to y\n" ..
      "diff -u n z\n--- /dev/null\n+++ z\n@@ -0,0 +1 @@\n+z\n"))
    assert.are.same({
      { action = "renamed", from = "x", to = "y", git = true, may_create = false, plain = false, whole = false,
        old_mode = 33188, new_mode = 33261, hunks = 0, line = 1, offset = 0 },
      { action = "created", new_path = "z", git = false, may_create = false, plain = false, whole = false, hunks = 1, line = 7,
        offset = 89 },
    }, parsed:files())
  end)

  it("applies them to bytes, as often as asked", function()
    local parsed = assert(patch.parse("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+\0\n"))
    for _ = 1, 2 do
      local bytes, report = parsed:apply(1, "a\r\nb\r\n")
      assert.are.equal("a\r\n\0\r\n", bytes)
      assert.are.same({ hunks = 1, added = 1, removed = 1, offset = 0, fuzz = 0, recounted = 0, line_ends = "crlf" }, report)
    end
  end)

  it("returns failures and raises for misuse", function()
    local parsed, failure = patch.parse("nothing")
    assert.is_nil(parsed)
    assert.are.equal("invalid_patch", failure.code)
    parsed = assert(patch.parse("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"))
    local bytes
    bytes, failure = parsed:apply(1, "c\n")
    assert.is_nil(bytes)
    assert.are.equal("patch_mismatch", failure.code)
    assert.has_error(function() parsed:apply(2, "") end)
    assert.has_error(function() parsed:apply(0, "") end)
    assert.has_error(function() parsed.apply({}, 1, "") end)
    assert.has_error(function() patch.parse() end)
  end)

  it("keeps the diff alive", function()
    local parsed = assert(patch.parse(("-"):rep(3) .. " a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+" .. ("b"):rep(1000) .. "\n"))
    collectgarbage()
    local _ = ("c"):rep(1040)
    assert.are.equal(("b"):rep(1000) .. "\n", parsed:apply(1, "a\n"))
  end)
end)
