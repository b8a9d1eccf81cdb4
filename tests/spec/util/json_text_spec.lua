-- SPDX-License-Identifier: Apache-2.0
local json = require "sba.util.json"
local json_text = require "sba.util.json_text"

describe("json_text.part", function()
  it("is a value as it is written", function()
    local text = ' { "b" : {"x":[1, {"y" :"]}\\"," } ,2.50e1 , [ ] ]} ,"a":"t\\"\\\\", "n":null,"e":{} }'
    assert.is_nil(select(2, json.decode(text)))
    for wanted, path in pairs {
      ['{"y" :"]}\\"," }'] = { "b", "x", 2 }, ["2.50e1"] = { "b", "x", 3 }, ["[ ]"] = { "b", "x", 4 }, ['"t\\"\\\\"'] = { "a" },
      null = { "n" }, ["{}"] = { "e" }, ["1"] = { "b", "x", 1 },
    } do
      assert.are.equal(wanted, json_text.part(text, table.unpack(path)))
    end
  end)

  it("is nothing where there is none", function()
    for _, path in ipairs { { "z" }, { 1 }, { "b", "x", 9 }, { "a", "b" }, { "n", 1 }, { "e", "a" }, { "b", "x", 1, "c" } } do
      assert.is_nil(json_text.part('{"b":{"x":[1]},"a":"t","n":null,"e":{}}', table.unpack(path)))
    end
  end)

  it("takes time in proportion to the text, and depth as far as JSON is read", function()
    local deep = ("["):rep(62) .. ("]"):rep(62)
    assert.are.equal(deep, json_text.part('{"a":' .. deep .. "}", "a"))
    local long = json.encode { content = ("\n\"{"):rep(1000000), path = "p" }
    assert.are.equal('"p"', json_text.part(long, "path"))
  end)
end)
