-- SPDX-License-Identifier: Apache-2.0
local json = require "sba.util.json"
local scratch = require "scratch"
local step = require "sba.steps.apply_unified_diff"

describe("the step apply_unified_diff", function()
  local here = scratch()

  local function run(diff, arguments)
    arguments = arguments or {}
    arguments.diff = diff
    return step.run(arguments, { workspace = here.root })
  end

  local function put(files)
    for path, content in pairs(files) do here:put(path, content) end
  end

  ---All files of the workspace as path -> content; links as "-> target".
  local function all()
    local found = {}
    for path in here:shell([[find . \( -type f -o -type l \) -printf '%P\0']]):gmatch("%Z+") do
      local stat = assert(here.root:stat(path))
      found[path] = stat.type == "symlink" and "-> " .. stat.target or here:content(path)
    end
    return found
  end

  local function refused(code, pattern, diff, arguments)
    local before = all()
    local result, failure = run(diff, arguments)
    assert.is_nil(result)
    assert.matches(pattern, failure.message, 1, true)
    assert.equal(code, failure.code)
    assert.is_nil(failure.message:find("%c"))
    assert.same(before, all())
  end

  local function change(path, old, new)
    return ("--- a/%s\n+++ b/%s\n@@ -1 +1 @@\n-%s\n+%s\n"):format(path, path, old, new)
  end

  local function new_file(path, content, mode)
    return ("diff --git a/%s b/%s\nnew file mode %s\n--- /dev/null\n+++ b/%s\n@@ -0,0 +1 @@\n+%s\n")
      :format(path, path, mode or "100644", path, content)
  end

  local function gone_file(path, content)
    return ("diff --git a/%s b/%s\ndeleted file mode 100644\n--- a/%s\n+++ /dev/null\n@@ -1 +0,0 @@\n-%s\n")
      :format(path, path, path, content)
  end

  local function moved(from, to)
    return ("diff --git a/%s b/%s\nrename from %s\nrename to %s\n"):format(from, to, from, to)
  end

  it("says what it did", function()
    put { ["a.c"] = "1\n2\n3\n", old = "x\n", gone = "g\n" }
    local result, text = run("--- a/a.c\n+++ b/a.c\n@@ -1,9 +1 @@\n 1\n-2\n 3\n" .. new_file("s/new", "n")
      .. moved("old", "s/moved") .. "Index: gone\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-g\n")
    assert.equal('{"files":[' ..
      '{"path":"a.c","action":"modified","hunks":1,"added":0,"removed":1,"offset":0,"fuzz":0,"recounted":1},' ..
      '{"path":"s/new","action":"created","hunks":1,"added":1,"removed":0,"offset":0,"fuzz":0},' ..
      '{"path":"s/moved","old_path":"old","action":"renamed","hunks":0,"added":0,"removed":0,"offset":0,"fuzz":0},' ..
      '{"path":"gone","action":"deleted","hunks":1,"added":0,"removed":1,"offset":0,"fuzz":0}]}',
      json.encode(result, step.result))
    assert.equal("modified a.c: 1 hunk, +0 -1 (1 hunk recounted)\ncreated s/new: 1 hunk, +1 -0\n" ..
      "renamed old to s/moved\ndeleted gone: 1 hunk, +0 -1\n", text)
    assert.same({ ["a.c"] = "1\n3\n", ["s/new"] = "n\n", ["s/moved"] = "x\n" }, all())
  end)

  it("is all or nothing", function()
    put { x = "a\n", y = "b\n" }
    refused("patch_mismatch", 'y: hunk 1 of 1 "@@ -1 +1 @@" does not fit: line 1 is "b" where the diff has "c"',
      change("x", "a", "A") .. new_file("n", "1") .. change("y", "c", "C"))
  end)

  it("writes nothing in a dry run", function()
    put { x = "a\n" }
    local result, text = run(change("x", "a", "A") .. new_file("n", "1"), { dry_run = true })
    assert.is_true(result.dry_run)
    assert.matches("dry run: nothing was written", text)
    assert.same({ x = "a\n" }, all())
  end)

  it("applies several parts for one file one after the other", function()
    put { x = "a\n" }
    assert(run(change("x", "a", "b") .. change("x", "b", "c") .. new_file("n", "1") .. change("n", "1", "2")))
    assert.same({ x = "c\n", n = "2\n" }, all())
  end)

  it("finds out how many directories to strip", function()
    put { ["src/x"] = "a\n", top = "t\n" }
    assert(run(change("src/x", "a", "b")))
    assert(run("--- src/x\n+++ src/x\n@@ -1 +1 @@\n-b\n+c\n"))
    assert(run("--- old/src/x\n+++ new/src/x\n@@ -1 +1 @@\n-c\n+d\n--- /dev/null\n+++ new/y\n@@ -0,0 +1 @@\n+y\n"))
    assert(run("--- src/x.orig\n+++ src/x\n@@ -1 +1 @@\n-d\n+e\n--- top\n+++ top.new\n@@ -1 +1 @@\n-t\n+T\n"))
    assert(run("--- /dev/null\n+++ src/z\n@@ -0,0 +1 @@\n+z\n"))
    assert(run("--- " .. here.path .. "/src/x\n+++ " .. here.path .. "/src/x\n@@ -1 +1 @@\n-e\n+f\n"))
    assert(run("diff --git src/x src/x\nindex 1..2 100644\n--- src/x\n+++ src/x\n@@ -1 +1 @@\n-f\n+g\n"))
    assert.same({ ["src/x"] = "g\n", y = "y\n", top = "T\n", ["src/z"] = "z\n" }, all())
    put { ["a/p"] = "1\n" } -- a directory that is really named a
    assert(run("--- a/p\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n"))
    assert.is_nil(all()["a/p"])
    assert(run("--- i/j/src/x\n+++ w/j/src/x\n@@ -1 +1 @@\n-g\n+h\n", { strip = 2 }))
    assert.equal("h\n", all()["src/x"])
    refused("invalid_patch", "the name a/x does not have more than 2", change("x", "a", "b"), { strip = 2 })
    refused("not_a_directory", "src/x is not a directory", "--- src/x/y\n+++ src/x/y\n@@ -1 +1 @@\n-a\n+b\n",
      { strip = 0 })
  end)

  it("swaps files and moves them in a circle", function()
    put { x = "1\n", y = "2\n", z = "3\n" }
    assert(run("diff --git a/x b/y\nrename from x\nrename to y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-1\n+one\n" ..
      "diff --git a/y b/z\nrename from y\nrename to z\ndiff --git a/z b/x\nrename from z\nrename to x\n"))
    assert.same({ y = "one\n", z = "2\n", x = "3\n" }, all())
  end)

  it("copies what was there before the diff", function()
    put { x = "1\n" }
    local result = assert(run(change("x", "1", "2") ..
      "diff --git a/x b/y\ncopy from x\ncopy to y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-1\n+3\n"))
    assert.same({ x = "2\n", y = "3\n" }, all())
    assert.equal("created", result.files[2].action)
  end)

  it("lets a file become a directory and a directory a file", function()
    put { a = "1\n", ["b/c"] = "2\n" }
    assert(run(gone_file("a", "1") .. new_file("a/x", "x") .. new_file("b", "b") .. gone_file("b/c", "2")))
    assert.same({ ["a/x"] = "x\n", b = "b\n" }, all())
  end)

  it("keeps and changes modes", function()
    put { x = "1\n", y = "1\n" }
    here:shell "chmod 0640 x && chmod 0750 y"
    local result = assert(run("diff --git a/x b/x\nold mode 100644\nnew mode 100755\ndiff -u y y\n"
      .. change("y", "1", "2") .. new_file("z", "z", "100755")))
    assert.equal("mode_changed", result.files[1].action)
    assert.equal("0750 0750 0755",
      ("%04o %04o %04o"):format(here.root:stat("x").mode, here.root:stat("y").mode, here.root:stat("z").mode))
  end)

  it("changes links as links", function()
    put { x = "1\n" }
    local no_newline = "\\ No newline at end of file\n"
    local function link(path, target) return new_file(path, target, "120000") .. no_newline end
    assert(run(link("l", "x")))
    assert(run("diff --git a/l b/l\nindex 1..2 120000\n--- a/l\n+++ b/l\n@@ -1 +1 @@\n-x\n" .. no_newline ..
      "+s/y\n" .. no_newline))
    assert.same({ x = "1\n", l = "-> s/y" }, all())
    refused("patch_mismatch", "l: it is a symbolic link", change("l", "1", "2"))
    refused("patch_mismatch", "x: it is not a symbolic link",
      "diff --git a/x b/x\nindex 1..2 120000\n" .. change("x", "1", "2"))
    refused("path_escape", "path escapes workspace", link("e", "s/../../x"), { dry_run = true })
  end)

  it("refuses what is there, what is not, and what is done", function()
    put { x = "1\n", y = "2\n" }
    local delete = "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n"
    refused("already_exists", "x already exists", new_file("x", "2"))
    refused("already_applied", "x: the change is already applied", new_file("x", "1"))
    refused("already_applied", "x: hunk 1 of 1", change("x", "0", "1"))
    refused("not_found", "n: no such file", change("n", "1", "2"))
    refused("not_found", "x: no such file", delete .. delete)
    refused("patch_mismatch", "y: hunk 1 of 1", "--- a/y\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n")
    refused("patch_mismatch", "y: the diff deletes the file, but leaves 2 of its bytes",
      "diff --git a/y b/y\ndeleted file mode 100644\n")
    refused("already_exists", "y already exists", moved("x", "y"))
    refused("not_found", "x: no such file", moved("x", "z") .. "Index: x\n" .. change("x", "1", "2"))
    refused("invalid_patch", "renamed or copied to itself", moved("x", "x"))
    refused("not_a_directory", "x is not a directory", new_file("x/y", "1"))
    refused("invalid_patch", "two files, but the diff has no rename",
      "diff --git a/x b/y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-1\n+2\n")
  end)

  it("refuses to change git's own files", function()
    put { x = "1\n", [".git/config"] = "c\n", ["d/f"] = "1\n" }
    local words = "a patch may not change .git"
    refused("invalid_patch", words, new_file(".git/hooks/post-commit", "1"))
    refused("invalid_patch", words, change("d/.GIT/config", "c", "d"))
    refused("invalid_patch", words, moved("x", ".git"))
  end)

  local function begin(...)
    return "*** Begin Patch\n" .. table.concat({ ... }, "\n") .. "\n*** End Patch\n"
  end

  it("takes what models write, and says so", function()
    put { x = "a \nb\nc", ["a/y"] = "1\n", gone = "1\n2", old = "o\n" }
    local result, text = run("Here it is:\n\n```diff\n--- a/x\n+++ b/x\n@@\n a\n-b\n+B\n c\n```\nDone.\n")
    assert.equal('{"files":[{"path":"x","action":"modified","hunks":1,"added":1,"removed":1,"offset":0,"fuzz":0,' ..
      '"tolerated":["final_newline","no_line_numbers","trailing_blanks"]}],"tolerated":["code_fence","prose"]}',
      json.encode(result, step.result))
    assert.equal("modified x: 1 hunk, +1 -1 (tolerated: final newline, no line numbers, trailing blanks)\n" ..
      "(tolerated: code fence, prose)\n", text)
    result = assert(run(begin("*** Update File: a/y", "@@", "-1", "+2", "*** Delete File: gone",
      "*** Add File: b/new", "+n", "*** Update File: old", "*** Move to: s/moved", "@@", "-o", "+O",
      "*** Update File: a/y", "@@", "-2", "+3", "*** Add File: void")))
    assert.same({ "begin_patch" }, setmetatable(result.tolerated, nil))
    assert.equal(2, result.files[2].removed)
    assert.same({ x = "a \nB\nc", ["a/y"] = "3\n", ["b/new"] = "n\n", ["s/moved"] = "O\n", void = "" }, all())
  end)

  it("keeps all of its refusals for them", function()
    put { x = "a\nb\na\n", y = "1\n" }
    refused("not_found", "n: no such file", begin("*** Update File: n", "@@", "-1", "+2"))
    refused("not_found", "n: no such file", begin("*** Delete File: n"))
    refused("not_found", "n: no such file", begin("*** Update File: n", "*** Move to: y", "@@", "-1", "+2"))
    refused("not_found", "y: no such file", begin("*** Delete File: y", "*** Update File: y", "@@", "-1", "+2"))
    refused("already_exists", "x already exists", begin("*** Update File: y", "*** Move to: x"))
    refused("already_exists", "x already exists", begin("*** Add File: x", "+1"))
    refused("already_applied", "y: the change is already applied", begin("*** Add File: y", "+1"))
    refused("patch_ambiguous", "x: hunk 1 of 1", begin("*** Update File: y", "@@", "-1", "+2", "*** Update File: x",
      "@@", "-a", "+A"))
    refused("patch_ambiguous", "at line 1 as at line 3", "--- a/x\n+++ b/x\n@@ ... @@\n-a\n+A\n")
    refused("invalid_patch", "cut off", "*** Begin Patch\n*** Update File: y\n@@\n-1\n+2\n")
  end)

  it("takes names with line ends, and shows them on one line", function()
    assert(run("--- /dev/null\n+++ \"b/x\\ny\\rz\"\n@@ -0,0 +1 @@\n+1\n"))
    assert.equal("1\n", here:content("x\ny\rz"))
    refused("already_applied", "x y z: the change is already applied",
      "--- /dev/null\n+++ \"b/x\\ny\\rz\"\n@@ -0,0 +1 @@\n+1\n")
  end)

  local PYTHON <const> = "def f(x):\n    if x:\n        return 1\n    return 2\n\ndef g():\n    return 3\n"

  it("takes context that lost its blank, in several hunks and files", function()
    put { ["a.py"] = PYTHON, ["b.py"] = PYTHON }
    local hunk = "@@ -6,2 +6,2 @@\ndef g():\n-    return 3\n+    return 9\n"
    local result, words = run("--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,3 @@\ndef f(x):\n+    y = x\n    if x:\n" .. hunk
      .. "--- a/b.py\n+++ b/b.py\n" .. hunk)
    assert.matches("bare context", words)
    assert.same({ "bare_context" }, result.tolerated)
    local changed = PYTHON:gsub("return 3", "return 9")
    assert.same({ ["a.py"] = changed:gsub("    if", "    y = x\n    if"), ["b.py"] = changed }, all())
  end)

  it("refuses blocks of SEARCH and REPLACE, and leaves a diff alone that has such lines", function()
    put { ["a.py"] = PYTHON }
    local block <const> = "<<<<<<< SEARCH\n    return 3\n=======\n    return 9\n>>>>>>> REPLACE\n"
    for _, before in ipairs { "a.py\n", "", "Here:\n\n**a.py**\n```python\n" } do
      refused("invalid_patch", "replace_in_file", before .. block)
    end
    assert(run("--- a/a.py\n+++ b/a.py\n@@ -6,2 +6,4 @@\n def g():\n+<<<<<<< SEARCH\n+=======\n     return 3\n"))
    assert.matches("def g():\n<<<<<<< SEARCH\n=======\n", here:content("a.py"), 1, true)
  end)
end)
