-- SPDX-License-Identifier: Apache-2.0
local json = require "sba.util.json"
local values = require "sba.model.text_calls.values"

describe("values.read", function()
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
      local list, failure = values.read(written)
      assert.equal(wanted, list and json.encode(json.array(list)) or failure.message)
    end)
  end

  for _, written in ipairs {
    '{"a":"x\\\n"}', '{"a":"x\n}', '{"a":"echo "x\n""}', '{"a":1,,}', "{,}", '{"a":[,]}', '{"a":,}',
    '{"a":1} and more', '{"a":{"b":1}', '{"a":"x}', "x", "", "{]", '{"a" 1}', "```json\n```", '{"a":1}{', "{'a': 'x}",
  } do
    it("reads nothing else: " .. written:gsub("\n", " "), function()
      assert.same({ nil, "string" }, { (values.read(written)), type(select(2, values.read(written)).message) })
    end)
  end

  it("closes what is open in a text whose end was marked, unless a string is", function()
    assert.same({ { a = { b = "1" } } }, values.read('{"a":{"b":"1"', true))
    assert.same({ { a = { { b = 1 } } } }, values.read('{"a":[{"b":1', true))
    assert.is_nil((values.read('{"a":{"b":"1', true)))
  end)
end)

describe("values.decode and values.mended", function()
  it("want one value", function()
    assert.same({ a = 1 }, values.decode '{"a":1,}')
    assert.is_nil((values.decode '{"a":1} {"a":2}'))
    assert.equal('{"a":1}', values.mended '```\n{"a":1}\n```')
    assert.equal('{"a": 1 }', values.mended '{"a": 1 }')
    assert.is_nil(values.mended "a {1}")
    assert.is_nil(values.mended '{"a":1} {"a":2}')
  end)
end)
