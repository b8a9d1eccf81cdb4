-- SPDX-License-Identifier: Apache-2.0
local file = require "native.file"
local json = require "sba.util.json"
local json_file = require "sba.util.json_file"

local LONG <const> = 100000

local function holding(...)
  local log = assert(file.memory())
  log:append({ ... }, true)
  return log
end

describe("JSON of a file", function()
  it("is what the reader of JSON takes, and nothing else", function()
    for _, text in ipairs {
      "{}", "[]", "0", "-0", "1.5e+3", "1E9", '""', "true", "false", '{"a":{"b":[1,{"c":null}]}}',
      '"\\u00e9\\n\\"\\\\"', '"é€😀"', ' \n\t\r{ "a" : [ 1 , 2 ] } ', "01", "1.", "-", "+1", "1e", ".5", "tru", "nulL",
      "{", "[", "}", "[1,]", '{"a":1,}', "{a:1}", '{"a"}', '{"a":}', '{"a" 1}', "[1 2]", '"\\x"', '"\\u12g4"', '"',
      '"\1"', '"\x80"', '"\xc0\x80"', '"\xed\xa0\x80"', '"\xf4\x90\x80\x80"', '"\xe2\x82"', "NaN", "'a'",
      "[" .. ("[]"):rep(3, ",") .. "]", ("["):rep(150) .. ("]"):rep(150),
    } do
      local inside = "[" .. text .. "]"
      local _, wrong = json.decode(inside, { size = LONG, depth = 200 })
      local found, place = holding(inside):skim(0, LONG)
      assert.equal(wrong == nil, found == inside and place.size == #inside, text)
    end
    assert.equal("too_deep", select(2, holding(("["):rep(300)):skim(0, LONG)).code)
  end)

  it("ends within a value, or after it", function()
    for _, text in ipairs { '{"a":"b', '{"a":"b"', '{"a":', "[1", '"\\', '"\xe2', "tr", '{"a":1}' } do
      local log = holding('{"first":1}\n', text)
      local _, place = json_file.outline(log, 0)
      assert.same({ 0, 11 }, { place.offset, place.size })
      local value, failure = json_file.outline(log, 11)
      if text == '{"a":1}' then
        assert.same({ a = 1 }, value)
      else
        assert.equal("incomplete", failure.code, text)
      end
    end
    assert.equal("end", select(2, json_file.outline(holding " \n", 0)).code)
  end)

  it("is read without its long members, which are read when they are asked for", function()
    local long = ("a \\u00e9\\\"line\\n"):rep(LONG // 10)
    local text = ('{"event":"x","entry":{"id":"i"},"output":"%s","list":[%s1],"after":[{"x":"%s"}]}'):format(
      long, ("1,"):rep(LONG), long)
    local log = holding("\n", text, "\n")
    local value, place = json_file.outline(log, 0, "entry")
    assert.same({ event = "x" }, value)
    assert.same({ 1, #text }, { place.offset, place.size })
    local whole = assert(json.decode_own(text))
    for name, span in pairs(place.left) do assert.same(whole[name], json_file.whole(log, span)) end
    assert.same({ id = "i" }, json_file.whole(log, place.left.entry))
  end)

  it("is read element by element", function()
    local long = ("x"):rep(LONG)
    local text = ('[ {"a":1} , {"a":2,"b":"%s"}\n,3, [4] ]'):format(long)
    local found, sizes = {}, {}
    for element, place in json_file.elements(holding(text), { 0, #text }) do
      found[#found + 1], sizes[#sizes + 1] = element, place.left.b and place.left.b[2] or 0
    end
    assert.same({ { a = 1 }, { a = 2 }, 3, { 4 } }, found)
    assert.same({ 0, LONG + 2, 0, 0 }, sizes)
    for _ in json_file.elements(holding "[ ]", { 0, 3 }) do error "none" end
  end)
end)
