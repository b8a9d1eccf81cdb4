-- SPDX-License-Identifier: Apache-2.0
local json = require "sba.util.json"
local text_protocol = require "sba.model.text_protocol"

local tools = {
  { name = "read_file", description = "Read a file.", parameters = { type = "object", properties = { path = { type = "string" } } } },
  { name = "run_command", description = "Run 100% of a command.", parameters = '{"type":"object"}' },
}

describe("text_protocol.messages", function()
  it("tells the tools in the system text, and makes one where there is none", function()
    for _, messages in ipairs {
      { { role = "system", content = "Be brief." }, { role = "user", content = "go" } }, { { role = "user", content = "go" } },
    } do
      local sent = text_protocol.messages(messages, tools)
      assert.are.same({ "system", "user" }, { sent[1].role, sent[2].role })
      for _, words in ipairs { "### read_file", "Run 100% of a command.",
        '{"type":"object","properties":{}}', '"properties":{"path":{"type":"string"}}' } do
        assert.is_truthy(sent[1].content:find(words, 1, true), words)
      end
    end
  end)
end)

describe("text_protocol.schema", function()
  it("has a branch for each tool, the thought first and the arguments in their order", function()
    local schema = text_protocol.schema({
      { name = "one", parameters = { type = "object", order = { "z", "a" },
        properties = { a = { type = "string" }, z = { type = "boolean" } },
        required = json.array { "a" } } },
      { name = "two", parameters = "{}" },
    }, "full")
    local branches = json.decode(schema).anyOf
    assert.are.same({ 2, { "one" }, { "two" } }, { #branches, branches[1].properties.tool.enum, branches[2].properties.tool.enum })
    assert.are.same({ "a" }, branches[1].properties.arguments.required)
    assert.is_false(branches[1].properties.arguments.additionalProperties)
    assert.is_truthy(schema:find('"z":{"type":"boolean"},"a":{"type":"string"}', 1, true))
    local thought, tool, arguments = schema:find('"thought"', 1, true), schema:find('"tool"', 1, true), schema:find('"arguments"', 1, true)
    assert.is_true(thought < tool and tool < arguments)
  end)

  it("has all names in one where the server takes no branches", function()
    assert.are.same({ "read_file", "run_command" }, json.decode(text_protocol.schema(tools, "simple")).properties.tool.enum)
  end)
end)
