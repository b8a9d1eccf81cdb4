-- SPDX-License-Identifier: Apache-2.0
local listing = require "sba.util.files".entries
local scratch = require "scratch"
local workspace = require "native.workspace"

-- What a walk meets, as one line: a slash stands behind a directory that is entered.
local function outline(root, path, options)
  local walk <close>, failure = root:walk(path or ".", options)
  local found = {}
  while walk do
    local entry, problem, entered = walk:next()
    if not entry and problem then return nil, problem end
    if not entry then return table.concat(found, " "), walk:is_cut() end
    found[#found + 1] = walk:path() .. (entered and "/" or "")
  end
  return nil, failure
end

describe("native.workspace", function()
  local here = scratch()

  before_each(function() here:shell "echo secret > ../secret" end)

  local function refused(code, found, failure)
    assert.is_nil(found)
    assert.equal(code, failure.code, failure.message)
    assert.is_nil(failure.message:find("[\0-\31]"))
    if code == "path_escape" then assert.truthy(failure.message:find("path escapes workspace", 1, true)) end
  end

  it("opens directories only", function()
    refused("not_found", workspace.open(here.path .. "/missing"))
    refused("not_a_directory", workspace.open(here.above .. "/secret"))
    assert.equal(here.path, here.root:path())
  end)

  it("lists what is in one directory, and stays inside", function()
    here:shell "mkdir d d/deep && touch d/b .a && ln -s /etc link && ln -s d inside"
    local entries, more = listing(here.root, ".", 100)
    local names = {}
    for index, entry in ipairs(entries) do names[index] = entry.name .. " " .. entry.type end
    assert.same({ ".a file", "d directory", "inside symlink", "link symlink" }, names)
    assert.is_false(more)
    entries, more = listing(here.root, "inside", 1)
    assert.same({ 1, true }, { #entries, more })
    assert.same({}, (listing(here.root, ".a", 1)))
    refused("path_escape", listing(here.root, "link", 1))
    refused("path_escape", listing(here.root, "..", 1))
    refused("not_found", listing(here.root, "missing", 1))
    assert.error(function() listing(here.root, ".", 0) end)
  end)

  it("names paths as the results do", function()
    for given, wanted in pairs {
      ["."] = ".", ["./"] = ".", ["a//b/./c"] = "a/b/c", ["a/"] = "a", ["a/.."] = "a/..",
      [here.path] = ".", [here.path .. "/"] = ".", [here.path .. "//x"] = "x", ["/." .. here.path .. "/x"] = "x",
    } do
      assert.equal(wanted, (here.root:relative(given)))
    end
  end)

  it("refuses paths that are none", function()
    refused("invalid", here.root:read(""))
    refused("invalid", here.root:read("a\0b"))
    refused("invalid", here.root:write("a\0b", ""))
    refused("name_too_long", here.root:write(("x"):rep(256), ""))
    refused("name_too_long", here.root:read(("x/"):rep(2048)))
    assert(here.root:write(("x"):rep(255), "long"))
  end)

  it("takes the workspace by its link and by its real path", function()
    here:shell "ln -s work ../link"
    local linked = assert(workspace.open(here.above .. "/link"))
    assert(linked:write("a", "1"))
    assert.equal("1", linked:read(here.above .. "/link/a").content)
    assert.equal("1", linked:read(here.path .. "/a").content)
  end)

  it("reads ranges", function()
    assert(here.root:write("f", "one\ntwo\nthree\nfour"))
    local function read(options) return here.root:read("f", options) end
    assert.same({ content = "one\ntwo\nthree\nfour", truncated = false, size_bytes = 18, mode = 420,
      from = 0, length = 18 }, read())
    assert.equal("two\nthree\n", read({ start_line = 2, end_line = 3 }).content)
    assert.equal("four", read({ start_line = 4 }).content)
    assert.equal("", read({ start_line = 5 }).content)
    assert.equal("", read({ start_line = 3, end_line = 2 }).content)
    assert.equal("one\n", read({ end_line = 1 }).content)
    assert.equal("wo\n", read({ offset_bytes = 5, end_line = 1 }).content)
    assert.equal("", read({ offset_bytes = 99 }).content)
    assert.equal("", read({ offset_bytes = math.maxinteger, digest = true }).content)
    local cut = read({ offset_bytes = 4, max_bytes = 3, digest = true })
    assert.same({ "two", true, 18 }, { cut.content, cut.truncated, cut.size_bytes })
    assert.equal(require("native.text").sha256("one\ntwo\nthree\nfour"), cut.sha256)
    local function range(options)
      local found = read(options)
      return { found.from, found.length, found.content, found.sha256 ~= nil, found.lines }
    end
    assert.same({ 4, 4, "two\n", false }, range { start_line = 2, end_line = 2 })
    assert.same({ 4, 10, "two", true, 4 },
      range { start_line = 2, end_line = 3, max_content = 3, digest = true, max_digest = 18 })
    assert.same({ 7, 7, "\nthree\n", false }, range { offset_bytes = 7, end_line = 2, digest = true, max_digest = 17 })
    assert.is_true(range({ offset_bytes = 1, digest = true, max_digest = 18 })[4])
    assert.same({ true, false, false }, {
      read({ offset_bytes = 1, max_bytes = 16 }).truncated, read({ offset_bytes = 1, max_bytes = 17 }).truncated,
      read({ offset_bytes = 99, max_bytes = 0 }).truncated,
    })
    assert.is_false(read({ max_bytes = 18 }).truncated)
    assert.is_true(read({ max_bytes = 17 }).truncated)
    assert.is_false(read({ start_line = 2, end_line = 2, max_bytes = 4 }).truncated)
    assert.is_true(read({ start_line = 2, end_line = 2, max_bytes = 3 }).truncated)
    assert.has_error(function() read({ start_lin = 1 }) end)
    assert.has_error(function() read({ start_line = 0 }) end)
  end)

  it("reads big files the same in any range", function()
    local line = ("x"):rep(99) .. "\n"
    assert(here.root:write("big", line:rep(30000)))
    assert.equal(line:rep(30000), here.root:read("big", { digest = true }).content)
    assert.equal(line:rep(2), here.root:read("big", { start_line = 29999, digest = true }).content)
    assert.equal(line:rep(10001), here.root:read("big", { start_line = 5000, end_line = 15000 }).content)
    assert.equal(1000, #here.root:read("big", { offset_bytes = 1000000, max_bytes = 1000, digest = true }).content)
  end)

  it("reads what says it is empty", function()
    assert(here.root:write("empty", ""))
    assert.equal("", here.root:read("empty", { digest = true }).content)
    local proc = assert(workspace.open("/proc/sys/kernel"))
    assert.truthy(proc:read("ostype").content:find("Linux"))
  end)

  it("reads the same if a finalizer reads too", function()
    here:put("f", "content")
    local begun = 0
    local metatable = { __gc = function()
      begun = begun + 1
      here.root:read "f"
    end }
    for _ = 1, 1000 do setmetatable({}, metatable) end
    collectgarbage("incremental", 100, 100, 4) -- steps as small as can be
    repeat collectgarbage("step", 0) until begun > 0
    for _ = 1, 1000 do assert.equal("content", assert(here.root:read "f").content) end
    collectgarbage("incremental", 200, 100, 13)
    assert.is_true(begun > 100)
  end)

  it("does not wake who waits for a reader of a FIFO", function()
    here:shell("mkfifo fifo; (echo hello > fifo; touch woken) >/dev/null & sleep 0.2")
    refused("not_a_file", here.root:read("fifo"))
    refused("not_a_file", here.root:write("fifo", "x"))
    outline(here.root)
    here:shell "sleep 0.1"
    refused("not_found", here.root:stat("woken"))
    here:shell("cat fifo > /dev/null")
  end)

  it("writes through a link that stays inside", function()
    here:shell("mkdir a && echo old > a/file && ln -s a/file link && ln -s a/new dangling")
    assert.is_false(assert(here.root:write("link", "new")).created)
    assert.is_true(assert(here.root:write("dangling", "made")).created)
    assert.equal("new", here:shell "cat a/file")
    assert.equal("made", here:shell "cat a/new")
    assert.equal("symlink", here.root:stat("link").type)
    assert.equal("a/file", here.root:stat("link").target)
  end)

  it("writes", function()
    local result = assert(here.root:write("deep/er/file", "hello"))
    assert.same({ size_bytes = 5, created = true, sha256 = require("native.text").sha256("hello") }, result)
    assert.is_false(assert(here.root:write("deep/er/file", "hello")).created)
    result = assert(here.root:write("deep/er/file", " world", { append = true }))
    assert.same({ size_bytes = 11, created = false }, result)
    assert.equal("hello world", here:shell "cat deep/er/file")
    assert.is_true(assert(here.root:write("fresh", "x", { append = true })).created)
    refused("already_exists", here.root:write("fresh", "y", { overwrite = false }))
    assert.equal("x", here:shell "cat fresh")
    assert.is_true(assert(here.root:write("fresher", "y", { overwrite = false })).created)
    refused("not_a_directory", here.root:write("fresh/x", "y"))
    refused("not_a_file", here.root:write("deep/", "y"))
    refused("not_a_file", here.root:write("deep/er/..", "y"))
    assert.equal("./ deep/ deep/er/ deep/er/file fresh fresher", (outline(here.root)))
  end)

  it("keeps the mode of what it replaces", function()
    here.root:write("f", "x")
    assert.equal(420, here.root:stat("f").mode)
    for _, mode in ipairs { "4755", "0600", "0444", "2711" } do
      here:shell("chmod " .. mode .. " f")
      assert(here.root:write("f", "y"))
      assert.equal(tonumber(mode, 8) & 511, here.root:stat("f").mode)
    end
    assert(here.root:write("f", "y", { mode = 493 }))
    assert(here.root:write("new", "y", { mode = 511 }))
    assert.same({ 493, 511 }, { here.root:stat("f").mode, here.root:stat("new").mode })
    assert.has_error(function() here.root:write("f", "y", { mode = 2541 }) end)
  end)

  it("walks in byte order", function()
    here:shell("mkdir -p b/c .hidden a && touch b/z b/A b/c/x .hidden/y 'a.c' && ln -s ../../etc b/out && mkfifo pipe")
    assert.equal("./ .hidden/ .hidden/y a/ a.c b/ b/A b/c/ b/c/x b/out b/z pipe", (outline(here.root)))
    assert.equal("b/ b/A b/c/ b/c/x b/out b/z", (outline(here.root, "b")))
    assert.equal("b/c/ b/c/x", (outline(here.root, here.path .. "/b/c/")))
    assert.equal("b/z", (outline(here.root, "b/z")))
    assert.equal("./ a/ a.c b/ b/A b/c/ b/c/x b/out b/z pipe", (outline(here.root, ".", { include_hidden = false })))
    assert.equal("./ .hidden a a.c b pipe", (outline(here.root, ".", { max_depth = 1 })))
    assert.equal(".", (outline(here.root, ".", { max_depth = 0 })))
    assert.is_true(select(2, outline(here.root, ".", { max_names = 2 })))
    assert.same({ name = "out", type = "symlink", size_bytes = 9, mode = 511, target = "../../etc" },
      listing(here.root, "b", 9)[3])
    refused("not_found", here.root:walk("missing"))
    local walk <close> = here.root:walk "."
    assert.same({ 0, true }, { select(2, walk:next()) })
    walk:close()
    assert.has_error(function() walk:next() end)
  end)

  it("goes down and up a tree deeper than a path can be, with few descriptors", function()
    local script = assert(io.open(here.above .. "/deep.py", "w"))
    script:write('import os\nfor i in range(2500):\n'
      .. '  os.mkdir("d"); open("e", "w").close(); os.mkdir("z"); os.chdir("d")\n')
    script:close()
    here:shell("python3 ../deep.py")
    assert.equal(3 * 2500 + 1, select(2, (outline(here.root)):gsub("%S+", "")))
  end)

  it("changes single names, and stays inside", function()
    here:shell "mkdir d && echo 1 > d/a && echo 2 > d/b && ln -s .. up && ln -s d/a link"
    assert(here.root:move("d/b", "e/b") and here.root:move("d/a", "e/b", "e/old"))
    assert.equal("1\n2\n", here:shell "cat e/b e/old")
    refused("already_exists", here.root:move("e/old", "e/b"))
    assert(here.root:move("link", "e/b", ""))
    assert.equal("d/a", here.root:stat("e/b").target)
    refused("path_escape", here.root:move("e/old", "up/a"))
    refused("path_escape", here.root:move("up/secret", "a"))
    refused("path_escape", here.root:remove("up/secret", "file"))
    refused("path_escape", here.root:chmod("up/secret", 511))
    refused("path_escape", here.root:make_directory("up/new"))
    refused("not_a_file", here.root:remove("d/..", "directory"))
    here.root:prune("up/work/e", 0)
    assert(here.root:chmod("d", 511))
    assert.equal(511, here.root:stat("d").mode)
    assert(here.root:make_directory "n/m")
    here.root:prune("n/m", 0)
    refused("not_found", here.root:stat("n"))
    assert.matches("^e/%.sba%-%x+$", (assert(here.root:stage("e/new/x", "y"))))
  end)

  it("gives handles that can be closed", function()
    here:shell "mkdir d"
    local entered = assert(here.root:directory("d"))
    entered:close()
    entered:close()
    assert(here.root:write("f", ""))
    refused("not_a_directory", here.root:directory("f"))
    getmetatable(here.root).__close(here.root)
    assert.has_error(function() here.root:read("f") end)
  end)
end)
