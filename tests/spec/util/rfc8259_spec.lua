-- SPDX-License-Identifier: Apache-2.0
-- The grammar and the reader are two opinions on one language: they must agree on every text that differs from JSON in what a
-- grammar can see.
local is_of_grammar = require "sba.util.rfc8259"
local json = require "sba.util.json"

local accepted = {
  "{}", "[]", " [ ] ", "0",
  "-0", "1e5", "1.5E+3", "[1,2]", '{"a":{"b":[null,true,false]}}', '""', '"\\u0041\\ud83d\\ude00\\n\\/"', '"é"',
  ("["):rep(64) .. ("]"):rep(64), ('{"a":'):rep(63) .. "[]" .. ("}"):rep(63),
}
local refused = {
  "", " ", "[1,]", "[,1]", "{,}",
  '{"a":1,}', '{"a"}', "{a:1}", "01", "1.", ".5", "+1", "1e", "NaN", "Infinity", "0x1", "'a'", '"\t"', '"\\x"',
  '"\\u12g4"', '"a', "[", "]", "[1 2]", "tru", "nulll", "1 1", "\xEF\xBB\xBF1", "/**/1", '{"a":1}}',
  ("["):rep(100000),
}

describe("the grammar of RFC 8259", function()
  it("takes what the reader takes", function()
    for _, text in ipairs(accepted) do
      assert.is_true(is_of_grammar(text), text)
      assert.is_not_nil((json.decode(text)), text)
    end
  end)

  it("refuses what the reader refuses", function()
    for _, text in ipairs(refused) do
      assert.is_false(is_of_grammar(text), text)
      assert.is_nil((json.decode(text)), text)
    end
  end)

  it("leaves halves of surrogate pairs to the reader", function()
    for _, text in ipairs { '"\\ud800"', '"\\udc00\\ud800"', '"\\uD83Dx"' } do
      assert.is_true(is_of_grammar(text), text)
      assert.is_nil((json.decode(text)), text)
    end
  end)

  it("agrees with the reader on a thousand texts with one byte changed", function()
    local whole = '{"a": [1, -2.5e3, "x\\u00e9\\n"], "b": {"c": null, "d": [true, false, {}]}, "e": ""}'
    math.randomseed(8259)
    for _ = 1, 1000 do
      local at = math.random(#whole)
      local text = whole:sub(1, at - 1) .. string.char(math.random(32, 126)) .. whole:sub(at + 1)
      local value, failure = json.decode(text)
      local twice = failure and failure.message:find("twice", 1, true)
      if not twice then assert.equal(value ~= nil, is_of_grammar(text), text) end
    end
  end)
end)
