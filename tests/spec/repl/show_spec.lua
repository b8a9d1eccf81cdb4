-- SPDX-License-Identifier: Apache-2.0
local file = require "native.file"
local json = require "sba.util.json"
local show = require "sba.repl.show"

describe("a value at the prompt", function()
  local function shows(expected, value, columns)
    assert.equal(expected, show.values({ value, n = 1 }, columns or 80))
  end

  it("is shown as Lua would write it", function()
    shows("nil", nil)
    shows("42", 42)
    shows("1.0", 1.0)
    shows("inf", math.huge)
    shows([["a\"b\\c\n"]], 'a"b\\c\n')
    shows('{ 1, 2, [true] = 1.5, a = "x", ["b c"] = {} }', { 1, 2, a = "x", ["b c"] = {}, [true] = 1.5 })
    shows("{ 1, [3] = 3 }", setmetatable({ 1, [3] = 3 }, {}))
  end)

  it("is shown as it is where it is a text of several lines", function()
    shows("a\n\"b\" \\x1b", "a\n\"b\" \27")
  end)

  it("tells JSON's arrays and null", function()
    shows('["a", null, []]', json.array { "a", json.null, json.array {} })
    shows("{}", {})
  end)

  it("is spread over lines where one is too short", function()
    shows('{\n  list = { 1, 2 },\n  name = "abcdefgh"\n}', { name = "abcdefgh", list = { 1, 2 } }, 22)
  end)

  it("ends, whatever is in it", function()
    local circle = { name = "c" }
    circle.self = circle
    shows('{ name = "c", self = <the same again> }', circle)
    local deep = {}
    for _ = 1, 1000 do deep = { deep } end
    shows("{ { { { { { { { {...} } } } } } } } }", deep)
    local long = {}
    for i = 1, 100000 do long[i] = i end
    assert.truthy(show.values({ long, n = 1 }, 80):find("... 99500 more", 1, true))
    local wide = {}
    for i = 1, 200 do
      wide[i] = {}
      for j = 1, 200 do wide[i][j] = { j } end
    end
    assert.is_true(#show.values({ wide, n = 1 }, 80) < 100000)
    assert.equal('"' .. ("x"):rep(4096) .. '" ... 904 bytes more', show.values({ ("x"):rep(5000), n = 1 }, 80))
  end)

  it("does nothing to a terminal", function()
    shows('"\\x1b[2J\\x07\u{fffd}\\u{202e}é日"', "\27[2J\7\xff\u{202e}é日")
    shows("<a\\x1b>", setmetatable({}, { __tostring = function() return "a\27" end }))
  end)

  it("runs nothing of it but __tostring, whose failure is none", function()
    local ran = false
    local function run() ran = true end
    shows("{ a = 1 }", setmetatable({ a = 1 }, { __index = run, __len = run, __pairs = run, __name = 1 }))
    assert.is_false(ran)
    shows("<its __tostring fails>", setmetatable({}, { __tostring = error }))
  end)

  it("has Lua's name where it is neither text nor a table", function()
    for kind, value in pairs {
      ["function"] = print, thread = coroutine.create(print), ["native.file.log"] = (file.memory()),
    } do
      assert.truthy(show.values({ value, n = 1 }, 80):find("^<" .. kind .. ": 0x%x+>$"))
    end
  end)

  it("stands beside others on one line where they fit", function()
    assert.equal('1, nil, "a"', show.values(table.pack(1, nil, "a"), 80))
    assert.equal('"aaaa"\n"bbbb"', show.values(table.pack("aaaa", "bbbb"), 10))
  end)
end)
