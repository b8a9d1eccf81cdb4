-- SPDX-License-Identifier: Apache-2.0
-- The steps read_file, write_file and list_tree.
local fail = require "sba.util.fail"
local json = require "sba.util.json"
local list_tree = require "sba.steps.list_tree"
local read_file = require "sba.steps.read_file"
local schema_check = require "sba.util.schema_check"
local scratch = require "scratch"
local text = require "native.text"
local write_file = require "sba.steps.write_file"

local here = scratch()

-- Runs a step; what it returns must be what its schema says, and no more than the bound.
local function run(step, arguments, bound)
  assert.is_nil(step.check and step.check(arguments))
  local result, more = fail.caught(step.run, arguments, {
    workspace = here.root, max_output_bytes = bound or 1 << 20,
    resolve_path = function(path) return here.root, path, "" end,
  })
  local decoded = json.decode(json.encode(result or more.result or json.null, step.result), { depth = 200 })
  if decoded == json.null then return result, more end
  assert.same({ total = 0 }, select(2, schema_check.check(decoded, step.result)))
  if result then return decoded, more end
  more.result = decoded
  return nil, more
end

describe("the step read_file", function()
  it("reads a text, some of its lines, and what follows a byte", function()
    here:put("d/a", "one\ntwo\n")
    local result, shown = run(read_file, { path = here.path .. "/d//a" })
    assert.same({
      path = "d/a", content = "one\ntwo\n", encoding = "utf-8", size_bytes = 8, truncated = false, total_lines = 2,
      sha256 = text.sha256("one\ntwo\n"),
    }, result)
    assert.equal("one\ntwo\n", shown)
    assert.equal("two\n", run(read_file, { path = "d/a", start_line = 2 }).content)
    assert.equal("", run(read_file, { path = "d/a", start_line = 9 }).content)
    assert.equal("wo\n", run(read_file, { path = "d/a", offset_bytes = 5 }).content)
  end)

  it("gives base64 of what is not UTF-8", function()
    here:put("a", "\xFF\0x")
    local result = run(read_file, { path = "a" })
    assert.same({ "base64", "/wB4", false }, { result.encoding, result.content, result.truncated })
    assert.same({ "base64", "/wA=", true }, { (function(r) return r.encoding, r.content, r.truncated end)(
      run(read_file, { path = "a", max_bytes = 2 })) })
    assert.equal("\0x", run(read_file, { path = "a", offset_bytes = 1 }).content)
  end)

  it("never splits a character of UTF-8", function()
    local content = "aé€𝄞\u{10FFFF}z"
    here:put("a", content)
    for bytes = 0, #content do
      local result = run(read_file, { path = "a", max_bytes = bytes })
      assert.equal("utf-8", result.encoding)
      assert.equal(text.cut(content, bytes), result.content)
      assert.equal(bytes < #content, result.truncated)
    end
  end)

  it("takes a broken end of the file for what it is", function()
    here:put("a", "abc\xE2\x82")
    assert.equal("base64", run(read_file, { path = "a" }).encoding)
    assert.equal("base64", run(read_file, { path = "a", max_bytes = 5 }).encoding)
    assert.equal("abc", run(read_file, { path = "a", max_bytes = 4 }).content)
    here:put("a", "abc\x82\x82\x82\x82d")
    assert.equal("base64", run(read_file, { path = "a", max_bytes = 7 }).encoding)
  end)

  it("fails past the job's bound, unless its own is tighter", function()
    here:put("a", ("x"):rep(100))
    assert(run(read_file, { path = "a" }, 100))
    local result, failure = run(read_file, { path = "a" }, 99)
    assert.is_nil(result)
    assert.same({ "constraint_violation", 99, true },
      { failure.code, #failure.result.content, failure.result.truncated })
    assert.matches("max_output_bytes", failure.message)
    assert.is_nil(run(read_file, { path = "a", max_bytes = 100 }, 99))
    assert.equal(99, #run(read_file, { path = "a", max_bytes = 99 }, 99).content)
    assert(run(read_file, { path = "a", max_bytes = 10 }, 9) == nil)
    here:put("b", ("\xFF"):rep(75))
    assert.equal(100, #run(read_file, { path = "b" }, 100).content)
    result, failure = run(read_file, { path = "b" }, 99)
    assert.same({ "constraint_violation", 96 }, { failure.code, #failure.result.content })
    assert.is_nil(result)
    assert.equal(96, #run(read_file, { path = "b", max_bytes = 99 }, 99).content)
    assert.equal("", select(2, run(read_file, { path = "b" }, 3 - 1)).result.content)
  end)

  it("refuses lines in the wrong order", function()
    assert.matches("before start_line", read_file.check { path = "a", start_line = 3, end_line = 2 })
  end)

  it("shows a model what was read of a file whose lines were not counted", function()
    local function show(content, truncated, arguments)
      return read_file.show({
        path = "f", content = content, encoding = "utf-8", size_bytes = 1 << 30, truncated = truncated,
      }, arguments, 1000)
    end
    assert.equal("f, lines 1 to 2; start_line 3 reads on\n1\tone\n2\ttwo\n", show("one\ntwo\nth", true, {}))
    assert.equal("f, lines 8 to 8\n8\tone\n", show("one\n", false, { start_line = 8, end_line = 8 }))
    assert.equal("f, lines 8 to 8\n8\tone\n", show("one\n", false, { start_line = 8 }))
    assert.equal("f has no line 9", show("", false, { start_line = 9 }))
  end)
end)

describe("the step write_file", function()
  it("writes text and bytes, appends to them, and sets a mode", function()
    local result, shown = run(write_file, { path = "./d/a", content = "hello" })
    assert.same({ path = "d/a", size_bytes = 5, sha256 = text.sha256("hello"), created = true }, result)
    assert.equal("created d/a, now 5 bytes\n", shown)
    result, shown = run(write_file, { path = "d/a", content = "/wB4", encoding = "base64", append = true })
    assert.same({ 8, false, text.sha256("hello\xFF\0x") }, { result.size_bytes, result.created, result.sha256 })
    assert.equal("wrote d/a, now 8 bytes\n", shown)
    assert.equal("hello\xFF\0x", here:content("d/a"))
    run(write_file, { path = "s", content = "", mode = "0750" })
    assert.equal(tonumber("750", 8), here.root:stat("s").mode)
  end)

  it("refuses to replace where it must not", function()
    assert.is_true(run(write_file, { path = "a", content = "1", overwrite = false }).created)
    local result, failure = run(write_file, { path = "a", content = "2", overwrite = false })
    assert.same({ nil, "already_exists" }, { result, failure.code })
    assert.equal("1", here:content("a"))
  end)

  it("refuses bad modes and bad base64 before anything runs", function()
    for _, mode in ipairs { "", "9", "0888", "4755", "1777", "00644", "0x1", "644 ", "-644", "rw-" } do
      assert.equal("mode", select(2, write_file.check { path = "a", content = "", mode = mode }), mode)
    end
    assert.matches('got "644\\n"$', write_file.check { path = "a", content = "", mode = "644\n" })
    for _, content in ipairs { "a", "ab=c", "YQ", "YQ=", "Y Q==", "YR==" } do
      assert.equal("content", select(2, write_file.check { path = "a", content = content, encoding = "base64" }),
        content)
    end
  end)
end)

describe("the step list_tree", function()
  it("lists all that is below a directory, in byte order", function()
    here:shell("mkdir -p d/e && chmod 755 . d d/e && echo hi > d/f && ln -s d/f link && chmod 640 d/f")
    local result, shown = run(list_tree, {})
    local bytes = json.encode(result, list_tree.result):gsub('("type":"directory","size_bytes":)%d+', "%10")
    assert.equal('{"name":".","type":"directory","size_bytes":0,"mode":"0755","children":[' ..
      '{"name":"d","type":"directory","size_bytes":0,"mode":"0755","children":[' ..
      '{"name":"e","type":"directory","size_bytes":0,"mode":"0755","children":[]},' ..
      '{"name":"f","type":"file","size_bytes":3,"mode":"0640"}]},' ..
      '{"name":"link","type":"symlink","size_bytes":3,"mode":"0777","target":"d/f"}],"truncated":false}',
      bytes)
    assert.equal("./\n  d/\n    e/\n    f\n  link -> d/f\n", shown)
    assert.equal("d/\n  e/\n  f\n", select(2, run(list_tree, { path = "d" })))
  end)

  it("only flags what its own limits cut", function()
    for i = 1, 9 do here:put("f" .. i, "") end
    local result, shown = run(list_tree, { max_entries = 3 })
    assert.is_true(result.truncated)
    assert.equal("./\n  f1\n  f2\n  f3\n[there is more; list a directory of it, or less deep with max_depth]\n", shown)
    assert.is_false(run(list_tree, { max_depth = 0 }).truncated)
    assert.is_false(run(list_tree, { max_entries = 9 }).truncated)
  end)

  it("lists 64 levels, and flags that there are more", function()
    here:shell("mkdir -p " .. ("d/"):rep(65))
    assert.is_true(run(list_tree, {}).truncated)
    assert.is_false(run(list_tree, { max_depth = 64 }).truncated)
  end)

  it("fails past the job's bound, with what fits", function()
    here:shell [[mkdir -p d e && touch 'd/"q"' 'd/back\slash' "$(printf 'd/new\nline')" e/f g && ln -s '"x"' d/link]]
    local whole = #json.encode(run(list_tree, {}), list_tree.result)
    assert(run(list_tree, {}, whole))
    for bound = whole - 1, 1, -1 do
      local result, failure = run(list_tree, {}, bound)
      assert.is_nil(result)
      assert.equal("constraint_violation", failure.code)
      local size = #json.encode(failure.result, list_tree.result)
      assert.is_true(size <= bound or json.encode(failure.result.children) == "[]")
    end
  end)

  it("shows the whole tree as text", function()
    for i = 1, 5000 do here:put(("%060d"):format(i), "") end -- more than the kernel tells at once
    local result, shown = run(list_tree, {})
    assert.equal(5000, #result.children)
    assert.equal(5001, select(2, shown:gsub("\n", "")))
  end)

  it("writes names on one line each, as UTF-8", function()
    here:put("a\nb", "")
    here:put("c\xffd", "")
    assert.equal("./\n  a?b\n  c\u{FFFD}d\n", select(2, run(list_tree, {})))
  end)
end)
