-- SPDX-License-Identifier: Apache-2.0
local json = require "sba.util.json"
local reply_schema = require "sba.inference.reply_schema"

local function branch_of(parameters)
  return json.decode(reply_schema.of { { name = "t", parameters = parameters } }).anyOf[1].properties.arguments
end

local function argument(schema, required)
  return branch_of({ type = "object", properties = { a = schema }, required = json.array(required and { "a" } or {}) }).properties.a
end

describe("reply_schema", function()
  it("has a branch for each tool, the thought first", function()
    local text = reply_schema.of {
      { name = "one", parameters = { type = "object", properties = { path = { type = "string" } }, required = json.array { "path" } } },
      { name = "two", parameters = "{}" },
    }
    local branches = json.decode(text).anyOf
    assert.are.same({ 2, { "one" }, { "two" } }, { #branches, branches[1].properties.tool.enum, branches[2].properties.tool.enum })
    assert.are.same({ type = "string", maxLength = 256 }, branches[1].properties.arguments.properties.path)
    assert.are.same({ "path" }, branches[1].properties.arguments.required)
    assert.are.same({ type = "object" }, branches[2].properties.arguments)
    local thought, tool, arguments = text:find('"thought"', 1, true), text:find('"tool"', 1, true), text:find('"arguments"', 1, true)
    assert.is_true(thought < tool and tool < arguments)
  end)

  it("keeps the order of a tool's own arguments", function()
    local text = reply_schema.of { { name = "t", parameters = {
      type = "object", order = { "z", "a", "m" },
      properties = { a = { type = "string" }, m = { type = "integer" }, z = { type = "boolean" } },
    } } }
    assert.is_truthy(text:find('"z":{"type":"boolean"},"a":{"type":"string","maxLength":1999},"m":{"type":"integer"}', 1, true))
  end)

  it("bounds texts and lists wherever they are", function()
    local text <const> = { type = "string", maxLength = 1999 }
    for _, case in ipairs {
      { { type = "string", minLength = 1, maxLength = 100000 }, text },
      { { type = "string", enum = json.array { "x" } }, { type = "string", enum = { "x" } } },
      { { type = "array", items = { type = "string" } }, { type = "array", items = text, maxItems = 32 } },
      { { type = "array", items = { type = "array", items = { type = "number" } } },
        { type = "array", items = { type = "array", items = { type = "number" }, maxItems = 32 }, maxItems = 32 } },
      { { anyOf = { { type = "string" }, { type = "integer" } } }, { anyOf = { text, { type = "integer" } } } },
      { { type = { "string", "integer" } }, { anyOf = { text, { type = "integer" } } } },
      { {}, { anyOf = { text, { type = "number" }, { type = "boolean" }, { type = "object" } } } },
      { { type = "array" }, { type = "array", maxItems = 32,
        items = { anyOf = { text, { type = "number" }, { type = "boolean" }, { type = "object" } } } } },
    } do
      assert.are.same(case[2], argument(case[1]))
    end
  end)

  it("leaves out an object of any names that a call can do without", function()
    assert.is_nil(argument { type = "object", additionalProperties = { type = "string" } })
    assert.are.same({ type = "object" }, argument({ type = "object" }, true))
  end)
end)
