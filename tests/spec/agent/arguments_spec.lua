-- SPDX-License-Identifier: Apache-2.0
local arguments = require "sba.agent.arguments"
local catalogue = require "sba.catalogue"
local is = require "sba.util.schema_check"
local json = require "sba.util.json"
local tools = require "sba.agent.tools"

local _, by_name = tools.list(catalogue)

local own <const> = { name = "own", kind = "step" }
own.parameters = is.object { "id", is.count(), "parent", is.flag(), "criterion", { type = "number" }, "text", is.text(),
  "wait_seconds", { type = "number" }, "state", { enum = { "done", "complete", "in_progress", "B", "b" } },
  "list", { type = "array", items = is.count() }, "path", is.text(nil, { nul = false, minLength = 1 }),
  "rest", is.text(), "rest_seconds", is.count(), "REST_seconds", is.count(), "Rest_seconds", is.count(),
}
own.accepted = own.parameters

local function read(tool, given)
  local written = type(given) == "string" and given or json.encode(given)
  return arguments.read(tool, { arguments = json.decode(written), written = written }, catalogue.get(tool.name))
end

describe("arguments of our own tools", function()
  for _, case in ipairs {
    { { id = "7", parent = "False", criterion = "1.5" }, { id = 7, parent = false, criterion = 1.5 } },
    { { id = 7, parent = false, criterion = 2 }, { id = 7, parent = false, criterion = 2 } },
    { { state = "complete" }, { state = "complete" } }, { { state = "Completed" }, { state = "done" } },
    { { state = "In Progress" }, { state = "in_progress" } }, { { state = "b" }, { state = "b" } },
    { { text = 7 }, { text = "7" } }, { '{"text":{"b": 1, "a":2}}', { text = '{"b": 1, "a":2}' } },
    { '{"Text":{"b": 1, "a":2}}', { text = '{"b": 1, "a":2}' } }, { { rest = "a" }, { rest = "a" } },
    { { list = "[1, '2',]" }, { list = { 1, 2 } } }, { { list = { "1" } }, { list = { 1 } } },
    { { path = "a.txt\n" }, { path = "a.txt" } }, { { path = "\r\na b" }, { path = "a b" } },
    { { path = "a\nb" }, { path = "a\nb" } }, { { arguments = { id = 1 } }, { id = 1 } },
    { { parameters = '{"id": 1}' }, { id = 1 } }, { { input = { id = 1 } }, { id = 1 } },
    { { kwargs = { Id = 1 } }, { id = 1 } }, { { name = "own", arguments = '{"id": 1}' }, { id = 1 } },
    { { path = "$CYNODE_ARTIFACTS_DIR/a" }, { path = "$CYNODE_ARTIFACTS_DIR/a" } }, { '{"list":{}}', { list = {} } },
    { { parent = 1 }, { parent = true } }, { { wait = "2 min" }, { wait_seconds = 120 } },
    { { wait = "2500ms" }, { wait_seconds = 2.5 } }, { { wait = 30 }, { wait_seconds = 30 } },
    { { waitMs = 1500 }, { wait_seconds = 1.5 } }, { { parent = "1", id = "None" }, { parent = true } },
    { { wait_milliseconds = "3000" }, { wait_seconds = 3 } }, { { wait_seconds = 3000 }, { wait_seconds = 3000 } },
    { { text = "", path = "", id = 1 }, { id = 1 } }, { { Id = 1, description = "why", text = json.null }, { id = 1 } },
  } do
    it("are taken where they have one meaning: " .. json.encode(case[1]), function()
      local got, mistake = read(own, case[1])
      assert.same(case[2], got, mistake)
    end)
  end

  for given, words in pairs { ['{"wait": 3000}'] = 'wait: "3000" may be seconds or milliseconds; give wait_seconds',
    ['{"nothing": 1, "id": 1}'] = 'unknown field "nothing"; it has own {id?, parent?,',
    ['{"id": 1, "ID": 2}'] = '"ID" is another name for "id"; give one of them',
    ['{"parent": false, "Parent": true}'] = '"Parent" is another name for "parent"; give one of them',
    ['{"id": "x"}'] = 'expected an integer from 0, got the string "x"', ['{"id": {"a": 1}}'] = "got an object",
    ['{"text": ["a"]}'] = "expected a string, got an array of 1", ['{"path": {"a": 1}}'] = "got an object",
    ['{"config": {"nothing": 1}}'] = 'unknown field "config"',
    ['{"name": "other", "arguments": {"id": 1}}'] = "unknown field",
    ['{"path": "~/a"}'] = 'the path "~/a" would be that very name', ['{"path": "${HOME}/a"}'] = "that very name",
    ['{"path": "file:///a"}'] = "that very name", ['{"path": "\'a\'"}'] = "that very name",
    ['{"arguments": {"id": 1}, "id": 1}'] = 'unknown field "arguments"',
  } do
    it("are refused with the form otherwise: " .. given, function()
      local got, mistake = read(own, given)
      assert.is_nil(got)
      assert.is_truthy(mistake:find(words, 1, true), mistake)
    end)
  end

  it("may be empty where that says something", function()
    local clears <const> = { id = "3", note = "", title = "" }
    assert.same({ id = "3", note = "" }, read(by_name.todo_update, clears))
  end)

  it("come with a note on what was taken otherwise", function()
    local _, note = read(own, '{"text": {"a": 1}, "why": "x"}')
    assert.equal('left out, for it changes nothing: "why"; text was an object, not a text: its JSON was taken', note)
    local got, said = read(by_name.run_command, { command = "mkdir a && cd a" })
    assert.equal("mkdir a && cd a", got.shell)
    assert.is_truthy(said:find("each command starts in the workspace", 1, true))
    assert.is_truthy(select(2, read(by_name.run_command, { command = "export A=1" })):find "what export did")
    for _, line in ipairs { "cd a && make", "make; cd_all", "(cd a)", "x=$(cd a; pwd)" } do
      assert.is_nil(select(2, read(by_name.run_command, { command = line })))
    end
  end)
end)

describe("arguments of a gateway's tool", function()
  local schema <const> = json.encode {
    type = "object", required = json.array { "q", "must" }, ["$defs"] = { count = { type = "integer" } },
    properties = { q = { type = "string" }, must = { type = "string" }, limit = { ["$ref"] = "#/$defs/count" },
      tags = { allOf = json.array { { type = "array", items = { type = "string" } } } }, any = {},
      deep = { type = "object", properties = { on = { type = "boolean" } } },
      either = { type = json.array { "string", "null" } }, kind = { enum = json.array { "done", 2 } },
      one = { anyOf = json.array { { type = "integer" }, { type = "null" } } },
    },
  }
  local null <const> = json.null
  local tool <const> = { name = "find", kind = "gateway", parameters = schema }

  for given, wanted in pairs { ['{"limit":"5","tags":"[\\"a\\"]"}'] = { limit = 5, tags = { "a" } },
    ['{"deep":"{\\"on\\":\\"false\\"}"}'] = { deep = { on = false } },
    ['{"deep":{"on":false}}'] = { deep = { on = false } }, ['{"limit":null,"tags":null,"q":"x"}'] = { q = "x" },
    ['{"must":null,"either":null}'] = { must = null, either = null }, ['{"arguments":{"q":"x"}}'] = { q = "x" },
    ['{"one":null,"any":null}'] = { one = null, any = null },
    ['{"either":"null","any":"5","one":"5"}'] = { either = "null", any = "5", one = 5 },
    ['{"limit":"many","tags":"a,b","kind":"success"}'] = { limit = "many", tags = "a,b", kind = "success" },
    ['{"more":1}'] = { more = 1 }, ['{"kind":"Done"}'] = { kind = "Done" },
    ['{"q":5,"tags":[1]}'] = { q = "5", tags = { "1" } }, ["{}"] = {},
    [json.encode { tags = json.encode(json.encode(json.array { "a" })) }] = { tags = { "a" } },
    ['{"deep":{"on":"1"},"tags":"","limit":"None","either":""}'] = { deep = { on = true }, either = "" },
    ['{"q":{"a":1}}'] = { q = '{"a":1}' }, ['{"q":["a"]}'] = { q = json.array { "a" } },
  } do
    it("are what its schema says: " .. given, function() assert.same(wanted, (read(tool, given))) end)
  end

  it("may have a schema that goes in circles, or is none", function()
    local given <const> = '{"a":{"a":{"a":"1"}},"b":[1]}'
    for _, bad in ipairs {
      '{"$ref":"#"}', '{"anyOf":[{"$ref":"#"},{"$ref":"#"}],"properties":{"a":{"$ref":"#"}}}', "[]", "7", '{"type":5}',
      '{"properties":{"a":7,"b":{"items":[1]}},"required":"x"}', '{"properties":[{"a":1}]}',
    } do
      assert.same(json.decode(given), (read({ kind = "gateway", parameters = bad }, given)), bad)
      read({ kind = "gateway", parameters = bad }, '{"x":{"a":1}}')
    end
    -- Each branch has the member again: it is converted once.
    local node = ('{"properties":{"a":{"$ref":"#/n"}}},'):rep(12)
    local circle = ('{"properties":{"a":{"$ref":"#/n"}},"n":{"anyOf":[%s{}]}}'):format(node)
    local deep = ('{"a":'):rep(20) .. "1" .. ("}"):rep(20)
    assert.same(json.decode(deep), (read({ kind = "gateway", parameters = circle }, deep)))
  end)
end)
