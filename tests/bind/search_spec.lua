-- SPDX-License-Identifier: Apache-2.0
local scratch = require "scratch"
local search = require "native.search"

describe("native.search", function()
  local here = scratch()

  local function find(pattern, path, include, options)
    local regex, failure = search.compile(pattern, { include = include })
    if not regex then return nil, failure end
    return regex:files(here.root, path or ".", options)
  end

  ---What was found, as "path:line:text" joined by bars.
  local function found(...)
    return (assert(find(...)).shown:sub(1, -2):gsub("\n", "|"))
  end

  local function refused(code, result, failure)
    assert.is_nil(result)
    assert.equal(code, failure.code)
    assert.is_nil(failure.message:find "\n")
    return failure
  end

  it("finds lines in the order of list_tree", function()
    here:put("b", "x\n")
    here:put("a/z", "x\n")
    here:put("a.c", "y\nx\nx")
    here:put("a/b/c", "x\n")
    here:put(".hidden", "x\n")
    assert.equal(".hidden:1:x|a/b/c:1:x|a/z:1:x|a.c:2:x|a.c:3:x|b:1:x", found("x"))
    assert.equal(5, find("x").files_searched)
  end)

  it("begins at a directory or at a file, relative or absolute", function()
    here:put("a/b/c", "x\n")
    here:put("a/d", "x\n")
    here:put("e", "x\n")
    assert.equal("a/b/c:1:x|a/d:1:x", found("x", "a"))
    assert.equal("a/b/c:1:x|a/d:1:x", found("x", "./a/"))
    assert.equal("a/d:1:x", found("x", "a/d"))
    assert.equal("a/b/c:1:x", found("x", here.path .. "/a/b"))
  end)

  it("takes a glob of names or of paths", function()
    for _, path in ipairs { "a.c", "a.h", "src/b.c", "src/deep/c.c", "src/deep/c.o" } do here:put(path, "x\n") end
    assert.equal("a.c:1:x|src/b.c:1:x|src/deep/c.c:1:x", found("x", ".", "*.c"))
    assert.equal("src/b.c:1:x|src/deep/c.c:1:x", found("x", ".", "src/**/*.c"))
    assert.equal("src/deep/c.c:1:x|src/deep/c.o:1:x", found("x", "src", "src/deep/c.{c,o}"))
    assert.equal("", found("x", "a.c", "*.h"))
    assert.equal(1, find("x", ".", "*.h").files_searched)
    for _, glob in ipairs { "[a", "{a", "", "/a" } do refused("invalid_glob", find("x", ".", glob)) end
  end)

  it("passes over links, binary files, FIFOs and .git", function()
    here:put("a", "x\n")
    here:put("binary", "\0x\n")
    here:put(".git/config", "x\n")
    here:put("sub/.git/config", "x\n")
    here:shell "ln -s a link && ln -s /etc etc && ln -s . loop && mkfifo fifo"
    assert.equal("a:1:x", found("x"))
    assert.equal(".git/config:1:x", found("x", ".git"))
    assert.equal("a:1:x", found("x", "link"):gsub("link", "a"), "a link that is named is followed")
  end)

  it("fails for a path that is not there, is no file, or leaves", function()
    here:shell "mkfifo fifo && ln -s /etc etc"
    for path, code in pairs { nothing = "not_found", fifo = "not_a_file", ["a\0b"] = "invalid" } do
      refused(code, find("x", path))
    end
    for _, path in ipairs { "..", "etc", "etc/passwd", "/etc" } do refused("path_escape", find("x", path)) end
  end)

  it("repairs names and lines that are not UTF-8", function()
    here:shell [[printf 'x\377\n' > "$(printf 'a\377')"]]
    assert.equal("a\u{FFFD}:1:x\u{FFFD}", found("x"))
  end)

  it("refuses what is no pattern, and misuse", function()
    assert.matches("at byte 2", refused("invalid_pattern", search.compile("(")).message)
    assert.has_error(function() search.compile("a", { ignorecase = true }) end)
    assert.has_error(function() find("a", ".", nil, { max_matches = -1 }) end)
    assert.has_error(function() find("a", ".", 1) end)
    assert.has_error(function() search.compile("a"):files(42, ".") end)
  end)

  it("gives what it has found with the error of a costly pattern", function()
    here:put("a", "aab\n")
    here:put("b", ("a"):rep(200) .. "\n")
    local failure = refused("pattern_too_costly", find("(a+)+[bc]", "."))
    assert.matches("file b line 1", failure.message)
    assert.equal("a:1:aab\n", failure.found.shown)
  end)
end)
