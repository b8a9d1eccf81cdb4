-- SPDX-License-Identifier: Apache-2.0
local json = require "native.json"
local cjson = require "cjson"

local function array(list) return setmetatable(list, json.array_metatable) end

describe("native.json.encode", function()
  it("writes every kind of value", function()
    assert.are.equal('[true,false,null,1,1.5,"x",[],{}]', json.encode { true, false, json.null, 1, 1.5, "x", array {}, {} })
    assert.are.equal(cjson.null, json.null)
    assert.are.equal("[1,2]", json.encode { 1, 2 })
    assert.are.equal('{"a":1}', json.encode { a = 1 })
  end)

  it("escapes and repairs strings", function()
    assert.are.equal([["\"\\/\b\f\n\r\t\u0000\u001f]] .. "\x7Fé€😀\"", json.encode "\"\\/\b\f\n\r\t\0\x1F\x7Fé€😀")
    assert.are.equal('"a\u{FFFD}b\u{FFFD}"', json.encode "a\xFFb\xE2\x82")
    for length = 0, 70 do -- every place in a word and at the ends
      for at = 1, length do
        local plain = ("x"):rep(at - 1)
        local rest = ("y"):rep(length - at)
        assert.are.equal('"' .. plain .. '\\n' .. rest .. '"', json.encode(plain .. "\n" .. rest))
        assert.are.equal('"' .. plain .. '\u{FFFD}' .. rest .. '"', json.encode(plain .. "\x80" .. rest))
      end
    end
  end)

  it("keeps numbers", function()
    assert.are.equal("[9223372036854775807,-9223372036854775808,0]", json.encode { math.maxinteger, math.mininteger, 0 })
    assert.are.equal("[0.1,1.0,-0.0,1e+17,5e-324,1234567890123456.0]", json.encode { 0.1, 1.0, -0.0, 1e17, 5e-324, 1234567890123456.0 })
    math.randomseed(1)
    for _ = 1, 2000 do
      local value = string.unpack("d", string.pack("i8", math.random(math.mininteger, math.maxinteger)))
      if value == value and math.abs(value) ~= math.huge then
        assert.are.equal(value, tonumber(json.encode(value)))
        assert.are.equal("float", math.type(tonumber(json.encode(value))))
      end
    end
  end)

  it("orders keys: order, required, then by bytes", function()
    local schema = {
      order = { "z", "b" }, required = { "b", "m" },
      properties = { z = { items = { order = { "y" } } }, q = { order = { "second", "first" } } },
    }
    assert.are.equal('{"z":[{"y":1,"x":2}],"b":0,"m":0,"A":0,"a":0,"q":{"second":2,"first":1}}', json.encode({
      a = 0, A = 0, b = 0, m = 0, q = { first = 1, second = 2 }, z = { { x = 2, y = 1 } },
    }, schema))
    assert.are.equal('{"a":0,"aa":0,"b":0}', json.encode { b = 0, aa = 0, a = 0 })
  end)

  it("follows a schema that holds itself", function()
    local entry = { order = { "name", "children" }, properties = {} }
    entry.properties.children = { items = entry }
    assert.are.equal('{"name":"a","children":[{"name":"b","children":[]}]}',
      json.encode({ children = { { children = array {}, name = "b" } }, name = "a" }, entry))
  end)

  it("raises for what JSON cannot hold", function()
    local deep, cyclic = {}, {}
    for _ = 1, 200 do deep = { deep } end
    cyclic.self = cyclic
    for _, bad in ipairs { 0 / 0, math.huge, -math.huge, print, io.stdout, { [1.5] = 1 }, { a = 1, [2] = 2 }, { 1, nil, 3 },
      { 1, a = 2 }, array { a = 1 }, deep, cyclic, { a = { b = print } } } do
      assert.has_error(function() json.encode(bad) end)
    end
    assert.has_error(function() json.encode() end)
    assert.has_error(function() json.encode({}, "schema") end)
  end)
end)

describe("native.json.decode", function()
  it("says where and what", function()
    assert.are.same({ nil, { offset = 3, expected = "a value" } }, { json.decode("[1,]", 8) })
    assert.are.same({ nil, { offset = 1, message = "nested deeper than 1 levels", code = "too_deep" } }, { json.decode("[[]]", 1) })
    assert.are.same({ nil, { offset = 0, expected = "a value" } }, { json.decode("", 0) })
    assert.are.equal(false, json.decode("false", 0))
  end)

  it("stops at a NUL, inside and at the end", function()
    for text, offset in pairs { ['"a\0"'] = 2, ["1\0"] = 1, ["tru\0"] = 0, ["1.\0"] = 1, ["1e\0"] = 1, ["[1,\0]"] = 3, ['"\\\0"'] = 1 } do
      assert.are.equal(offset, select(2, json.decode(text, 8)).offset, text)
    end
  end)

  it("reads numbers of any length", function()
    local digits = ("1"):rep(400)
    assert.are.equal("the number " .. ("1"):rep(40) .. " is too large", select(2, json.decode(digits, 1)).message)
    assert.are.equal(0.1, json.decode("0.1" .. ("0"):rep(100000), 1))
    for _, text in ipairs { "999999999999999999", "-99999999999999999", "1000000000000000000", "-9223372036854775808" } do
      assert.are.equal("integer", math.type(json.decode(text, 1)))
      assert.are.equal(text, json.encode(json.decode(text, 1)))
    end
  end)

  it("raises for misuse", function()
    assert.has_error(function() json.decode({}, 1) end)
    assert.has_error(function() json.decode("1") end)
    assert.has_error(function() json.decode("1", 201) end)
    assert.has_error(function() json.decode("1", -1) end)
  end)
end)
