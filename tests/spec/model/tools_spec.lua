-- SPDX-License-Identifier: Apache-2.0
local json = require "sba.util.json"
local tools_of = require "sba.model.tools"

describe("tools.json", function()
  it("shows the keywords that every server takes in order, without our own", function()
    local parameters = {
      type = "object", order = { "path", "lines" }, required = { "path" }, aliases = { file = "path" },
      additionalProperties = false,
      properties = {
        lines = { type = "array", items = {
          type = "object", order = { "b", "a" }, properties = { a = { type = "integer" }, b = {} },
        } },
        path = { type = "string", description = "100% of it", printed = { title = "x" } },
      },
    }
    assert.equal('{"type":"object","properties":{"path":{"type":"string","description":"100% of it"},'
      .. '"lines":{"type":"array","items":{"type":"object","properties":{"b":{},"a":{"type":"integer"}}}}},'
      .. '"required":["path"]}',
      tools_of.json({ { name = "a", parameters = parameters } }):match '"parameters":(.*)}}%]$')
  end)

  it("writes tools that every format takes", function()
    local tools = json.decode(tools_of.json {
      { name = "a", description = "100% \"quoted\"", parameters = { type = "object" } }, { name = "b" },
    })
    assert.same({ type = "function", ["function"] = {
      name = "a", description = "100% \"quoted\"", parameters = { type = "object", properties = {} },
    } }, tools[1])
    assert.equal(2, #tools)
  end)
end)

describe("tools_of.json", function()
  local function parameters(given)
    return json.decode(tools_of.json { { name = "a", parameters = given } })[1]["function"].parameters
  end

  local function property(given)
    local either <const> = { anyOf = json.array { { type = "string" }, { type = "integer" } } }
    return parameters(json.encode { type = "object", properties = { x = given }, ["$defs"] = { ["either or"] = either,
      circle = { type = "object", properties = { next = { ["$ref"] = "#/$defs/circle" } } }, word = { type = "string" },
    } }).properties.x
  end

  it("has no alternatives at the top", function()
    local given = json.encode {
      oneOf = json.array { { required = json.array { "a" } }, { properties = { b = { type = "integer" } } } },
      properties = { a = { type = "string" } },
    }
    local properties <const> = { a = { type = "string" }, b = { type = "integer" } }
    assert.same({ type = "object", properties = properties }, parameters(given))
  end)

  it("has a type beside each enum", function()
    assert.same({ type = "string", enum = { "a", "b" } }, property { enum = json.array { "a", "b" } })
    assert.same({ type = "integer", enum = { 1 } }, property { const = 1 })
  end)

  it("replaces references, and ends where they go in circles", function()
    assert.same({ type = "string", description = "d" }, property { ["$ref"] = "#/$defs/word", description = "d" })
    assert.equal("object", property { ["$ref"] = "#/$defs/circle" }.properties.next.type)
    assert.equal("integer", property { ["$ref"] = "#/$defs/either%20or/anyOf/1" }.type)
    local many = {}
    for i = 1, 50 do many["p" .. i] = { ["$ref"] = "#" } end
    local given = json.encode { type = "object", properties = many }
    assert.is_true(#tools_of.json { { name = "a", parameters = given } } < 200000)
  end)

  it("does not repeat a large part for each reference to it", function()
    local names, words, properties = {}, json.array {}, {}
    for i = 1, 50000 do names["q" .. i], words[i] = {}, "word " .. i end
    for i = 1, 1000 do properties["p" .. i] = { ["$ref"] = "#/$defs/large" } end
    for _, large in ipairs {
      { properties = names }, { enum = words }, { anyOf = words }, { allOf = words }, { type = words },
      { required = words }, { const = names }, { ["$ref"] = ("#/"):rep(1000000) },
      { description = ("x"):rep(1000000) }, { default = ("x"):rep(1000000) },
    } do
      local given = json.encode { type = "object", properties = properties, ["$defs"] = { large = large } }
      assert.is_true(#tools_of.json { { name = "a", parameters = given } } < 1000000)
    end
  end)

  it("takes any JSON for a schema", function()
    for _, bad in ipairs {
      '{"order":5,"properties":{"x":true,"y":{"type":7,"enum":3,"items":[1],"anyOf":1}},"required":"x"}',
      '{"properties":7,"$ref":"#/a/b","allOf":[1,null]}',
      '{"order":[1,2],"properties":{"a":{"order":"b"}},"oneOf":{"a":1}}', "[]", "7",
    } do
      assert.equal("object", parameters(bad).type, bad)
    end
  end)

  it("leaves null out of types and alternatives", function()
    assert.same({ type = "string" }, property { type = json.array { "string", "null" } })
    assert.same({ type = "integer" }, property { anyOf = json.array { { type = "integer" }, { type = "null" } } })
    assert.same({ anyOf = { { type = "integer" }, { type = "string" } } },
      property { oneOf = json.array { { type = "integer" }, { type = "string" } } })
  end)

  it("has what servers refuse to be without, and nothing that they refuse", function()
    assert.same({ type = "array", items = {} }, property { type = "array" })
    assert.same({ type = "array", items = {} }, property { type = json.array { "array", "null" }, items = json.null })
    assert.same({ description = "d", anyOf = { { type = "string", enum = { "a" } }, { type = "array", items = {} } } },
      property { type = json.array { "string", "array" }, description = "d", enum = json.array { "a", json.null } })
    assert.same({ type = "object", properties = {} }, parameters '{"properties":[{"name":"a"}]}')
    assert.same({ type = "integer" }, property { type = "int" })
    assert.same({ description = "d" }, property { type = "Path", description = "d" })
  end)

  it("says in words what it has no keyword for", function()
    assert.same({ type = "integer", description = "How many. (default 3, minimum 1)" },
      property { type = "integer", description = "How many.", minimum = 1, default = 3, exclusiveMaximum = 9 })
  end)
end)

local tools = {
  { name = "read_file", description = "Read a file.",
    parameters = { type = "object", properties = { path = { type = "string" } } } },
  { name = "run_command", description = "Run 100% of a command.", parameters = '{"type":"object"}' },
}

describe("tools.messages", function()
  it("tells the tools in the system text, and makes one where there is none", function()
    for _, messages in ipairs {
      { { role = "system", content = "Be brief." }, { role = "user", content = "go" } },
      { { role = "user", content = "go" } },
    } do
      local sent = tools_of.messages(messages, tools)
      assert.same({ "system", "user" }, { sent[1].role, sent[2].role })
      for _, words in ipairs { "### read_file", "Run 100% of a command.",
        '{"type":"object","properties":{}}', '"properties":{"path":{"type":"string"}}' } do
        assert.is_truthy(sent[1].content:find(words, 1, true), words)
      end
    end
  end)

  it("turns a message into words once, and tools that are offered later too", function()
    local messages <const> = { { role = "system", content = "Be brief." }, { role = "tool", content = "x" } }
    local sent, later = tools_of.messages(messages, { tools[1] }), tools_of.messages(messages, tools)
    assert.equal(sent[2], later[2])
    assert.same({ role = "user", content = "Result of the call:\nx" }, later[2])
    assert.is_truthy(later[1].content:find("### run_command", 1, true))
  end)
end)

describe("tools.schema", function()
  it("has a branch for each tool, the thought first and the arguments in their order", function()
    local schema = tools_of.schema({
      { name = "one", parameters = { type = "object", order = { "z", "a" },
        properties = { a = { type = "string" }, z = { type = "boolean" } },
        required = json.array { "a" } } },
      { name = "two", parameters = "{}" },
    })
    local branches = json.decode(schema).anyOf
    local one, two = branches[1].properties.tool.enum, branches[2].properties.tool.enum
    assert.same({ 2, { "one" }, { "two" } }, { #branches, one, two })
    assert.same({ "a" }, branches[1].properties.arguments.required)
    assert.is_false(branches[1].properties.arguments.additionalProperties)
    assert.is_truthy(schema:find('"z":{"type":"boolean"},"a":{"type":"string"}', 1, true))
    local function at(name) return schema:find('"' .. name .. '"', 1, true) end
    assert.is_true(at "thought" < at "tool" and at "tool" < at "arguments")
  end)
end)
