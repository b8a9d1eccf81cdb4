-- SPDX-License-Identifier: Apache-2.0
-- Strict JSON: what RFC 8259 has is accepted, everything else is refused at its byte.
local json = require "sba.util.json"

local taken = {
  { "null", json.null }, { "true", true }, { "false", false }, { " \t\r\n1 \n", 1 }, { '""', "" }, { "[]", {} },
  { "{}", {} }, { "0", 0 }, { "-0", 0 }, { "-1", -1 }, { "1.5", 1.5 }, { "1E3", 1000.0 }, { "1e+3", 1000.0 },
  { "1.25e-2", 0.0125 }, { "0e1", 0.0 }, { "0.0000001", 1e-7 }, { "123456789012345678", 123456789012345678 },
  { "9223372036854775807", math.maxinteger }, { "-9223372036854775808", math.mininteger }, { "1e-999", 0.0 },
  { [["\"\\\/\b\f\n\r\t"]], "\"\\/\b\f\n\r\t" }, { [["\u0000\u00e9\u20AC\uFFFF"]], "\0\u{E9}\u{20AC}\u{FFFF}" },
  { [["\ud83d\ude00\uDBFF\uDFFF"]], "\u{1F600}\u{10FFFF}" }, { [["\uD7FF\uE000"]], "\u{D7FF}\u{E000}" },
  { '"\x7F/é😀"', "\x7F/é😀" }, { [["\\u0000"]], "\\u0000" }, { [["a\\"]], "a\\" },
  { "[1,[2,[3]],{}]", { 1, { 2, { 3 } }, {} } }, { '{"":0}', { [""] = 0 } }, { '{"a":1,"A":2}', { a = 1, A = 2 } },
  { '{"a":{"a":null}}', { a = { a = json.null } } }, { '[ 1 , 2 ]', { 1, 2 } },
  { '{ "a" : [ ] , "b" : { } }', { a = {}, b = {} } }, { '"\u{FEFF}"', "\u{FEFF}" },
  { '"\\u2028\u{2029}"', "\u{2028}\u{2029}" },
}

-- Text, offset of the mistake, part of the message. More texts: JSONTestSuite, in test_validate.py.
local refused = {
  { "", 0, "the end of the text" }, { " ", 1, "the end of the text" }, { "\xEF\xBB\xBF{}", 0, "byte order mark" },
  { "\0", 0, "U+0000" }, { "1\0", 1, "the end of the text" }, { "\v1", 0 }, { "\u{A0}1", 0 },
  -- numbers
  { "+1", 0, "'+1'" }, { "01", 1 }, { "-01", 2 }, { "1.", 1 }, { ".5", 0 }, { "-", 0, "a value" }, { "1e+", 1, "'e+'" },
  { "0x10", 1 }, { "NaN", 0, "'NaN'" }, { "-Infinity", 0 }, { "1e999", 0, "too large" }, { "[-1e400]", 1, "too large" },
  { "1 2", 2 }, { "[1a]", 2 },
  -- words
  { "nul", 0 }, { "nulll", 4 }, { "True", 0 }, { "truefalse", 4 },
  -- strings
  { '"', 1, "closing" }, { "'a'", 0 }, { '"a\nb"', 2, "U+000A" }, { '"\0"', 1 }, { '"\x1F"', 1 },
  { [["\x41"]], 1, "an escape" }, { [["\"]], 3 }, { [["\u12"]], 1, "four hex digits" }, { [["\ud800"]], 1, "pairs" },
  { [["\udc00\ud800"]], 1 }, { [["ab\ud800\n"]], 3 },
  -- not UTF-8
  { '"\xFF"', 1, "0xFF is not UTF-8" }, { '"\xC0\x80"', 1 }, { '"\xED\xA0\x80"', 1 }, { '"é\xE9"', 3 },
  { "\xFF\xFE1\0", 0 },
  -- arrays and objects
  { "[", 1 }, { "[1", 2, "',' or ']'" }, { "[1,]", 3 }, { "[1}", 2 }, { "[]]", 2 }, { "{", 1, "double quotes" },
  { '{"a"', 4, "':'" }, { '{"a":', 5 }, { '{"a":1,}', 7 }, { "{a:1}", 1 }, { '{"a":1 "b":2}', 7 }, { '{"a":1}#', 7 },
  { "[1] // x", 4 }, { "/* x */ 1", 0 },
  -- a NUL, inside and at the end
  { '"a\0"', 2 }, { "tru\0", 0 }, { "1.\0", 1 }, { "[1,\0]", 3 }, { '"\\\0"', 1 }, { '{"a":1}\0', 7 },
  -- member names that are there twice
  { '{"a":1,"a":1}', 7, "twice" }, { [[{"a":1,"\u0061":1}]], 7, '"a" is there twice' }, { [[{"\/":1,"/":1}]], 8 },
  { '{"a":null,"b":1,"a":false}', 16 }, { '[{"x":{"":1,"":2}}]', 12 }, { [[{"\ud83d\ude00":1,"😀":1}]], 18 },
  { '{"\x7F":1,"\x7F":1}', 7, "\\u007f" },
}

describe("json.decode", function()
  it("takes what RFC 8259 has", function()
    for _, case in ipairs(taken) do
      local value, failure = json.decode(case[1])
      assert.is_nil(failure, case[1])
      assert.same(case[2], value, case[1])
      assert.equal(math.type(case[2]), math.type(value), case[1])
    end
  end)

  it("refuses everything else, at its byte", function()
    for _, case in ipairs(refused) do
      local value, failure = json.decode(case[1])
      assert.is_nil(value, case[1])
      assert.equal(case[2], failure.offset, case[1] .. ": " .. failure.message)
      assert.equal("invalid_json", failure.code)
      assert.is_nil(failure.message:find("%c"), case[1])
      if case[3] then assert.is_truthy(failure.message:find(case[3], 1, true), failure.message) end
    end
  end)

  it("refuses every text that is cut off", function()
    local whole = [=[{"a":[1,-2.5e3,true,null,"x\n\u0041\ud83d\ude00é",{}],"b":{"c":[[]]}}]=]
    assert.is_truthy(json.decode(whole))
    for size = 0, #whole - 1 do
      assert.is_nil((json.decode(whole:sub(1, size))))
    end
  end)

  it("keeps arrays and objects apart", function()
    local value = json.decode '{"list":[],"map":{}}'
    assert.is_true(json.is_array(value.list))
    assert.is_false(json.is_array(value.map))
    assert.is_false(json.is_array "x")
    assert.is_true(json.is_object(value.map))
    assert.is_false(json.is_object(value.list))
    assert.is_false(json.is_object "x")
    assert.equal('{"list":[],"map":{}}', json.encode(value))
  end)

  it("counts lines and characters", function()
    local _, failure = json.decode '{"é":\r\n  1,\n "ü😀" x}'
    assert.same({ 3, 7, "line 3, column 7: expected ':', found 'x'" },
      { failure.line, failure.column, failure.message })
    local function says(expected, bytes)
      assert.equal(expected, select(2, json.decode(bytes)).message:match "found (.*)")
    end
    says("'}'; JSON has no comma before it", '{"a":1,}')
    says("']'; JSON has no comma before it", "[1,]")
    says("'/'; JSON has no comments", '{"a":1 // why\n}')
    says("']'", '{"a":1]')
  end)

  it("bounds depth without recursion on the way in", function()
    local function nested(depth) return ("["):rep(depth) .. ("]"):rep(depth) end
    assert.is_truthy(json.decode(nested(64)))
    assert.is_truthy(json.decode(('{"a":'):rep(64) .. "1" .. ("}"):rep(64)))
    local _, failure = json.decode(nested(65))
    assert.same({ "too_deep", 64 }, { failure.code, failure.offset })
    for _, text in ipairs { ("["):rep(100000), ('{"a":'):rep(100000), ("[{\"a\":"):rep(100000), nested(100000) } do
      assert.equal("too_deep", select(2, json.decode(text)).code)
    end
    assert.is_truthy(json.decode(nested(65), { depth = 65 }))
    assert.is_truthy(json.decode("[" .. ("[[]],"):rep(1000) .. "1]")) -- wide is not deep
  end)

  it("bounds size", function()
    local _, failure = json.decode("[1234]", { size = 5 })
    assert.equal("too_large", failure.code)
    assert.is_truthy(json.decode("[123]", { size = 5 }))
  end)

  it("bounds the number of values, not of commas in a string", function()
    for _, parts in ipairs {
      { "[", "1,", "1]" }, { "[", "[ ],", "{\n}]" }, { "[", '"\\",[\\\\",', '""]' }, { '{"a":[', '{"b":{}},', "{}]}" },
    } do
      local first, element, last = table.unpack(parts)
      local count = element:find("b", 1, true) and 500 or 1000
      assert.is_truthy(json.decode(first .. element:rep(count - 3) .. last, { values = 1000 }))
      local _, failure = json.decode(first .. element:rep(count) .. last, { values = 1000 })
      assert.equal("too_large", failure.code)
      assert.matches("holds more than 1000 values$", failure.message)
    end
    assert.equal(1001, #json.decode('"' .. (","):rep(1001) .. '"', { values = 1000 }))
    local most = "[" .. ("1,"):rep(1000000 - 3)
    assert.is_truthy(json.decode(most .. "1]"))
    assert.matches("holds more than 1000000 values$", select(2, json.decode(most .. "1,1,1,1]")).message)
    local _, failure = json.decode_own("[" .. ("1,"):rep(8 * 1024 * 1024) .. "1]")
    assert.matches("holds more than 8388608 values$", failure.message)
  end)

  it("reads a string of 8 MiB, with and without escapes", function()
    local size = 8 * 1024 * 1024
    assert.equal(size, #json.decode('"' .. ("x"):rep(size) .. '"'))
    assert.equal(size, #json.decode('"' .. ("\\n"):rep(size) .. '"'))
  end)
end)

describe("json.encode", function()
  it("writes every kind of value", function()
    assert.equal('[true,false,null,1,1.5,"x",[],{}]',
      json.encode { true, false, json.null, 1, 1.5, "x", json.array {}, {} })
    assert.equal(require "cjson".null, json.null)
    assert.equal("[1,2]", json.encode { 1, 2 })
    assert.equal('{"a":1}', json.encode { a = 1 })
  end)

  it("escapes and repairs strings", function()
    assert.equal([["\"\\/\b\f\n\r\t\u0000\u001f]] .. "\x7Fé€😀\"", json.encode "\"\\/\b\f\n\r\t\0\x1F\x7Fé€😀")
    assert.equal('"a\u{FFFD}b\u{FFFD}"', json.encode "a\xFFb\xE2\x82")
    for length = 0, 70 do -- every place in a word and at the ends
      for at = 1, length do
        local plain = ("x"):rep(at - 1)
        local rest = ("y"):rep(length - at)
        assert.equal('"' .. plain .. '\\n' .. rest .. '"', json.encode(plain .. "\n" .. rest))
        assert.equal('"' .. plain .. '\u{FFFD}' .. rest .. '"', json.encode(plain .. "\x80" .. rest))
      end
    end
  end)

  it("writes long strings as it writes short ones", function()
    local short = "\0\1\n\"\\/\127é😀" .. "\xFF\xE2\x82 " .. ("plain "):rep(20)
    local inside = json.encode(short):sub(2, -2)
    local value = { a = short:rep(1000), b = { 1, short:rep(1000) } }
    local schema = { order = { "a", "b" }, properties = { b = { items = {} } } }
    local wanted = ('{"a":"%s","b":[1,"%s"]}'):format(inside:rep(1000), inside:rep(1000))
    assert.equal(wanted, json.encode(value, schema))
    assert.equal(wanted, json.encode(value))
    assert.equal('"' .. inside:rep(1000) .. '"', json.encode(short:rep(1000)))
  end)

  it("keeps numbers", function()
    assert.equal("[9223372036854775807,-9223372036854775808,0]", json.encode { math.maxinteger, math.mininteger, 0 })
    assert.equal("[0.1,1.0,-0.0,1e+17,5e-324,1234567890123456.0]",
      json.encode { 0.1, 1.0, -0.0, 1e17, 5e-324, 1234567890123456.0 })
    math.randomseed(1)
    for _ = 1, 2000 do
      local value = string.unpack("d", string.pack("i8", math.random(math.mininteger, math.maxinteger)))
      if value == value and math.abs(value) ~= math.huge then
        assert.equal(value, tonumber(json.encode(value)))
        assert.equal("float", math.type(tonumber(json.encode(value))))
      end
    end
  end)

  it("finds the end and every escape of a string wherever it is", function()
    for before = 0, 20 do
      for after = 0, 10 do
        local left, right = ("\u{E4}"):rep(before // 2) .. ("x"):rep(before % 2), (" "):rep(after)
        assert.same({ left, right }, json.decode(('["%s","%s"]'):format(left, right)))
        for escape, character in pairs { ['\\"'] = '"', ["\\\\"] = "\\", ["\\n"] = "\n", ["\\u0000"] = "\0" } do
          assert.equal(left .. character .. right, json.decode('"' .. left .. escape .. right .. '"'))
        end
        for _, bad in ipairs { "\0", "\n", "\31", "\\x" } do
          local value, failure = json.decode('"' .. left .. bad .. right .. '"')
          assert.is_nil(value)
          assert.equal(1 + #left, failure.offset)
        end
      end
    end
  end)

  it("orders keys: order, required, then by bytes", function()
    local schema = {
      order = { "z", "b" }, required = { "b", "m" },
      properties = { z = { items = { order = { "y" } } }, q = { order = { "second", "first" } } },
    }
    assert.equal('{"z":[{"y":1,"x":2}],"b":0,"m":0,"A":0,"a":0,"q":{"second":2,"first":1}}', json.encode({
      a = 0, A = 0, b = 0, m = 0, q = { first = 1, second = 2 }, z = { { x = 2, y = 1 } },
    }, schema))
    assert.equal('{"a":0,"aa":0,"b":0}', json.encode { b = 0, aa = 0, a = 0 })
  end)

  it("orders any number of names, and those after them by bytes", function()
    local order, object, wanted = {}, { zero = 0 }, {}
    for i = 1, 70 do
      order[i] = ("n%02d"):format(100 - i)
      object[order[i]] = -i
    end
    for i = 1, 70 do wanted[i] = ('"%s":-%d'):format(order[i], i) end
    assert.equal("{" .. table.concat(wanted, ",") .. ',"zero":0}', json.encode(object, { order = order }))
  end)

  it("adds members to an object that is not closed", function()
    local schema = { order = { "z" } }
    assert.equal('{"a":1,"z":[2],"b":"\\""}', json.continue('{"a":1', { b = '"', z = { 2 } }, schema))
    assert.equal('{"a":1}', json.continue('{"a":1', {}, schema))
    for _, bad in ipairs { { [1.5] = 2 }, json.array { 1 } } do
      assert.has_error(function() json.continue('{"a":1', bad, schema) end)
    end
    assert.equal('{"b":2}', json.encode { b = 2 })
  end)

  it("follows a schema that holds itself", function()
    local entry = { order = { "name", "children" }, properties = {} }
    entry.properties.children = { items = entry }
    assert.equal('{"name":"a","children":[{"name":"b","children":[]}]}',
      json.encode({ children = { { children = json.array {}, name = "b" } }, name = "a" }, entry))
  end)

  -- Encoding allocates, so the collector may run a finalizer in the middle of it.
  it("is not disturbed by what a finalizer encodes", function()
    local finalizer = { __gc = function() json.encode { "a finalizer" } end }
    local value, expected, pause = {}, {}, collectgarbage("setpause", 0)
    for i = 1, 2000 do value[i], expected[i] = { name = i }, ('{"name":%d}'):format(i) end
    expected = "[" .. table.concat(expected, ",") .. "]"
    collectgarbage() -- so that the cycles that follow are short
    for _ = 1, 20 do
      for _ = 1, 20 do setmetatable({}, finalizer) end
      assert.equal(expected, json.encode(value))
    end
    collectgarbage("setpause", pause)
    collectgarbage()
  end)

  it("raises for what JSON cannot hold", function()
    local deep, cyclic = {}, {}
    for _ = 1, 200 do deep = { deep } end
    cyclic.self = cyclic
    for _, bad in ipairs { 0 / 0, math.huge, -math.huge, print, io.stdout, { [1.5] = 1 }, { a = 1, [2] = 2 },
      { 1, nil, 3 },
      { 1, a = 2 }, json.array { a = 1 }, deep, cyclic, { a = { b = print } } } do
      assert.has_error(function() json.encode(bad) end)
    end
    assert.has_error(function() json.encode() end)
  end)
end)

describe("numbers of any length", function()
  it("come back as they were written", function()
    local digits = ("1"):rep(200)
    for _, number in ipairs { "18446744073709551615", "9223372036854775808", "-9223372036854775809",
      "0.123456789012345678901", digits,
      "1234567890123456789e-5", "100000000000000000001" } do
      assert.equal("long number", json.kind(json.decode(number)), number)
      assert.equal('{"a":[' .. number .. "]}", json.encode(json.decode('{"a":[ ' .. number .. "]}")))
    end
    assert.is_false(json.is_object(json.decode(digits)))
    assert.is_false(json.is_array(json.decode(digits)))
  end)

  it("are floats where a double holds their digits", function()
    assert.equal(0.1, json.decode("0.1" .. ("0"):rep(100000)))
    assert.equal(0.1, json.decode("0." .. "1" .. ("0"):rep(10)))
    assert.equal(1e20, json.decode "100000000000000000000")
    assert.equal(1e-80, json.decode("0." .. ("0"):rep(79) .. "1"))
    assert.equal(0.12345678901234567, json.decode "0.12345678901234567")
  end)

  it("are refused where they are too large for a double", function()
    assert.equal("line 1, column 1: the number " .. ("1"):rep(40) .. " is too large",
      select(2, json.decode(("1"):rep(400))).message)
  end)

  it("are integers up to 64 bits", function()
    for _, number in ipairs { "999999999999999999", "-99999999999999999", "1000000000000000000",
      "-9223372036854775808" } do
      assert.equal("integer", math.type(json.decode(number)))
      assert.equal(number, json.encode(json.decode(number)))
    end
  end)
end)
