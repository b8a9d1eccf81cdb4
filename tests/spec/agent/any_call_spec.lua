-- SPDX-License-Identifier: Apache-2.0
-- Whatever a model or a gateway writes, its readers answer and do not raise. The values are random, always the same.
local arguments = require "sba.agent.arguments"
local calls = require "sba.model.calls"
local catalogue = require "sba.catalogue"
local find = require "sba.model.text_calls.find"
local forms = require "sba.model.text_calls.forms"
local json = require "sba.util.json"
local tool_result = require "sba.gateway.tool_result"
local tools = require "sba.agent.tools"
local tools_of = require "sba.model.tools"

local ROUNDS <const> = 300
local KEYS <const> = {
  "type", "properties", "required", "items", "enum", "anyOf", "allOf", "const", "$ref", "description", "order",
  "nul", "a", "path", "command", "content", "name", "arguments", "timeout", "text", "isError", "answer", "status",
  "acceptance", "step", "id", "tool_calls", "function", "thought", "aliases", "data", "resource",
}
local TEXTS <const> = {
  "string", "integer", "array", "object", "null", "#", "", "x", "a\nb", "5", "true", "[1]", '{"a":1}', "done", "text",
  "run_command", "\\n\\n", "30s", "☃",
}

local _, by_name, accepted = tools.list(catalogue)

local function any(depth)
  local kind = math.random(depth > 4 and 5 or 8)
  if kind == 1 then return TEXTS[math.random(#TEXTS)] end
  if kind == 2 then return math.random(-5, 5000) end
  if kind == 3 then return math.random() < 0.5 end
  if kind == 4 then return json.null end
  if kind == 5 then return math.random() * 100 end
  local value = kind == 6 and json.array {} or {}
  for i = 1, math.random(0, 4) do value[kind == 6 and i or KEYS[math.random(#KEYS)]] = any(depth + 1) end
  return value
end

local function any_object()
  local value
  repeat value = any(0) until json.kind(value) == "object"
  return value
end

describe("what others write", function()
  it("never raises: a gateway's schema, and arguments for it", function()
    math.randomseed(1)
    for _ = 1, ROUNDS do
      local tool = { name = "g", kind = "gateway", parameters = json.encode(any(0)) }
      assert.is_nil(select(2, json.decode(tools_of.json { tool })), tool.parameters)
      assert.is_nil(select(2, json.decode(tools_of.example(tool))))
      arguments.form(tool)
      arguments.read(tool, { arguments = any_object() })
    end
  end)

  it("never raises: arguments of our own tools", function()
    math.randomseed(2)
    for name, tool in pairs(by_name) do
      for _ = 1, ROUNDS // 10 do
        local given = any_object()
        arguments.read(tool, { arguments = given, written = json.encode(given) }, catalogue.get(name))
      end
    end
  end)

  it("never raises: a reply with calls as text, whole and torn", function()
    math.randomseed(3)
    for i = 1, ROUNDS do
      local example, written = forms.list[i % #forms.list + 1].example, json.encode(any(0))
      local whole = example:gsub('{"command": "ls"}', function() return written end)
      local torn = whole:sub(1, math.random(#whole)) .. whole:sub(math.random(#whole))
      for _, content in ipairs { whole, torn, json.encode(any_object()), torn .. whole } do
        local said, thought = find.thinking(content)
        local found = find.calls(said, accepted, thought)
        find.read(said, accepted, thought)
        calls.normal(found or {}, accepted, { calls = 0, ids = {} })
      end
    end
  end)

  it("never raises: a tool's result", function()
    math.randomseed(4)
    for _ = 1, ROUNDS do
      assert.equal("string", type(tool_result.of_mcp(any_object()).content))
      assert.equal("string", type(tool_result.of_plain(any(0)).content))
    end
  end)
end)
