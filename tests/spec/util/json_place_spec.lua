-- SPDX-License-Identifier: Apache-2.0
local json = require "sba.util.json"
local json_place = require "sba.util.json_place"

describe("a place in a JSON text", function()
  local function place(text, pointer)
    assert(json.decode(text))
    local line, column = json_place.of(text):place(pointer)
    return line .. ":" .. column
  end

  it("is that of a member's name or of an element", function()
    local text = '{"a": [1, "]}\\"", {"é": 1, "x/y~z": [[], {}]}],\n  "b": null}'
    for pointer, expected in pairs {
      [""] = "1:1", ["/a"] = "1:2", ["/a/0"] = "1:8", ["/a/1"] = "1:11", ["/a/2"] = "1:19", ["/a/2/é"] = "1:20",
      ["/a/2/x~1y~0z"] = "1:28", ["/a/2/x~1y~0z/1"] = "1:42", ["/b"] = "2:3",
    } do
      assert.equal(expected, place(text, pointer), pointer)
    end
  end)

  it("is that of what should hold it, if it is not there", function()
    local places <const> = { ["/a/5"] = "1:2", ["/a/x"] = "1:2", ["/b"] = "1:1", ["/a/0/b"] = "1:7", ["/~"] = "1:1" }
    for pointer, expected in pairs(places) do
      assert.equal(expected, place('{"a":[1]}', pointer), pointer)
    end
  end)

  it("is found by escaped names", function()
    assert.equal("2:1", place('{\n"\\u0061": 1}', "/a"))
  end)

  it("is found at every depth that JSON may have", function()
    local text = ('{"a":['):rep(32) .. ("]}"):rep(32)
    assert.equal("1:" .. 31 * 6 + 2, place(text, ("/a/0"):rep(31) .. "/a"))
    assert.is_nil(json_place.of(text):text(("/a/0"):rep(32)))
  end)

  it("holds a value as it is written", function()
    local text = ' { "b" : {"x":[1, {"y" :"]}\\"," } ,2.50e1 , [ ] ]} ,"a":"t\\"\\\\", "n":null,"e":{} }'
    assert.is_nil(select(2, json.decode(text)))
    for wanted, pointer in pairs {
      ['{"y" :"]}\\"," }'] = "/b/x/1", ["2.50e1"] = "/b/x/2", ["[ ]"] = "/b/x/3", ['"t\\"\\\\"'] = "/a",
      null = "/n", ["{}"] = "/e", ["1"] = "/b/x/0",
    } do
      assert.equal(wanted, json_place.of(text):text(pointer))
    end
    for _, pointer in ipairs { "/z", "/0", "/b/x/9", "/a/b", "/n/0", "/e/a", "/b/x/0/c" } do
      assert.is_nil(json_place.of(text):text(pointer))
    end
  end)

  it("is found in what a server wrote, names that are no JSON included", function()
    local texts = { '{"a\xFF":1,"b":[2]}', [[{"\ud800":1,"b":[2]}]], '{"b":NaN,"b":[2]}', [[{"\x":3,"b":[2]}]] }
    for _, text in ipairs(texts) do assert.equal("[2]", json_place.of(text):text "/b") end
    assert.equal("1", json_place.of(texts[1]):text "/a\u{FFFD}")
  end)

  it("takes time in proportion to the text", function()
    local long = json.encode { content = ("\n\"{"):rep(1000000), path = "p" }
    assert.equal('"p"', json_place.of(long):text "/path")
  end)

  it("is found as fast if there are many of them", function()
    local names, after = {}, {}
    for i = 1, 20000 do names[i], after[i] = ('"a%d":%d,\n'):format(i, i), "/a" .. i end
    local places = json_place.of("{" .. table.concat(names) .. '"é":{' .. ("\n"):rep(1000000) .. "}}")
    for i, pointer in ipairs(after) do assert.same({ i, i == 1 and 2 or 1 }, { places:place(pointer) }) end
    assert.same({ 20001, 1 }, { places:place "/é/x" })
    assert.same({ 7, 1 }, { places:place "/a7" })
  end)

  it("is found in an array from wherever the last one was", function()
    local text = "[" .. ("0,"):rep(100000) .. "0]"
    local places = json_place.of(text)
    for _, index in ipairs { 100000, 5, 6, 99999, 0 } do
      local _, column = places:place("/" .. index)
      assert.equal(2 * index + 2, column)
    end
    assert.same({ 1, 1 }, { places:place "/100001" })
  end)
end)
