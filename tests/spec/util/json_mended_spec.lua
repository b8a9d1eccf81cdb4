-- SPDX-License-Identifier: Apache-2.0
local json = require "sba.util.json"
local json_mended = require "sba.util.json_mended"

describe("json_mended.read", function()
  for written, wanted in pairs {
    ['{"a":1}}'] = '[{"a":1}]', ['```json\n{"a":1}\n```'] = '[{"a":1}]',
    ['{"a":1}</tool_call><|im_end|>'] = '[{"a":1}]',
    ["{'a': 'it\\'s \"x\"', 'b': True, 'c': [None, NaN,], }"] = '[{"a":"it\'s \\"x\\"","b":true,"c":[null,null]}]',
    ['{a: 1, "b c": {d: false}}'] = '[{"a":1,"b c":{"d":false}}]', ['{"p":"\\d+\\.x", "q":"C:\\\\\\u00e9\\u12"}'] =
      '[{"p":"\\\\d+\\\\.x","q":"C:\\\\é\\\\u12"}]',
    ['\u{FEFF}{"a":1 // one\n,/* two */"b":"//"}'] = '[{"a":1,"b":"//"}]',
    ['{"a":1}\n{"b":2}, [3];'] = '[{"a":1},{"b":2},[3]]', ['{"a":"{\\"}\n"}'] = '[{"a":"{\\"}\\n"}]', ['"x"'] = '["x"]',
    ['{"a":"x\n\ty\r\n"}'] = '[{"a":"x\\n\\ty\\r\\n"}]', ['{"a":"\\"\n,]"}'] = '[{"a":"\\"\\n,]"}]',
    ['{"a":"x,}\n","b":{"c":true ,\n}\n,}'] = '[{"a":"x,}\\n","b":{"c":true}}]', ['{"a":[1,2,],}'] = '[{"a":[1,2]}]',
    ['{"n":9007199254740993}'] = '[{"n":9007199254740993}]',
  } do
    it("reads what has one meaning: " .. written:gsub("\n", " "), function()
      local list, failure = json_mended.read(written)
      assert.equal(wanted, list and json.encode(json.array(list)) or failure.message)
    end)
  end

  for _, written in ipairs {
    '{"a":"x\\\n"}', '{"a":"x\n}', '{"a":"echo "x\n""}', '{"a":1,,}', "{,}", '{"a":[,]}', '{"a":,}',
    '{"a":1} and more', '{"a":{"b":1}', '{"a":"x}', "x", "", "{]", '{"a" 1}', "```json\n```", '{"a":1}{', "{'a': 'x}",
  } do
    it("reads nothing else: " .. written:gsub("\n", " "), function()
      local list, failure = json_mended.read(written)
      assert.same({ nil, "string" }, { list, type(failure.message) })
    end)
  end

  it("closes what is open in a text whose end was marked, unless a string is", function()
    assert.same({ { a = { b = "1" } } }, json_mended.read('{"a":{"b":"1"', true))
    assert.same({ { a = { { b = 1 } } } }, json_mended.read('{"a":[{"b":1', true))
    assert.is_nil((json_mended.read('{"a":{"b":"1', true)))
  end)
end)

describe("json_mended.decode and json_mended.mended", function()
  it("want one value", function()
    assert.same({ a = 1 }, json_mended.decode '{"a":1,}')
    assert.is_nil((json_mended.decode '{"a":1} {"a":2}'))
    assert.equal('{"a":1}', json_mended.mended '```\n{"a":1}\n```')
    assert.equal('{"a": 1 }', json_mended.mended '{"a": 1 }')
    assert.is_nil(json_mended.mended "a {1}")
    assert.is_nil(json_mended.mended '{"a":1} {"a":2}')
  end)
end)
