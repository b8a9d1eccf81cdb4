-- SPDX-License-Identifier: Apache-2.0
local modern = require "sba.gateway.mcp.modern"
local json = require "sba.util.json"

local function wanted(text)
  return modern.wanted(assert(json.decode(text)))
end

describe("x-mcp-header", function()
  it("is found below properties, however deep", function()
    local below = [[{"type":"object","properties":{"b":{"type":"integer","x-mcp-header":"B"}}}]]
    local found = wanted('{"properties":{"a":' .. below .. "}}")
    assert.same({ { name = "B", path = { "a", "b" } } }, found)
    assert.same({ "Mcp-Param-B: 7" }, modern.lines(found, { a = { b = 7.0 } }))
    assert.same({}, modern.lines(found, {}))
    for _, a in ipairs { json.null, 1, { b = json.null }, { b = 1.5 }, { b = {} } } do
      assert.same({}, modern.lines(found, { a = a }))
    end
  end)

  it("may be the name of an argument", function()
    assert.same({}, wanted [[{"properties":{"x-mcp-header":{"type":"string"}}}]])
  end)

  for _, schema in ipairs {
    [[{"x-mcp-header":"A","type":"string"}]],
    [[{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}]],
    [[{"properties":{"a":{"type":["string","null"],"x-mcp-header":"A"}}}]],
    [[{"properties":{"a":{"x-mcp-header":"A"}}}]],
    [[{"properties":{"a":{"type":"string","x-mcp-header":""}}}]],
    [[{"properties":{"a":{"type":"string","x-mcp-header":7}}}]],
    [[{"properties":{"a":{"type":"string","x-mcp-header":null}}}]],
    [[{"properties":{"a":{"type":"string","x-mcp-header":"A:"}}}]],
    [[{"properties":{"a":{"type":"string","x-mcp-header":"A\r\nB"}}}]],
    [[{"properties":{"a":{"type":"string","x-mcp-header":"Ä"}}}]],
    [[{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}]],
    [[{"items":{"type":"string","x-mcp-header":"A"}}]],
    [[{"properties":{"a":{"items":{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}}}}]],
    [[{"anyOf":[{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}]}]],
    [[{"$defs":{"b":{"type":"string","x-mcp-header":"A"}}}]],
    [[{"if":{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}}]],
  } do
    it("is refused in " .. schema, function()
      local found, reason = wanted(schema)
      assert.is_nil(found)
      assert.is_truthy(reason:find("x-mcp-header", 1, true))
    end)
  end
end)

describe("a header's value", function()
  for value, encoded in pairs {
    [""] = "", ["us west"] = "us west", [" a"] = "=?base64?IGE=?=", ["a "] = "=?base64?YSA=?=",
    ["a\tb"] = "=?base64?YQli?=", ["ü"] = "=?base64?w7w=?=", ["a\r\nX: 1"] = "=?base64?YQ0KWDogMQ==?=",
    ["=?base64?YQ==?="] = "=?base64?PT9iYXNlNjQ/WVE9PT89?=",
  } do
    it(("%q is sent as %s"):format(value, encoded), function() assert.equal(encoded, modern.encoded(value)) end)
  end
end)
