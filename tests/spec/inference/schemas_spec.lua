-- SPDX-License-Identifier: Apache-2.0
local json = require "sba.util.json"
local schemas = require "sba.inference.schemas"

describe("schemas.text", function()
  it("shows the standard keywords in order, without our own", function()
    local parameters = {
      type = "object", order = { "path", "lines" }, required = { "path" }, aliases = { file = "path" }, additionalProperties = false,
      properties = {
        lines = { type = "array", items = { type = "object", order = { "b", "a" }, properties = { a = { type = "integer" }, b = {} } } },
        path = { type = "string", description = "100% of it", printed = { title = "x" } },
      },
    }
    assert.are.equal('{"type":"object","properties":{"path":{"type":"string","description":"100% of it"},"lines":{"type":"array",'
      .. '"items":{"type":"object","properties":{"b":{},"a":{"type":"integer"}}}}},"required":["path"],"additionalProperties":false}',
      schemas.text(parameters))
  end)

  it("keeps empty lists and objects apart", function()
    assert.are.equal('{"type":"object","properties":{},"required":[]}', schemas.text { type = "object", required = {} })
    assert.are.equal('{"type":"object","properties":{}}', schemas.text(nil))
    assert.are.equal('{"x":1}', schemas.text '{"x":1}')
  end)

  it("writes tools that every format takes", function()
    local tools = json.decode(schemas.tools {
      { name = "a", description = "100% \"quoted\"", parameters = { type = "object" } }, { name = "b" },
    })
    assert.are.same({ type = "function", ["function"] = {
      name = "a", description = "100% \"quoted\"", parameters = { type = "object", properties = {} },
    } }, tools[1])
    assert.are.equal(2, #tools)
  end)
end)
