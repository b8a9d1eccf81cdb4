-- SPDX-License-Identifier: Apache-2.0
local json = require "sba.util.json"
local tolerant = require "sba.util.json_tolerant"

describe("json_tolerant.decode", function()
  it("reads what has one meaning left", function()
    for written, value in pairs {
      ['{"a":1,"b":2}'] = { a = 1, b = 2 }, ['{"a":1,"a":null,"a":[2]}'] = { a = json.array { 2 } },
      [' \xEF\xBB\xBF'] = false, ['\xEF\xBB\xBF{"a":"x"} '] = { a = "x" }, ['{"a":"\\ud83d"}'] = { a = "\u{FFFD}" },
      ['{"a":"\\ude00!"}'] = { a = "\u{FFFD}!" }, ['["\\ud83d\\ude00", NaN]'] = { "\u{1F600}", json.null },
      ['{"a":[NaN,-Infinity,Infinity,-1.5e3]}'] = { a = { json.null, json.null, json.null, -1500.0 } },
      ['{"a":"caf\xE9","a":true}'] = { a = true }, ['{"a":"caf\xE9"}'] = { a = "caf\u{FFFD}" },
      ['{"a":"1\n2\\n"}'] = { a = "1\n2\n" }, ['{"a":{},"a":{"b":"\\"\\\\"}}'] = { a = { b = '"\\' } },
    } do
      local read, failure = tolerant.decode(written)
      if value then
        assert.same(value, read, written)
      else
        assert.equal("invalid_json", failure.code)
      end
    end
    assert.is_true(json.is_array(tolerant.decode '{"a":[],"a":[]}'.a))
    assert.equal('{"a":12345678901234567890123}', json.encode(tolerant.decode '{"a":1,"a":12345678901234567890123}'))
  end)

  it("refuses the rest as json.decode does", function()
    for _, written in ipairs {
      "", "{", '{"a":1,"a":2', '{"a":1}x', "{a:1}",
      '{"a":01,"a":1}', '{"a":.,"a":1}', '{"a":"\\x","a":1}', "[1,]", "nan",
      '{"a":1,"a":' .. ("["):rep(5000), '{"a":1,"a":[' .. ("1,"):rep(1000001) .. "1]}", ("["):rep(65) .. ("]"):rep(65),
    } do
      local _, strict = json.decode(written)
      assert.same({ nil, strict }, { tolerant.decode(written) }, written:sub(1, 40))
      assert.is_string(strict.message)
    end
  end)
end)
