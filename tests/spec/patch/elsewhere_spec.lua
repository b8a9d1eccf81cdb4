-- SPDX-License-Identifier: Apache-2.0
-- Diffs as they come from mails, other tools and models: what stands around them, what they say beside their lines.
local dates = require "sba.patch.dates"
local try = require "trying_diffs"

local X <const> = "--- a/x\n+++ b/x\n"
local NO_NEWLINE <const> = "\\ No newline at end of file\n"
local UPDATE <const>, END <const> = "*** Begin Patch\n*** Update File: x\n", "*** End Patch\n"
local BASE <const> = "a\nb\nc\nd\ne\nf\ng\nh\n"
local attempt <const>, here <const>, names_are <const> = try.attempt, try.here, try.names_are
local gives <const>, takes <const>, refuses <const> = try.gives, try.takes, try.refuses

describe("a diff from elsewhere", function()
  it("takes no transport for content", function()
    local hunk <const> = "@@ -1 +1 @@\n-a\n+b\n"
    for _, form in ipairs(dates.forms) do
      for _, gap in ipairs { "\t", "  ", "    " } do
        takes(("--- x%s%s\n+++ x%s%s\n%s"):format(gap, form.example, gap, form.example, hunk), "a\n", "b\n")
      end
    end
    for _, date in ipairs {
      "(working copy)", "(nonexistent)", "20 Jul 2005 19:19:00 -0000", "Fri, 28 Feb 2014 15:49:11 +0100",
      "Thu Aug 01 19:44:26 CEST 2024", "(.../trunk/x)    (revision 3)", "2024-08-01T19:44:26Z",
    } do
      takes(("--- x  %s\n+++ x  %s\n%s"):format(date, date, hunk), "a\n", "b\n")
    end
    for _, epoch in ipairs {
      "Thu Jan 01 00:00:00 1970 +0000", "Wed Dec 31 16:00:00 1969", "1970-01-01 01:00:00.000000000 +0100",
    } do
      local new <const> = "--- /dev/null    %s\n+++ b/x    Fri Feb 28 15:51:02 2014 +0100\n@@ -0,0 +1 @@\n+a\n"
      gives(new:format(epoch), "", "a\n")
      local gone <const> = ("--- x\t2024-01-01 00:00:00\n+++ x\t%s\n@@ -1 +0,0 @@\n-a\n"):format(epoch)
      assert.equal("deleted", attempt(gone, "a\n")[1].action)
    end
    names_are("--- a (revision 1) b\n+++ a (revision 1) b\n" .. hunk, "a (revision 1) b", "a (revision 1) b")
    local stamp <const> = "\t2010-08-18 20:13:31.616002255 -0500\n"
    names_are("--- a\tb" .. stamp .. "+++ a\tb" .. stamp .. hunk, "a\tb", "a\tb")
    names_are("diff --git a/x (working copy) b/x (working copy)\n"
      .. "--- a/x (working copy)\t\n+++ b/x (working copy)\t\n" .. hunk,
      "a/x (working copy)", "b/x (working copy)")
  end)

  it("passes over a file of which svn says only properties", function()
    local line <const> = ("="):rep(67)
    local function of(name, rest)
      local form <const> = "Index: %s\n%s\n--- %s\t(revision 1)\n+++ %s\t(working copy)\n%s"
      return form:format(name, line, name, name, rest)
    end
    local properties <const> = "\nProperty changes on: run.sh\n___\nAdded: svn:executable\n## -0,0 +1 ##\n+*\n"
      .. "\\ No newline at end of property\n"
    local change <const> = "@@ -1 +1 @@\n-a\n+b\n"
    takes(of("x", change) .. of("run.sh", properties), "a\n", "b\n", "properties")
    takes(of("run.sh", properties) .. of("x", change), "a\n", "b\n", "properties")
    takes(of("x", change .. properties), "a\n", "b\n", "properties")
    refuses(of("run.sh", properties), "a\n", "no change found")
    refuses(X .. "\nProperty changes on: x\n", "a\n", "a hunk must begin")
  end)

  it("knows the modes of svn, which leave out a zero", function()
    local script <const> = "Index: x\n" .. ("="):rep(67) .. "\ndiff --git a/x b/x\nnew file mode 10755\n"
      .. "--- a/x\t(nonexistent)\n+++ b/x\t(working copy)\n@@ -0,0 +1 @@\n+a\n"
    gives(script, "", "a\n")
    assert.equal(tonumber("755", 8), here.root:read("x", {}).mode)
    local gone <const> = "diff --git a/x b/x\ndeleted file mode 10644\n"
      .. "--- a/x\t(revision 3)\n+++ b/x\t(nonexistent)\n@@ -1 +0,0 @@\n-a\n"
    assert.equal("deleted", attempt(gone, "a\n")[1].action)
    for _, mode in ipairs { "1064", "20644", "010644", "10844" } do
      refuses("diff --git a/x b/x\nnew file mode " .. mode .. "\n", "", "a mode must be")
    end
  end)

  it("makes a new file with the line ends of its lines, not of the transport", function()
    local script <const> = "diff --git a/x b/x\nnew file mode 100755\n"
      .. "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+#!/bin/sh\n+echo\n"
    gives(script:gsub("\n", "\r\n"), "", "#!/bin/sh\necho\n")
    assert.equal("lf", try.entry.line_ends)
    gives("*** Begin Patch\r\n*** Add File: x\r\n+a\r\n+b\r\n*** End Patch\r\n", "", "a\nb\n")
    gives("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\r\n", "", "a\r\n") -- the file's
    assert.is_nil(try.entry.line_ends)
  end)

  it("believes the counts where text follows, below a blank line", function()
    local CHANGE <const>, DONE <const> = X .. "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n\n", "a\nB\nc\nd\ne\nf\ng\nh\n"
    for _, text in ipairs {
      "--=-Qx31lODH7--\n", "--------------0.1--\n\n", "- one thing\n- another\n", "+1 555 0100\n",
      "-- \nJohn\n+1 555\n", "---\n words\n", " Thanks,\n John\n", "Thanks.\n\n- John\n+ Jane\n", "\n-b is not in it\n",
    } do
      takes(CHANGE .. text, BASE, DONE, "prose")
    end
    -- What stands in the file so is the hunk's own.
    gives(CHANGE .. "-d\n+D\n", "a\nb\nc\n\nd\ne\n", "a\nB\nc\n\nD\ne\n")
    assert.equal(1, try.entry.recounted)
    gives(CHANGE .. "+1 555 0100\n", "a\nb\nc\n\nd\n", "a\nB\nc\n\nd\n") -- a signature, not a line more
    gives(CHANGE .. "- one\n\ndiff --git a/y b/y\nnew file mode 100644\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+y\n",
      BASE, DONE)
    assert.equal("y\n", here:content "y")
  end)

  it("finds a hunk below its anchors, and nowhere else", function()
    local CLASS <const> = "class %s:\n    def get(self):\n        return 1\n\n    def set(self):\n        return %d\n\n"
    local code = CLASS:format("B", 2) .. CLASS:format("A", 3)
    local change <const> = "-        return 1\n+        return 9\n"
    local function changed(name)
      return (code:gsub("(class " .. name .. ":\n    def get%(self%):\n        return) 1", "%1 9"))
    end
    for _, form in ipairs { { X, "" }, { UPDATE, END, "begin_patch" } } do
      local head <const>, tail <const>, name <const> = table.unpack(form, 1, 3)
      for _, class in ipairs { "A", "B" } do
        takes(head .. "@@ class " .. class .. ":\n" .. change .. tail, code, changed(class), "no_line_numbers", name)
        takes(head .. "@@ class " .. class .. ":\n@@     def get(self): \n" .. change .. tail, code, changed(class),
          "no_line_numbers", name)
      end
      refuses(head .. "@@ class C:\n" .. change .. tail, code, "its anchor `@@ class C:` is not a line of the file")
      refuses(head .. "@@ class A:\n@@ class B:\n" .. change .. tail, code,
        "its anchor `@@ class B:` is not a line of the file, below the anchor before it")
      refuses(head .. "@@ class A:\n-        return 2\n+        return 9\n" .. tail, code,
        "patch_mismatch: x: hunk 1 of 1 \"@@ class A:\" does not fit: "
        .. "its lines do not stand below its anchor `@@ class A:`")
      refuses(head .. "@@ def get(self):\n" .. change .. tail, code, "patch_ambiguous")
      takes(head .. "@@ def set(self):\n-        return 2\n+        return 9\n" .. tail, code,
        (code:gsub("return 2", "return 9")), "no_line_numbers", name)
      takes(head .. "@@ class A:\n+    x = 1\n" .. tail, code, (code:gsub("class A:\n", "%0    x = 1\n")),
        "no_line_numbers", name)
      refuses(head .. "@@ class A:\n+    def get(self):\n+        return 1\n" .. tail, code, "already_applied")
      refuses(head .. "@@ def set(self):\n+        pass\n" .. tail, code, "patch_ambiguous")
      takes(head .. "@@ ## B\n-x\n+y\n" .. tail, "## A\nx\n## B\nx\n## C\nx\n", "## A\nx\n## B\ny\n## C\nx\n",
        "no_line_numbers", name)
    end
    local blanks <const> = "class A:\n  x = 1  \n  y = 2\n" -- what differs in its blanks alone is not done already
    takes(X .. "@@ class A:\n-  x = 1  \n+  x = 1\n", blanks, "class A:\n  x = 1\n  y = 2\n", "no_line_numbers")
    takes(X .. "@@ class A:\n-  y = 2\n+    y = 2\n", blanks, "class A:\n  x = 1  \n    y = 2\n", "no_line_numbers")
    takes(UPDATE .. "@@ -9,3 +9,3 @@ class A:\n" .. change .. END, code, changed "A", "no_line_numbers", "begin_patch")
  end)

  it("leaves a byte order mark where it is, unless the diff has one", function()
    local MARK <const> = "\u{FEFF}"
    takes(X .. "@@ -1,2 +1,2 @@\n-a\n+A\n b\n", MARK .. "a\nb\n", MARK .. "A\nb\n")
    takes(X .. "@@ -1 +1,2 @@\n+0\n a\n", MARK .. "a\n", MARK .. "0\na\n")
    takes(X .. "@@ -1 +1 @@\n-" .. MARK .. "a\n+a\n", MARK .. "a\n", "a\n")
    takes(X .. "@@ -1 +1 @@\n-a\n+" .. MARK .. "a\n", "a\n", MARK .. "a\n")
    takes(MARK .. X .. "@@ -1 +1 @@\n-a\n+b\n", "a\n", "b\n")
    takes(X .. "@@ -1 +1 @@\n-a\n+\n", MARK .. "a", MARK .. "\n", "final_newline")
    assert.equal("deleted", assert(attempt("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", MARK .. "a\n"))[1].action)
  end)

  it("refuses two markers of a missing newline in a row", function()
    refuses(X .. "@@ -1 +1 @@\n-a\r\n" .. NO_NEWLINE:gsub("\n", "\r\n"):rep(2) .. "+b\n", "a", "invalid_patch")
    refuses(X .. "@@ -1 +1 @@\n-a\n" .. NO_NEWLINE .. "+b\n" .. NO_NEWLINE:rep(2), "a", "invalid_patch")
  end)
end)
