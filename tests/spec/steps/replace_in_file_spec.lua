-- SPDX-License-Identifier: Apache-2.0
-- The step replace_in_file: which places fit, what is tolerated, and what a miss says.
local fail = require "sba.util.fail"
local json = require "sba.util.json"
local replace_in_file = require "sba.steps.replace_in_file"
local schema_check = require "sba.util.schema_check"
local scratch = require "scratch"
local secret = require "native.secret"
local text = require "native.text"

local here = scratch()

local function resolve_path(given) return here.root, given, "" end

local function run(path, old, new, count, agent)
  local arguments = { path = path, old_text = old, new_text = new, expected_count = count or 1 }
  assert.is_nil(replace_in_file.check(arguments))
  local result, more = fail.caught(replace_in_file.run, arguments, { resolve_path = resolve_path, agent = agent })
  if result then
    local encoded = json.decode(json.encode(result, replace_in_file.result))
    assert.same({ total = 0 }, select(2, schema_check.check(encoded, replace_in_file.result)))
  end
  return result, more
end

--- What becomes of a file, and what was tolerated; or the failure.
local function edit(before, old, new, count)
  here:put("a", before)
  local result, more = run("a", old, new, count)
  if not result then
    assert.equal(before, here:content("a"))
    return nil, more
  end
  assert.equal(text.sha256(here:content("a")), result.sha256)
  return here:content("a"), table.concat(result.tolerated, " ")
end

local function assert_edit(after, tolerated, ...)
  local got, names = edit(...)
  assert.same({ after, tolerated }, { got, type(names) == "table" and names.message or names })
end

local function assert_refused(code, pattern, ...)
  local got, failure = edit(...)
  assert.is_nil(got)
  assert.equal(code, failure.code)
  assert.matches(pattern, failure.message)
  return failure
end

describe("the step replace_in_file", function()
  it("replaces the one place, and keeps the mode", function()
    here.root:write("d/a", "one\ntwo\nthree\n", { mode = tonumber("750", 8) })
    local result, shown = run("d/a", "two", "2")
    assert.same({ path = "d/a", count = 1, created = false, tolerated = {}, sha256 = text.sha256("one\n2\nthree\n") },
      result)
    assert.equal("replaced once in d/a\n", shown)
    assert.equal("one\n2\nthree\n", here:content("d/a"))
    assert.equal(tonumber("750", 8), here.root:stat("d/a").mode & 511)
  end)

  it("takes the ends of lines with them where a model makes whole lines nothing", function()
    local function without(old, before, count, agent)
      here:put("a", before)
      local result = assert(run("a", old, "", count, agent ~= false or nil))
      return here:content("a"), result.tolerated[1]
    end
    assert.same({ "a\nc\n", "final_newline" }, { without("b=1", "a\nb=1\nc\n") })
    assert.same({ "c\r\n", "final_newline" }, { without("a\r\nb", "a\r\nb\r\nc\r\n") })
    assert.same({ "b\nc", "final_newline" }, { without("a", "a\nb\na\nc", 2) })
    assert.same({ "\nb\n" }, { without("a", "a\nb\n", 1, false) })
    assert.same({ "=1\nc\n" }, { without("b", "b=1\nc\n") })
    assert.same({ "a=\n" }, { without("b", "a=b\n") })
    assert.same({ "a\n" }, { without("b", "a\nb") })
    assert.same({ "\n \n" }, { without("a", "a\n a\n", 2) }) -- one of them is no whole line
  end)

  it("shows a model the lines that are there now, with one around them", function()
    local long <const> = ("x\n"):rep(20)
    for _, case in ipairs {
      { "one\ntwo\nthree\nfour\n", "two", "2", "1\tone\n2\t2\n3\tthree\n" },
      { "one\nDEBUG=1\nthree\nfour\n", "DEBUG", "", "1\tone\n2\t=1\n3\tthree\n" },
      { "one\ntwo\nthree\nfour\n", "two\n", "", "1\tone\n2\tthree\n" },
      { "one\ntwo\n", "one\ntwo\n", "", "" }, { "a\na\na\n", "a\na\na\n", "a\na\n", "2\ta\n" },
      { "a:\nb\n\nc\n", "a:\n", "a:\nb\n\n", "3\t\n4\tb\n5\t\n6\tc\n" }, -- what was there stands there twice
      { "last", "st", "p", "1\tlap\n" }, { "\xFFa\n", "a", "b", "1\t\u{FFFD}b\n" },
      { "one\n", "one\n", long, ("1\tx\n2\tx\n3\tx\n4\tx\n5\tx\n6\tx\n7\tx\n8\tx\n9\tx\n10\tx\n11\tx\n12\tx\n") },
    } do
      here:put("a", case[1])
      local _, shown = run("a", case[2], case[3], 1, true)
      assert.equal("replaced once in a" .. (case[4] ~= "" and "; now:" or "") .. "\n" .. case[4], shown)
    end
  end)

  it("shows a model no part of a secret where it cuts a line", function()
    secret.add "a-token-of-the-gateway"
    here:put("a", "one\n" .. ("x"):rep(190) .. "a-token-of-the-gateway\n")
    local _, shown = run("a", "one", "1", 1, true)
    assert.is_nil(shown:find "token")
  end)

  it("replaces exactly so many places", function()
    assert_edit("b b b", "", "a a a", "a", "b", 3)
    assert_edit("", "", "whole\nfile", "whole\nfile", "")
    assert_edit("\0b\xFF\n", "", "\0a\xFF\n", "a", "b")
    assert_refused("text_not_found", "once %(line 2%); expected_count is 2: give expected_count 1",
      "x\na\n", "a", "b", 2)
    assert_refused("text_ambiguous", "3 times %(lines 1, 2, 3%); expected_count is 1", "a\na\na\n", "a\n", "b\n")
    assert_refused("text_ambiguous", "10000 times %(lines 1, 2, .* and 9980 more%)", ("a\n"):rep(10000), "a", "b")
    assert_refused("text_ambiguous", "places of old_text in a overlap each other %(line 1%): add", "aaa", "aa", "b")
    assert_refused("text_ambiguous", "overlap each other %(line 1%): add", "aaaa", "aa", "b", 2)
  end)

  it("creates a file, and refuses an empty old text elsewhere", function()
    assert.is_true(run("new/file", "", "x\n").created)
    assert.equal("x\n", here:content("new/file"))
    assert_edit("x", "", "", "", "x")
    assert_refused("already_exists", "old_text is empty", "y", "", "x")
    assert.equal("not_found", select(2, run("none", "a", "b")).code)
    assert.equal("path_escape", select(2, run("../x", "", "b")).code)
    assert.equal("new_text", select(2, replace_in_file.check { old_text = "a", new_text = "a" }))
    assert.equal("expected_count",
      select(2, replace_in_file.check { old_text = "", new_text = "a", expected_count = 2 }))
  end)

  it("writes through a link", function()
    here:put("d/a", "one\n")
    here:shell "ln -s a d/link"
    assert.equal("d/link", run("d/link", "one", "two").path)
    assert.equal("two\n", here:content("d/a"))
    assert.equal("symlink", here.root:stat("d/link").type)
  end)

  it("tolerates blanks and line ends, and writes those of the file", function()
    assert_edit("x\n", "trailing_blanks", "foo  \nbar\n", "foo\nbar", "x")
    assert_edit("x\n", "trailing_blanks", "foo\nbar\n", "foo \nbar \t", "x")
    assert_edit("x\r\ny\r\nc\r\n", "line_ends", "a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n")
    assert_edit("a\r\nx\r\ny\r\n", "line_ends", "a\r\nb\r\n", "b", "x\ny")
    assert_edit("a\nx\ny\r\n", "", "a\nb\r\n", "b", "x\ny") -- not throughout
    assert_edit("x\nc\n", "line_ends", "a\nb\nc\n", "a\r\nb\r\n", "x\r\n")
    assert_edit("a\nx", "final_newline", "a\nlast", "last\n", "x\n")
  end)

  it("tolerates indentation that is shifted as a whole", function()
    assert_edit("  if q:\n    r()\n\nz\n", "indentation", "  if x:\n    y()\nz\n", "if x:\n  y()\n", "if q:\n  r()\n\n")
    assert_edit("  q\n", "indentation", "  if x:\n    y()\n", "    if x:\n      y()", "    q")
    assert_refused("text_not_found", "with other indentation", "  if x:\n    y()\n", "    if x:\n      y()", " q")
    assert_refused("text_not_found", "line 1 is", "  if x:\n    y()\n", "if x:\n   y()\n", "q") -- not as a whole
  end)

  it("takes blanks for tabs, as many for each", function()
    local go <const> = "func f() {\n\tif x {\n\t\ty()\n\t}\n}\n"
    assert_edit("func f() {\n\tif z {\n\n\t\t\tq()\n\t}\n}\n", "indentation", go, "    if x {\n        y()\n    }\n",
      "    if z {\n\n            q()\n    }\n")
    assert_edit("func f() {\n\tz()\n}\n", "indentation", go, "func f() {\n  if x {\n    y()\n  }\n}",
      "func f() {\n\tz()\n}")
    assert_edit("all:\n\tld\n", "indentation", "all:\n\tcc\n", "all:\n        cc\n", "all:\n        ld\n")
    local old <const> = "    if x {\n        y()\n"
    assert_refused("text_not_found", "with other indentation, which the new ones cannot get", go, old,
      "    if x {\n      y()\n")
    assert_refused("text_not_found", "with other indentation", go, old, "    if x {\n    \ty()\n")
    assert_refused("text_not_found", "line 2 is", go, "    if x {\n      y()\n", "z") -- not as many for each
    assert_refused("text_not_found", "line 2 is", "a\n\tb\n\t\tc\n", "b\nc\n", "z")
  end)

  it("takes no place where two fit", function()
    assert_refused("text_ambiguous", "but for blanks or indentation, at lines 1 and 3",
      "  if x:\n    y()\n  if x:\n    y()\n", "    if x:\n      y()", "q")
    assert_refused("text_ambiguous", "but for blanks or indentation, at lines 1 and 3", "a \nb\na\t\nb\n", "a\nb", "q")
  end)

  it("names what a reader cannot see", function()
    for old, case in pairs {
      ["a task list"] = { "a\u{A0}task list", "U+00A0 where old_text has U+0020" },
      ["x y"] = { "x\u{3000}y", "U+3000 where old_text has U+0020" },
      ["no-break"] = { "no\u{AD}-break", "U+00AD where old_text has U+002D" },
      ["caf\u{E9}"] = { "cafe\u{301}", "U+0065 U+0301 where old_text has U+00E9" },
      ["cafe\u{301} noir"] = { "caf\u{E9} noir", "U+00E9 where old_text has U+0065 U+0301" },
      ["say 'x' now"] = { "say \u{2019}x\u{2019} now", "U+2019 where old_text has U+0027" },
      ["\u{FEFF}begin here"] = { "begin here", "U+0062 where old_text has U+FEFF" },
      ["tab here"] = { "tab\tthere", "U+0009 where old_text has U+0020" },
    } do
      local failure = select(2, edit(case[1] .. "\n", old, "q"))
      assert.equal("text_not_found", failure.code)
      assert.matches("the file has " .. case[2], failure.message, 1, true)
    end
  end)

  it("leaves a byte order mark where it is", function()
    assert_edit("\u{FEFF}A\nb\n", "", "\u{FEFF}a\nb\n", "a\nb", "A\nb")
    assert_edit("\u{FEFF}  A\n  b\n", "indentation", "\u{FEFF}  a\n  b\n", "a\nb\n", "A\nb\n") -- as a hunk of a diff
  end)

  it("names the nearest lines of a miss, and what differs", function()
    local failure = assert_refused("text_not_found", 'line 2 is "  return 3;" where old_text has "  return 4;"',
      "int main() {\n  return 3;\n}\n", "int main() {\n  return 4;\n}\n", "x")
    assert.equal("     1  int main() {\n     2    return 3;\n     3  }\n", failure.text)
    failure = assert_refused("text_not_found", "no line of it resembles old_text: these are its lines", "int main;\n",
      "other words", "x")
    assert.equal("     1  int main;\n", failure.text)
    failure = assert_refused("text_not_found", "no line of it resembles old_text: read the file",
      ("int main;\n"):rep(300), "other words", "x")
    assert.is_nil(failure.text)
    assert_refused("text_not_found", 'line 1 is "int main;" where old_text has "INT Main;"', "int main;\n",
      "INT Main;", "x")
    assert_refused("text_not_found", "; new_text is already there %(line 2%)", "a\nhello\n", "helo", "hello")
    for _, case in ipairs {
      { "six = 6\n", "x" }, { "load_data2()\n", "load_data" }, { "say hello\n", "hello" },
      { "hello\nhello\n", "hello" }, { "fi\n", "fi" },
    } do
      local _, other = edit(case[1], "nonesuch", case[2])
      assert.not_matches("already there", other.message)
      if case[2] ~= "hello" then assert.not_matches("already", other.message) end
    end
    assert_refused("text_not_found", "it has new_text already %(lines 1, 2%)", "load_data\nx(load_data)\n",
      "get_data", "load_data")
    assert_refused("text_not_found", "new_text is already there %(line 1%); of what resembles it line 1 is",
      "int x = 2;\n", "int x = 1;", "int x = 2;")
    assert_refused("text_not_found", "the file ends before line 2", "a b\n", "a b\nc\n", "x")
  end)

  it("shows a model that gives one text as both what the file holds, and refuses it in a job", function()
    local same <const> = { path = "a", old_text = "b", new_text = "b", expected_count = 1 }
    assert.same({ "new_text is the same as old_text: nothing would change", "new_text" },
      { replace_in_file.check(same) })
    assert.is_nil(replace_in_file.check(same, true))
    local function failure_of(bytes)
      here:put("a", bytes)
      return select(2, fail.caught(replace_in_file.run, same, { resolve_path = resolve_path, agent = true }))
    end
    local failure = failure_of "a\nb\nb\n"
    assert.equal("text_unchanged", failure.code)
    assert.equal("     1  a\n     2  b\n     3  b\n", failure.text)
    assert.equal(" 10000  b\n", failure_of(("a\n"):rep(9999) .. "b\n").text)
    assert.equal("text_not_found", failure_of("c\n").code)
    assert.equal("text_not_found", failure_of(" B\n").code)
  end)

  it("takes the whole file, and a text that is there 10,000 times", function()
    local many = ("same\n"):rep(10000)
    here:put("many", many)
    assert.equal(10000, assert(run("many", "same", "other", 10000)).count)
    assert.equal(("other\n"):rep(10000), here:content("many"))
    assert.equal(1, assert(run("many", ("other\n"):rep(10000), "")).count)
    assert.equal("", here:content("many"))
    assert.is_true(assert(run("many", "", "again")).count == 1)
    assert.equal("again", here:content("many"))
  end)

  it("never holds much more than the file in memory", function()
    local long = ("y"):rep(1 << 20)
    assert_edit(long:rep(50), "", ("x"):rep(50), "x", long, 50)
    assert_refused("too_large", "more than 64 MiB", ("x\n"):rep(100), "x\n", long, 100)
  end)

  it("takes linear time", function()
    local long = ("a"):rep(1 << 20)
    assert_refused("text_not_found", "no line", long, long:sub(1, 1 << 19) .. "b", "x")
    assert_refused("text_not_found", "no line", (" "):rep(1 << 20), "  x", "x")
    assert_edit("x\n" .. long .. "\n", "indentation", ("\t"):rep(1 << 19) .. "x\n" .. long .. "\n",
      (" "):rep(1 << 20) .. "x\n", "x\n")
  end)
end)
