-- SPDX-License-Identifier: Apache-2.0
local json = require "sba.util.json"
local temporary_directory = require "temporary_directory"
local workspace = require "native.workspace"

local function shell(command) assert(os.execute(command), command) end

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- As root:tree, with the children as tables, and without the text.
local function tree_of(directory, ...)
  local tree, text, cut = directory:tree(...)
  if not tree then return nil, text end
  tree.children = tree.children and assert(json.decode(json.encode(tree.children), { depth = 200 }))
  return tree, cut
end

-- What a listing holds, as one line: "a dir(b c)".
local function outline(entry)
  if not entry.children then return entry.name end
  local names = {}
  for i, child in ipairs(entry.children) do names[i] = outline(child) end
  return entry.name .. "(" .. table.concat(names, " ") .. ")"
end

describe("native.workspace", function()
  local outside, root, directory

  before_each(function()
    outside = temporary_directory.make()
    root = outside .. "/work"
    shell("mkdir " .. quoted(root) .. " && echo secret > " .. quoted(outside .. "/secret"))
    directory = assert(workspace.open(root))
  end)

  after_each(function() temporary_directory.remove(outside) end)

  local function in_root(command) shell("cd " .. quoted(root) .. " && " .. command) end

  local function content(path)
    local file <close> = assert(io.open(outside .. "/" .. path, "rb"))
    return file:read("a")
  end

  local function refused(code, found, failure)
    assert.is_nil(found)
    assert.equal(code, failure.code, failure.message)
    assert.is_nil(failure.message:find("[\0-\31]"))
    if code == "path_escape" then assert.truthy(failure.message:find("path escapes workspace", 1, true)) end
  end

  it("opens directories only", function()
    refused("not_found", workspace.open(root .. "/missing"))
    refused("not_a_directory", workspace.open(outside .. "/secret"))
    assert.equal(root, directory:path())
  end)

  it("names what is in one directory, and stays inside", function()
    in_root "mkdir d d/deep && touch d/b .a && ln -s /etc link && ln -s d inside"
    assert.same({ { { name = ".a", type = "file" }, { name = "d", type = "directory" }, { name = "inside", type = "symlink" },
      { name = "link", type = "symlink" } }, false }, { directory:names(".", 100) })
    assert.same({ { name = "b", type = "file" }, { name = "deep", type = "directory" } }, (directory:names("inside", 1)))
    assert.same({}, (directory:names(".a", 1)))
    refused("path_escape", directory:names("link", 1))
    refused("path_escape", directory:names("..", 1))
    refused("not_found", directory:names("missing", 1))
    assert.error(function() directory:names(".", 0) end)
  end)

  it("names paths as the results do", function()
    for given, wanted in pairs {
      ["."] = ".", ["./"] = ".", ["a//b/./c"] = "a/b/c", ["a/"] = "a", ["a/.."] = "a/..",
      [root] = ".", [root .. "/"] = ".", [root .. "//x"] = "x", ["/." .. root .. "/x"] = "x",
    } do
      assert.equal(wanted, (directory:relative(given)))
    end
  end)

  it("refuses paths that leave as they are written", function()
    for _, path in ipairs {
      "..", "../secret", "a/../../secret", "./../x", outside .. "/secret", root .. "-evil/x", root .. "/../secret",
      "/", "/etc/passwd", "/proc/self/root/etc", "missing/../../x",
    } do
      refused("path_escape", directory:relative(path))
      refused("path_escape", directory:read(path))
      refused("path_escape", directory:write(path, "x"))
      refused("path_escape", directory:stat(path))
      refused("path_escape", directory:tree(path))
      refused("path_escape", directory:directory(path))
    end
  end)

  it("refuses paths that are none", function()
    refused("invalid", directory:read(""))
    refused("invalid", directory:read("a\0b"))
    refused("invalid", directory:write("a\0b", ""))
    refused("name_too_long", directory:write(("x"):rep(256), ""))
    refused("name_too_long", directory:read(("x/"):rep(2048)))
    assert(directory:write(("x"):rep(255), "long"))
  end)

  it("takes the workspace by its link and by its real path", function()
    shell("ln -s work " .. quoted(outside .. "/link"))
    local linked = assert(workspace.open(outside .. "/link"))
    assert(linked:write("a", "1"))
    assert.equal("1", linked:read(outside .. "/link/a").content)
    assert.equal("1", linked:read(root .. "/a").content)
  end)

  it("reads ranges", function()
    assert(directory:write("f", "one\ntwo\nthree\nfour"))
    local function read(options) return directory:read("f", options) end
    assert.same({ content = "one\ntwo\nthree\nfour", truncated = false, size_bytes = 18, mode = 420 }, read())
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
    assert.is_false(read({ max_bytes = 18 }).truncated)
    assert.is_true(read({ max_bytes = 17 }).truncated)
    assert.is_false(read({ start_line = 2, end_line = 2, max_bytes = 4 }).truncated)
    assert.is_true(read({ start_line = 2, end_line = 2, max_bytes = 3 }).truncated)
    assert.has_error(function() read({ start_lin = 1 }) end)
    assert.has_error(function() read({ start_line = 0 }) end)
  end)

  it("reads big files the same in any range", function()
    local line = ("x"):rep(99) .. "\n"
    assert(directory:write("big", line:rep(30000)))
    assert.equal(line:rep(30000), directory:read("big", { digest = true }).content)
    assert.equal(line:rep(2), directory:read("big", { start_line = 29999, digest = true }).content)
    assert.equal(line:rep(10001), directory:read("big", { start_line = 5000, end_line = 15000 }).content)
    assert.equal(1000, #directory:read("big", { offset_bytes = 1000000, max_bytes = 1000, digest = true }).content)
  end)

  it("reads what says it is empty", function()
    assert(directory:write("empty", ""))
    assert.equal("", directory:read("empty", { digest = true }).content)
    local proc = assert(workspace.open("/proc/sys/kernel"))
    assert.truthy(proc:read("ostype").content:find("Linux"))
  end)

  it("reads regular files only, and waits for nothing", function()
    in_root("mkfifo fifo && mkdir dir && ln -s fifo link")
    for path, what in pairs { fifo = "FIFO", link = "FIFO", dir = "directory", ["."] = "directory" } do
      local _, failure = directory:read(path)
      refused("not_a_file", nil, failure)
      assert.truthy(failure.message:find(what, 1, true))
      refused("not_a_file", directory:write(path, "x"))
    end
    local devices = assert(workspace.open("/dev"))
    refused("not_a_file", devices:read("null"))
  end)

  it("does not wake who waits for a reader of a FIFO", function()
    in_root("mkfifo fifo; (echo hello > fifo; touch woken) & echo $! > pid; sleep 0.2")
    refused("not_a_file", directory:read("fifo"))
    refused("not_a_file", directory:write("fifo", "x"))
    tree_of(directory, ".")
    shell("sleep 0.1")
    refused("not_found", directory:stat("woken"))
    in_root("cat fifo > /dev/null")
  end)

  it("follows links inside and none that leads out", function()
    in_root("mkdir -p a/b && echo in > a/file && ln -s a/file inside && ln -s b/../file a/up && ln -s a directory")
    in_root("ln -s ../secret out && ln -s " .. quoted(outside) .. " absolute && ln -s " .. quoted(root) .. "/a/file back")
    in_root("ln -s .. parent && ln -s loop2 loop1 && ln -s loop1 loop2 && ln -s out chain && ln -s a/missing dangling")
    in_root("ln -s ../missing dangling_out && ln -s /proc/self/root magic && ln -s /proc/self/fd/0 stdin")
    for _, path in ipairs { "inside", "a/up", "directory/file", "directory/b/../file", "a/b/../../inside" } do
      assert.equal("in\n", assert(directory:read(path)).content)
    end
    for _, path in ipairs {
      "out", "absolute/secret", "back", "parent/secret", "chain", "dangling_out", "magic/etc/passwd", "stdin",
      "directory/../../secret", "parent/work/a/file",
    } do
      refused("path_escape", directory:read(path))
      refused("path_escape", directory:write(path, "x"))
    end
    refused("too_many_links", directory:read("loop1"))
    refused("too_many_links", directory:write("loop1", "x"))
    refused("path_escape", directory:tree("absolute"))
    refused("path_escape", directory:directory("parent"))
    refused("not_found", directory:read("dangling"))
    assert.equal("secret\n", content("secret"))
    assert.is_nil(io.open(outside .. "/missing"))
  end)

  it("writes through a link that stays inside", function()
    in_root("mkdir a && echo old > a/file && ln -s a/file link && ln -s a/new dangling")
    assert.is_false(assert(directory:write("link", "new")).created)
    assert.is_true(assert(directory:write("dangling", "made")).created)
    assert.equal("new", content("work/a/file"))
    assert.equal("made", content("work/a/new"))
    assert.equal("symlink", directory:stat("link").type)
    assert.equal("a/file", directory:stat("link").target)
  end)

  it("writes", function()
    local result = assert(directory:write("deep/er/file", "hello"))
    assert.same({ size_bytes = 5, created = true, sha256 = require("native.text").sha256("hello") }, result)
    assert.is_false(assert(directory:write("deep/er/file", "hello")).created)
    result = assert(directory:write("deep/er/file", " world", { append = true, durable = true }))
    assert.same({ size_bytes = 11, created = false, sha256 = require("native.text").sha256("hello world") }, result)
    assert.equal("hello world", content("work/deep/er/file"))
    assert.is_true(assert(directory:write("fresh", "x", { append = true })).created)
    refused("already_exists", directory:write("fresh", "y", { overwrite = false }))
    assert.equal("x", content("work/fresh"))
    assert.is_true(assert(directory:write("fresher", "y", { overwrite = false })).created)
    refused("not_a_directory", directory:write("fresh/x", "y"))
    refused("not_a_file", directory:write("deep/", "y"))
    refused("not_a_file", directory:write("deep/er/..", "y"))
    assert.equal(".(deep(er(file)) fresh fresher)", outline(tree_of(directory, ".")))
  end)

  it("keeps the mode of what it replaces", function()
    directory:write("f", "x")
    assert.equal(420, directory:stat("f").mode)
    for _, mode in ipairs { "4755", "0600", "0444", "2711" } do
      in_root("chmod " .. mode .. " f")
      assert(directory:write("f", "y"))
      assert.equal(tonumber(mode, 8) & 511, directory:stat("f").mode)
    end
    assert(directory:write("f", "y", { mode = 493 }))
    assert(directory:write("new", "y", { mode = 511 }))
    assert.same({ 493, 511 }, { directory:stat("f").mode, directory:stat("new").mode })
    assert.has_error(function() directory:write("f", "y", { mode = 2541 }) end)
  end)

  it("lists trees in byte order", function()
    in_root("mkdir -p b/c .hidden a && touch b/z b/A b/c/x .hidden/y 'a.c' && ln -s ../../etc b/out && mkfifo pipe")
    local tree, cut = tree_of(directory, ".")
    assert.is_nil(cut)
    assert.equal(".(.hidden(y) a() a.c b(A c(x) out z) pipe)", outline(tree))
    local out = tree.children[4].children[3]
    assert.same({ name = "out", type = "symlink", size_bytes = 9, mode = "0777", target = "../../etc" }, out)
    assert.equal("fifo", tree.children[5].type)
    assert.is_true(json.is_array(tree.children[2].children))
    assert.equal("b(A c(x) out z)", outline(tree_of(directory, "b")))
    assert.equal("c(x)", outline(tree_of(directory, root .. "/b/c/")))
    assert.equal("z", outline(tree_of(directory, "b/z")))
    assert.equal(".(a() a.c b(A c(x) out z) pipe)", outline(tree_of(directory, ".", { include_hidden = false })))
    assert.equal(".(.hidden a a.c b pipe)", outline(tree_of(directory, ".", { max_depth = 1 })))
    assert.equal(".", outline(tree_of(directory, ".", { max_depth = 0 })))
    tree, cut = tree_of(directory, ".", { max_entries = 3 })
    assert.same({ ".(.hidden(y) a())", "max_entries" }, { outline(tree), cut })
    tree, cut = tree_of(directory, ".", { max_entries = 11 })
    assert.same({ ".(.hidden(y) a() a.c b(A c(x) out z) pipe)" }, { outline(tree), cut })
    tree, cut = tree_of(directory, ".", { max_bytes = 200 })
    assert.same({ ".(.hidden())", "max_bytes" }, { outline(tree), cut })
    refused("not_found", directory:tree("missing"))
  end)

  it("counts a tree's bytes as JSON", function()
    in_root([[mkdir -p d && touch 'd/"q"' 'd/back\slash' "$(printf 'd/new\nline')" && ln -s '"x"' d/link]])
    local size = #json.encode((tree_of(directory, ".")))
    assert.is_nil(select(2, tree_of(directory, ".", { max_bytes = size })))
    for bound = size - 1, 0, -1 do
      local tree, cut = tree_of(directory, ".", { max_bytes = bound })
      assert.equal("max_bytes", cut)
      assert.is_true(#json.encode(tree) <= bound or #tree.children == 0)
    end
  end)

  it("repairs names that are not UTF-8", function()
    in_root("touch \"$(printf 'a\\377b')\"")
    assert.equal("a\u{FFFD}b", tree_of(directory, ".").children[1].name)
  end)

  it("goes down and up a deep tree with few descriptors", function()
    local script = assert(io.open(outside .. "/deep.py", "w"))
    script:write('import os\nfor i in range(3000):\n  os.mkdir("d"); open("e", "w").close(); os.mkdir("z"); os.chdir("d")\n')
    script:close()
    in_root("python3 ../deep.py")
    local tree, cut = tree_of(directory, ".")
    assert.equal("max_depth", cut)
    local depth = 0
    while tree.children do
      depth, tree = depth + 1, tree.children[1]
      if tree == nil then break end
    end
    assert.equal(64, depth)
    local files = assert(directory:files(5000))
    assert.equal(3000, #files)
    assert.equal("e", files[#files].path)
  end)

  it("lists files with their hashes in byte order of path", function()
    in_root("mkdir -p a b && echo 1 > a/x && echo 2 > a.c && echo 3 > .h && ln -s a.c link && mkfifo pipe")
    local files, truncated = directory:files(10)
    local paths = {}
    for i, file in ipairs(files) do paths[i] = file.path end
    assert.same({ ".h", "a.c", "a/x" }, paths)
    assert.same({ size_bytes = 2, path = "a/x", sha256 = require("native.text").sha256("1\n") }, files[3])
    assert.is_false(truncated)
    assert.same({ 2, true }, { #directory:files(2), select(2, directory:files(2)) })
    assert.same({ 3, false }, { #directory:files(3), select(2, directory:files(3)) })
  end)

  it("lists what there is no time to read without a hash, and reads small files first", function()
    in_root("truncate -s 64G a && truncate -s 2M b && echo 1 > c")
    local function hashed(seconds)
      local marks = {}
      for i, file in ipairs(assert(directory:files(10, seconds))) do marks[i] = file.sha256 ~= nil end
      return marks
    end
    assert.same({ false, false, false }, hashed(0))
    assert.same({ false, true, true }, hashed(2))
    assert.equal(64 << 30, directory:files(10, 0)[1].size_bytes)
  end)

  it("gives handles that can be closed", function()
    in_root("mkdir d")
    local entered = assert(directory:directory("d"))
    entered:close()
    entered:close()
    assert(directory:write("f", ""))
    refused("not_a_directory", directory:directory("f"))
    getmetatable(directory).__close(directory)
    assert.has_error(function() directory:read("f") end)
  end)
end)
