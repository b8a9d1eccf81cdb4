-- SPDX-License-Identifier: Apache-2.0
-- Diffs as tools and models write them: what is read, what is refused, where hunks go, and what is said when they go
-- nowhere.
local diffs = require "sba.patch.diff"
local interrupt = require "native.interrupt"
local try = require "trying_diffs"

local X <const> = "--- a/x\n+++ b/x\n"
local HUNK <const> = "@@ -1 +1 @@\n-a\n+b\n"
local NO_NEWLINE <const> = "\\ No newline at end of file\n"
local UPDATE <const>, END <const> = "*** Begin Patch\n*** Update File: x\n", "*** End Patch\n"

local here <const>, names_are <const> = try.here, try.names_are
local gives <const>, takes <const>, refuses <const> = try.gives, try.takes, try.refuses

--- A file that "*** Update File" changes.
local function updates(hunks, before, after)
  takes(UPDATE .. hunks .. END, before, after, "begin_patch", "no_line_numbers")
end

local function GIT(hash)
  return "diff --git a/x b/x\nindex " .. hash .. "..01e79c3 100644\n" .. X .. "@@ -0,0 +1,2 @@\n+1\n+2\n"
end

describe("a diff", function()
  local BASE <const> = "a\nb\nc\nd\ne\nf\ng\nh\n"

  it("finds the place of a hunk that is off, or has lines of context that are not there", function()
    gives(X .. "@@ -1,4 +1,4 @@\n a\n-b\n+B\n c\n d\n", BASE, "a\nB\nc\nd\ne\nf\ng\nh\n")
    assert.same({ 0, 0, 1, 1 }, { try.entry.offset, try.entry.fuzz, try.entry.added, try.entry.removed })
    gives(X .. "@@ -5,3 +5,3 @@\n b\n-c\n+C\n d\n", BASE, "a\nb\nC\nd\ne\nf\ng\nh\n")
    assert.equal(3, try.entry.offset)
    gives(X .. "@@ -3,3 +3,3 @@\n X\n-d\n+D\n e\n", BASE, "a\nb\nc\nD\ne\nf\ng\nh\n")
    assert.equal(1, try.entry.fuzz)
    gives(X .. "@@ -3,5 +3,5 @@\n X\n Y\n-d\n+D\n e\n f\n", "a\nb\nc\nd\ne\nf\n", "a\nb\nc\nD\ne\nf\n")
    assert.equal(2, try.entry.fuzz)
    refuses(X .. "@@ -3,7 +3,7 @@\n X\n Y\n Z\n-d\n+D\n e\n f\n g\n", BASE, "patch_mismatch")
  end)

  it("inserts at the top of a file only where its header says that the file held something", function()
    gives(GIT("d00491f"), "a\n", "1\n2\na\n")
    refuses(GIT("d00491f"), "1\n2\n", "already_applied")
    refuses(GIT("e69de29"), "a\n", "already_exists") -- of an empty file
    gives(GIT("e69de29"), "", "1\n2\n")
    refuses(X .. "@@ -0,0 +1 @@\n+1\n", "a\n", "already_exists")
  end)

  it("prefers the nearest place and, of two as near, the later", function()
    gives(X .. "@@ -3 +3 @@\n-a\n+A\n", "a\nb\nb\nb\na\n", "a\nb\nb\nb\nA\n")
    gives(X .. "@@ -2 +2 @@\n-a\n+A\n", "a\nb\nb\nb\na\n", "A\nb\nb\nb\na\n")
  end)

  it("keeps hunks in order", function()
    gives(X .. "@@ -2 +2 @@\n-a\n+A\n@@ -3 +3 @@\n-a\n+B\n", "x\na\na\n", "x\nA\nB\n")
    refuses(X .. "@@ -2 +2 @@\n-b\n+B\n@@ -1 +1 @@\n-a\n+A\n", "a\nb\n", "hunk 2 of 2")
    gives(X .. "@@ -10 +10 @@\n-e\n+E\n@@ -11 +11 @@\n-f\n+F\n", BASE, "a\nb\nc\nd\nE\nF\ng\nh\n")
    assert.equal(5, try.entry.offset)
  end)

  it("puts a hunk with less context on one side at that end of the file", function()
    -- Less context after than before.
    refuses(X .. "@@ -2,3 +2,4 @@\n b\n c\n d\n+e\n", "b\nc\nd\nb\nc\nd\nX\n", "patch_")
    gives(X .. "@@ -2,3 +2,4 @@\n b\n c\n d\n+e\n", "a\nb\nc\nd\nX\n", "a\nb\nc\nd\ne\nX\n") -- but only one place fits
    gives(X .. "@@ -2,3 +2,4 @@\n b\n c\n d\n+e\n", "a\nb\nc\nd\n", "a\nb\nc\nd\ne\n")
    refuses(X .. "@@ -1,3 +1,4 @@\n+0\n a\n b\n c\n", "X\na\nb\nc\na\nb\nc\n", "patch_")
    gives(X .. "@@ -1,3 +1,4 @@\n+0\n a\n b\n c\n", "a\nb\nc\n", "0\na\nb\nc\n")
  end)

  it("takes the marks of missing newlines exactly", function()
    gives(X .. "@@ -1 +1 @@\n-a\n" .. NO_NEWLINE .. "+b\n" .. NO_NEWLINE, "a", "b")
    refuses(X .. "@@ -1 +1 @@\n-a\n" .. NO_NEWLINE .. "+b\n" .. NO_NEWLINE, "a\n",
      "not all of it, or not where it belongs")
    gives(X .. "@@ -1 +1 @@\n-a\n" .. NO_NEWLINE .. "+a\n", "a", "a\n")
    gives(X .. "@@ -1 +1 @@\n-a\n+a\n" .. NO_NEWLINE, "a\n", "a")
    refuses(X .. "@@ -1,0 +2 @@\n+b\n", "a", "'\\ No newline at end of file' is missing")
    refuses(X .. "@@ -1 +1,2 @@\n+0\n" .. NO_NEWLINE .. " a\n", "a\n", "goes on below '\\ No newline'")
    refuses(X .. "@@ -1 +1 @@\n-a\n+0\n" .. NO_NEWLINE, "a\nb\n",
      "'\\ No newline at end of file' is missing or misplaced")
    refuses(X .. "@@ -1 +1,3 @@\n a\n+\n" .. NO_NEWLINE .. "+0\n", "a\n", "goes on below '\\ No newline'")
    refuses(X .. "@@ -1 +1 @@\r\n-a\r\n+0\r\r\n\\ No newline\r\n\\ No newline\r\n", "a\r\n",
      "goes on below '\\ No newline'")
    refuses(X .. "@@ -1 +1 @@\n-a\n" .. NO_NEWLINE .. NO_NEWLINE .. "+0\n", "a", "goes on below '\\ No newline'")
    -- An empty line has one.
    refuses(X .. "@@ -1 +1,2 @@\r\n a\r\n+\r\n\\ No newline\r\n", "a\r\n", "goes on below '\\ No newline'")
  end)

  it("never mixes line ends", function()
    gives(X .. "@@ -1,2 +1,2 @@\n a\n-b\n+B\n", "a\r\nb\r\nc\r\n", "a\r\nB\r\nc\r\n")
    assert.equal("crlf", try.entry.line_ends)
    gives("--- a/x\r\n+++ b/x\r\n@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+B\r\n", "a\nb\nc\n", "a\nB\nc\n")
    assert.equal("lf", try.entry.line_ends)
    gives(X .. "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+B\r\n", "a\r\nb\r\n", "a\r\nB\r\n")
    assert.is_nil(try.entry.line_ends)
    gives(X .. "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+b\n", "a\r\nb\r\n", "a\r\nb\n") -- the change itself
    gives(X .. "@@ -2,0 +3 @@\n+c\n", "a\r\nb\r\n", "a\r\nb\r\nc\r\n")
    takes(X .. "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a\r\nb\r\nc\n", "a\r\nB\r\nc\n", "line_ends")
    gives("--- a/x\r\n+++ b/x\r\n@@ -1 +1 @@\r\n-a\r\n\\ No newline at end of file\r\n+b\r\n", "a", "b\r\n")
    -- A last line may be a carriage return.
    gives(X .. "@@ -1,2 +1,2 @@\n a\n-\r\n" .. NO_NEWLINE .. "+b\r\n" .. NO_NEWLINE, "a\n\r", "a\nb\r")
    gives("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+\r\n" .. NO_NEWLINE, "", "\r")
  end)

  it("recounts wrong counts", function()
    gives(X .. "@@ -1,9 +1,9 @@\n a\n-b\n+B\n c\n", BASE, "a\nB\nc\nd\ne\nf\ng\nh\n")
    assert.equal(1, try.entry.recounted)
    gives(X .. "@@ -1 +1 @@\n a\n-b\n+B\n c\n", BASE, "a\nB\nc\nd\ne\nf\ng\nh\n")
    assert.equal(1, try.entry.recounted)
    gives("--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n+c\n", "", "a\nb\nc\n") -- git and patch cut it short
    gives(X .. "@@ -1,2 +1,2 @@\n-a\n+A\n\n-c\n+C\n", "a\n\nc\n", "A\n\nC\n")
    gives(X .. "@@ -1,5 +1,5 @@\n a\n-b\n+B\n c\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+b\n", BASE,
      "a\nB\nc\nd\ne\nf\ng\nh\n")
    gives(X .. "@@ -1,4 +1,4 @@\n a\n-b\n+B\n\n-- \n2.39.2\n\n", BASE, "a\nB\nc\nd\ne\nf\ng\nh\n")
  end)

  it("loses no line", function()
    refuses(X .. "@@ -1,4 +1,4 @@\n a\n-b\n+B\nc\n d\n", BASE, "of the diff: neither a line of the hunk")
    refuses(X .. "@@ -1,2 +1,2 @@\n a\n-b\n+B\nc\n+d\n", BASE, "line 8 of the diff: this looks like a part of a hunk")
    refuses(X .. "@@ -1,2 +1,2 @@\n a\n-b\n+B\nc\n@@ -5 +5 @@\n-e\n+E\n", BASE, "line 8 of the diff")
    refuses(X .. "@@ -1 +1,9 @@\n-a\n+A\n\nwords\n\n-b\n", BASE, "of the diff: this looks like")
    refuses(X .. "@@ -1 +1 @@\n a\n", BASE, "changes nothing")
    gives(X .. "@@ -1 +1 @@\n-a\n+A\n-- \n2.39.2\n", BASE, "A\nb\nc\nd\ne\nf\ng\nh\n")
    gives("Binary files are left out.\n\n" .. X .. "@@ -1 +1 @@\n-a\n+A\n", BASE, "A\nb\nc\nd\ne\nf\ng\nh\n")
    gives(X .. "@@ -1 +1 @@\n-a\n+A\n```\n- that was it\n", BASE, "A\nb\nc\nd\ne\nf\ng\nh\n")
  end)

  it("takes context without its blank", function()
    gives(X .. "@@ -1,3 +1,3 @@\n a\n\n-c\n+C\n", "a\n\nc\n", "a\n\nC\n")
    gives(X .. "@@ -1 +1 @@\n-a\n+A", "a\n", "A\n") -- the diff's own last newline is missing
  end)

  it("refuses numbers of lines that no file has, but for wrong counts", function()
    refuses(X .. "@@ -98765432109876543210 +98765432109876543210 @@\n-a\n+b\n", "a\n", "a hunk begins with")
    refuses(X .. "@@ -1,4294967297 +1 @@\n-a\n+b\n", "a\n", "a hunk begins with")
    refuses(X .. "@@ -18446744073709551617 +1 @@\n-a\n+b\n", "a\n", "a hunk begins with") -- 2^64 and 1
    gives(X .. "@@ -999999999 +999999999 @@\n-a\n+b\n", "a\n", "b\n")
    gives(X .. "@@ -1,999999999 +1,999999999 @@\n-a\n+b\n", "a\n", "b\n")
    refuses(X .. "@@ -999999999,0 +1 @@\n+b\n", "a\n",
      "it only adds lines, and nothing that the file has says where they belong")
    refuses(X .. "@@ -1,1 +1,-1 @@\n-a\n+b\n", "a\n", "a hunk begins with")
    refuses(X .. "@@ -1 @@\n-a\n+b\n", "a\n", "a hunk begins with")
  end)

  it("refuses what is no unified diff", function()
    refuses("", "", "no change found")
    refuses("Dear reader,\n- this is\n+ no diff\n", "", "no change found")
    refuses("1,2d\na\n!touch pwned\n.\nw\n", "", "no change found")
    refuses("*** a/x\n--- b/x\n***************\n*** 1 ****\n! a\n--- 1 ----\n! b\n", "", "no change found")
    refuses("diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\nliteral 0\n", "", "binary_patch: line 3")
    refuses("diff --git a/x b/x\nindex 1..2 100644\nBinary files a/x and b/x differ\n", "", "binary_patch")
    refuses("Binary files old/x and new/x differ\n", "", "binary_patch: line 1")
    refuses(X .. "@@ -1 +1 @@\n-a\n+A\nindex 1..2 100644\nGIT binary patch\nliteral 0\n", BASE, "binary_patch: line 7")
    refuses("diff --cc x\n@@@ -1,1 -1,1 +1,1 @@@\n- a\n", "", "no change found")
    refuses("@@ -1 +1 @@\n-a\n+b\n", "a\n", "which file is it for")
    refuses("--- a/x\n+++ b/x\n", "", "a hunk must begin")
    refuses("--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+a\n", "", "which file it is about")
    refuses("diff --git a/x b/x\nnew file mode 160000\n", "", "submodule")
    refuses("diff --git a/x b/x\nnew file mode 104755\n", "", "a mode must be")
    refuses("diff --git a/x b/x\nrename from x\n", "", "only one of the two names")
    refuses("diff --git /dev/null b/x\nrename from x\n", "", "only one of the two names")
    refuses("diff --git a/x b/y\nrename from x\nrename to y\nnew file mode 100644\n", "", "exclude each other")
    refuses("diff --git a/x b/x\n--- a/x\n@@ -1 +1 @@\n-a\n+b\n", "a\n", "only one of its lines")
    refuses("diff --git a/x b/x\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "a\n", "is not the one")
    refuses("--- /dev/null\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "", "the new file above takes lines")
    refuses("--- a/x\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "", "the deleted file above still has lines")
  end)

  it("says what differs", function()
    refuses(X .. "@@ -1,3 +1,3 @@\n a\n-X\n+Y\n c\n",
      BASE, 'hunk 1 of 1 "@@ -1,3 +1,3 @@" does not fit: line 2 is "b" where the diff has "X"')
    refuses(X .. "@@ -1,4 +1,4 @@\n e\n f\n-X\n+Y\n h\n", BASE, 'line 7 is "g" where the diff has "X"')
    refuses(X .. "@@ -9,2 +9,2 @@\n-X\n+Y\n Z\n", BASE, 'the file ends before line 9, where the diff has "X"')
    refuses(X .. "@@ -1,3 +1,3 @@\n a\n-X\n+b\n c\n",
      BASE, "already_applied: x: hunk 1 of 1 \"@@ -1,3 +1,3 @@\": the change is already there, at line 1")
    refuses("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n", "a\n", "already_applied")
    refuses("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n", "b\n", "already_exists")
  end)

  it("shows a line without what a terminal obeys", function()
    refuses(X .. "@@ -1 +1 @@\n-a\n+b\n", "\27[2J\tx\n", 'line 1 is "\\x1b[2J\\tx" where')
  end)

  it("reads names", function()
    names_are("--- a/x y\t2005-04-12 02:14:06.000 -0700\n+++ b/x y\t2005-04-12\n" .. HUNK, "a/x y", "b/x y")
    names_are("--- a/x 2005-04-12 02:14:06 -07:00\n+++ b/x\n" .. HUNK, "a/x", "b/x")
    names_are("--- \"a/\\303\\251\\n\\\"\"\n+++ \"b/\\303\\251\\n\\\"\"\n" .. HUNK, "a/\xC3\xA9\n\"", "b/\xC3\xA9\n\"")
    names_are("diff --git a/x y b/x y\nold mode 100644\nnew mode 100755\n", "a/x y", "b/x y")
    names_are("diff --git x y x y\nold mode 100644\nnew mode 100755\n", "x y", "x y")
    names_are("diff --git \"a/x\\t\" \"b/x\\t\"\nold mode 100644\nnew mode 100755\n", "a/x\t", "b/x\t")
    names_are("diff --git a/x b/x\nnew file mode 100644\n", "-", "b/x")
    names_are("diff --git a/x b/x\ndeleted file mode 100644\n", "a/x", "-")
    names_are("diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", "x", "y")
    names_are("diff --git a/x b/y\r\ncopy from x\r\ncopy to y\r\n", "x", "y")
    refuses("--- \"a/x\\0\"\n+++ b/x\n" .. HUNK, "", "no file name can be read here")
    refuses("--- \"a/x\n+++ b/x\n" .. HUNK, "", "no file name can be read here")
    refuses("--- \t\n+++ b/x\n" .. HUNK, "", "no file name can be read here")
    refuses("--- \"\"\n+++ b/x\n" .. HUNK, "", "no file name can be read here")
    refuses("--- a/x\0y\n+++ b/x\n" .. HUNK, "", "no file name can be read here")
  end)

  it("takes git's lines without the first of them", function()
    gives("words\nold mode 100644\nnew mode 100755\n" .. X .. HUNK, "a\n", "b\n")
    assert.equal(tonumber("755", 8), here.root:read("x", {}).mode)
    takes("new file mode 100755\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+b\n", "", "b\n", "no_git_line")
    gives("similarity index 90%\nrename from x\nrename to y\n--- a/x\n+++ b/y\n" .. HUNK, "a\n", "b\n")
    assert.same({ "y", "renamed" }, { try.entry.path, try.entry.action })
    gives("rename from x\nrename to y\n", "a\n", "a\n")
  end)

  it("knows the epoch", function()
    local function action(old)
      return assert(diffs.parse("--- a/x\t" .. old
        .. "\n+++ b/x\t2020-01-01 00:00:00\n@@ -0,0 +1 @@\n+a\n")).files[1].action
    end
    assert.equal("created", action "1970-01-01 00:00:00.000000000 +0000")
    assert.equal("created", action "1970-01-01 09:00:00.000000000 +0900")
    assert.equal("created", action "1969-12-31 16:00:00 -08:00")
    assert.equal("modified", action "1970-01-01 00:00:01 +0000")
    assert.equal("modified", action "1970-01-02 00:00:00 +0000")
  end)

  it("takes bytes that are no text", function()
    gives(X .. "@@ -1,2 +1,2 @@\n a\0b\n-\xFF\n+\0\n", "a\0b\n\xFF\n", "a\0b\n\0\n")
  end)

  it("finds hunks that are far, over lines that are mostly the same, without a search from line to line", function()
    for _, form in ipairs { { X, "@@ -%d,3 +1,3 @@\n }\n-%d\n+%d!\n }\n", "" },
      { UPDATE, "@@ %.0s\n }\n-%d\n+%d!\n }\n", END } } do
      local diff, bytes = { form[1] }, {}
      for i = 1, 5000 do
        diff[#diff + 1] = form[2]:format(i % 2 > 0 and 1 or 20000, i, i)
        bytes[#bytes + 1] = ("}\n%d\n}\n}\n"):format(i)
      end
      diff[#diff + 1] = form[3]
      local parsed = assert(diffs.parse(table.concat(diff)))
      interrupt.set_deadline(0) -- which is asked for once 10,000 lines are compared
      local _, report = parsed.hunks:apply(parsed.files[1].first, parsed.files[1].hunks, table.concat(bytes))
      interrupt.set_deadline(1e9)
      assert.equal(5000, report.added)
    end
  end)

  it("refuses more than 100,000 hunks, and a name of 17,000 bytes", function()
    refuses(X .. HUNK:rep(100001), "", "more than 100000 hunks")
    refuses("--- a/x\n+++ b/" .. ("x"):rep(17000), "", "no file name can be read here")
  end)
end)

describe("a diff of a model", function()
  local BASE <const> = "a\nb\nc\nd\ne\n"
  local PYTHON <const> = "def f(x):\n    if x:\n        return 1\n    return 2\n\ndef g():\n    return 3\n"

  it("says that nothing was tolerated of an exact diff", function()
    takes(X .. "@@ -2 +2 @@\n-b\n+B\n", BASE, "a\nB\nc\nd\ne\n")
    takes("From 123 Mon\nSubject: words\n\n" .. X .. "@@ -2 +2 @@\n-b\n+B\n-- \n2.39.2\n", BASE, "a\nB\nc\nd\ne\n")
    takes("diff -u x x\nIndex: x\n====\n" .. X .. "@@ -2 +2 @@\n-b\n+B\n", BASE, "a\nB\nc\nd\ne\n")
    takes(X .. "@@ -3,1 +3,1 @@\n-b\n+B\n", "b \na\nb\n", "b \na\nB\n") -- not the nearer by other rules
  end)

  it("takes fences and words around it, where no line of a hunk can be lost", function()
    takes("Sure!\n\n```diff\n" .. X .. "@@ -2 +2 @@\n-b\n+B\n```\n\n- It is done.\n", BASE, "a\nB\nc\nd\ne\n",
      "code_fence", "prose")
    takes("```\n" .. X .. "@@ -2,9 +2 @@\n a\n-b\n+B\n\n```\n\n- It is done.\n", BASE, "a\nB\nc\nd\ne\n",
      "code_fence", "prose")
    takes("```diff\n" .. X .. "@@ -2 +2 @@\n-b\n+B\n", BASE, "a\nB\nc\nd\ne\n", "code_fence") -- whole though it is cut
    refuses("```diff\n" .. X .. "@@ -2,3 +2,3 @@\n-b\n+B\n", BASE, "has no other end")
    refuses(X .. "@@ -2,3 +2,3 @@\n-b\n+B\n```\n", BASE, "has no other end") -- or a line of the file
    refuses("```diff\n" .. X .. "@@\n-b\n+B\n", BASE, "has no other end")
  end)

  it("keeps fences of the file", function()
    local text = "# T\n```c\nx\n```\ny\n"
    takes("```diff\n" .. X .. "@@ -1,5 +1,5 @@\n # T\n ```c\n-x\n+X\n ```\n y\n```\n", text, "# T\n```c\nX\n```\ny\n",
      "code_fence")
    updates("@@\n ```c\n-x\n+X\n ```\n", text, "# T\n```c\nX\n```\ny\n")
    refuses("```diff\n" .. X .. "@@ -3,3 +3,3 @@\n-x\n+X\n```\n-y\n+Y\n```\n", text, "looks like the end of a hunk")
    refuses("```diff\n" .. X .. "@@\n-x\n+X\n```\n\n-y\n+Y\n```\n", text, "has no other end")
    refuses(UPDATE .. "@@\n-x\n+X\n```\n-y\n+Y\n" .. END, text, "of the diff: neither a line of the hunk")
  end)

  it("takes indentation that is shifted as a whole, and shifts what is new", function()
    local lines <const> = " if x:\n-    return 1\n+    y = 1\n+    return y\n return 2\n"
    local wanted <const> = PYTHON:gsub("return 1", "y = 1\n        return y")
    takes(X .. "@@ -2,3 +2,4 @@\n" .. lines, PYTHON, wanted, "indentation")
    assert.same({ 1, 2, 1 }, { try.entry.hunks, try.entry.added, try.entry.removed })
    takes(UPDATE .. "@@\n" .. lines .. END, PYTHON, wanted, "indentation", "begin_patch", "no_line_numbers")
    assert.same({ 1, 2, 1 }, { try.entry.hunks, try.entry.added, try.entry.removed })
  end)

  it("guesses no place, and takes whole lines only", function()
    for change, before in pairs {
      [" a\n-b\n+c\n"] = "  a\n  b\n    a\n    b\n", ["     a\n-   b\n+   c\n"] = "  a\n  b\n    a\n    b\n",
      ["-return 1\n+return 2\n"] = "xreturn 1\n",
    } do
      refuses(X .. "@@ -1 +1 @@\n" .. change, before, 'patch_mismatch: x: hunk 1 of 1 "@@ -1 +1 @@" does not fit')
    end
  end)

  it("finds hunks without numbers", function()
    for _, header in ipairs { "@@", "@@ @@", "@@ ... @@", "@@ ... @@ b", "@@ -,+ @@", "@@ b", "@@ b @@" } do
      takes(X .. header .. "\n c\n-d\n+D\n", BASE, "a\nb\nc\nD\ne\n", "no_line_numbers")
    end
    takes(X .. "@@\n-b\n+B\n\n@@\n-d\n+D\n", BASE, "a\nB\nc\nD\ne\n", "no_line_numbers", "blank_lines")
    takes(X .. "@@ -2 +2 @@\n-b\n+B\n@@\n-d\n+D\n", BASE, "a\nB\nc\nD\ne\n", "no_line_numbers")
    takes("--- /dev/null\n+++ b/x\n@@\n+a\n+b\n", "", "a\nb\n", "no_line_numbers")
    refuses(X .. "@@\n-b\n+B\n", "b\na\nb\n",
      "patch_ambiguous: x: hunk 1 of 1 \"@@\" fits as well at line 1 as at line 3")
    refuses(X .. "@@\n-d\n+D\n@@\n-b\n+B\n", BASE, "not where it belongs: below the hunk before it")
    refuses(X .. "@@\n+new\n", BASE, "only adds lines")
    refuses(X .. "@@\n a\n+b\n", BASE, "already_applied")
    refuses(X .. "@@\n a\n-X\n+b\n c\n", BASE, "already_applied")
    refuses(X .. "@@\n d\n-X\n+Y\n", BASE, 'line 5 is "e" where the diff has "X"')
    refuses(X .. "@@\n-X\n+Y\n", "", "patch_mismatch")
    refuses(X .. "@@\n-a\n+b\nwords\n", BASE, "neither a line of the hunk")
    refuses(X .. "@@\n", BASE, "changes nothing")
    refuses(X .. "@@x\n-a\n+b\n", BASE, "a hunk begins with")
  end)

  it("overlooks trailing blanks", function()
    takes(X .. "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a  \nb\t\nc \n", "a  \nB\nc \n", "trailing_blanks")
    takes(X .. "@@ -1,3 +1,3 @@\n-a\n+A\n\n-b\n+B\n", "a\n   \nb\n", "A\n   \nB\n", "trailing_blanks", "blank_lines")
    takes(X .. "@@\n a\n-b\n+B\n", "a \r\nb\r\n", "a \r\nB\r\n", "trailing_blanks", "no_line_numbers")
    takes(X .. "@@\n a\n-b\n+B\n", "a \nb\na\nb\n", "a \nb\na\nB\n", "no_line_numbers") -- one fits exactly
    refuses(X .. "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a \nb \nc\na \nb \nc\n", "as well at line 1 as at line 4")
    refuses(X .. "@@ -1 +1 @@\n-a  \n+a\n", "a\n", "already_applied")
    takes(X .. "@@ -1 +1 @@\n-a  \n+b\n", "a\n", "b\n", "trailing_blanks")
    takes(X .. "@@ -1 +1 @@\n-a\n+b\n", "a \r\nx\n", "b\r\nx\n", "trailing_blanks", "line_ends")
  end)

  it("keeps a missing newline", function()
    takes(X .. "@@ -1,2 +1,2 @@\n a\n-b\n+B\n", "a\nb", "a\nB", "final_newline")
    takes(X .. "@@\n b\n+c\n", "a\nb", "a\nb\nc", "no_line_numbers", "final_newline")
    takes(X .. "@@\n-a\n+A\n b\n", "a\nb", "A\nb", "no_line_numbers", "final_newline")
    takes(X .. "@@\n a\n-b\n", "a\nb", "a\n", "no_line_numbers", "final_newline")
    takes(X .. "@@\n b\n+c\n", "a\r\nb", "a\r\nb\r\nc", "no_line_numbers", "final_newline")
    -- An empty line is nothing without its newline.
    takes(X .. "@@\n-b\n+c\n+\n", "a\nb", "a\nc\n\n", "no_line_numbers", "final_newline")
    refuses(X .. "@@\n-b\n\\ No newline at end of file\n+c\n", "a\nb\n", "patch_mismatch")
  end)

  it("reads *** Begin Patch", function()
    updates("@@\n a\n-b\n+B\n@@\n d\n-e\n+E\n", BASE, "a\nB\nc\nd\nE\n")
    -- The first hunk needs no @@.
    updates("-b\n+B\n", BASE, "a\nB\nc\nd\ne\n")
    updates("@@ -1,3 +1,3 @@\n-b\n+B\n", BASE, "a\nB\nc\nd\ne\n")
    updates("@@\n-b\n+B\n\n*** End of File\n", "b\na\nb\n", "b\na\nB\n")
    updates("@@\n+f\n*** End of File\n", BASE, BASE .. "f\n")
    updates("@@\n--- a\n+++ b\n", "-- a\n", "++ b\n")
    takes("*** Begin Patch\r\n*** Update File: x\r\n@@\r\n-b\r\n+B\r\n*** End Patch\r\n", BASE, "a\nB\nc\nd\ne\n",
      "begin_patch", "no_line_numbers")
    takes("*** Begin Patch\n\n*** Add File: x\n+a\n+\n+```\n" .. END, "", "a\n\n```\n", "begin_patch")
    takes("```\n*** Begin Patch\n*** Add File: x\n+a\n*** End Patch\n```\n", "", "a\n", "begin_patch", "code_fence")
    takes("*** Begin Patch\n" .. X .. "@@ -1,9 +1 @@\n-a\n+A\n" .. END, BASE, "A\nb\nc\nd\ne\n", "prose")
    takes(" *** Begin Patch\n*** Update File: x\n@@\n-b\n+B\n *** End Patch \n", BASE, "a\nB\nc\nd\ne\n",
      "begin_patch", "no_line_numbers")
    takes("  *** Begin Patch\n  *** Add File: x\n+a\n  *** End Patch\n```\n", "", "a\n", "begin_patch", "code_fence")
    updates("@@\n *** End Patch\n-b\n+B\n", "*** End Patch\nb\n", "*** End Patch\nB\n")
  end)

  it("refuses a *** Begin Patch that was cut off or holds what is none of it", function()
    refuses(UPDATE .. "@@\n-b\n+B\n*** End of File\n" .. END, BASE, "patch_mismatch")
    refuses(UPDATE .. "@@\n-b\n+B\n", BASE, "was cut off")
    refuses("*** Begin Patch\n*** Add File: x\n+a", "", "was cut off")
    refuses("*** Begin Patch\n*** Add File: x\n+a\nb\n+c\n" .. END, "", "line 4 of the diff: here '*** Add File: '")
    refuses("*** Begin Patch\n*** Add File:\n+a\n" .. END, "", "no file name can be read")
    refuses(UPDATE .. END, BASE, "no change follows")
    refuses(UPDATE .. "@@\n a\n" .. END, BASE, "changes nothing")
    refuses(UPDATE .. "@@\n-b\n+B\nc\n" .. END, BASE, "of the diff: neither a line")
    refuses(UPDATE .. "*** Frobnicate: x\n" .. END, BASE, "no change follows")
    refuses("*** Begin Patch\n" .. END, "", "no change found")
    refuses("*** Begin Patch\n*** Add File: x\n+a\n" .. END, "b\n", "already_exists")
    refuses("*** Begin Patch\n*** Add File: " .. ("n"):rep(17000) .. "\n+a\n" .. END, "",
      "no file name can be read here")
  end)
end)
