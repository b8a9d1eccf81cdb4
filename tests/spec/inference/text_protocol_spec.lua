-- SPDX-License-Identifier: Apache-2.0
local json = require "sba.util.json"
local text_protocol = require "sba.inference.text_protocol"

local tools = {
  { name = "read_file", description = "Read a file.", parameters = { type = "object", properties = { path = { type = "string" } } } },
  { name = "run_command", description = "Run 100% of a command.", parameters = '{"type":"object"}' },
}
local CALL <const> = '{"thought":"hm","tool":"read_file","arguments":{"path":"a"}}'

local function read(content)
  local found, mistake = text_protocol.read(content, tools)
  return found and found[1], mistake, found
end

describe("text_protocol.read", function()
  for _, content in ipairs {
    CALL, "  " .. CALL .. "\n", "```json\n" .. CALL .. "\n```",
    "Well:\n```\n" .. CALL .. "\n```\nSo be it.", "I will call " .. CALL .. " now.",
    "<tool_call>\n" .. CALL .. "\n</tool_call>", "so <tool_call>" .. CALL, "if (x) { y } " .. CALL,
    '{"name":"read_file","parameters":{"path":"a"}}', '{"action":"read_file","action_input":{"path":"a"}}', '{"read_file":{"path":"a"}}',
    '{"function":{"name":"read_file","arguments":{"path":"a"}}}', '[{"name":"read_file","args":{"path":"a"}}]',
    '{"tool_calls":[{"id":"1","type":"function","function":{"name":"read_file","arguments":{"path":"a"}}}]}',
  } do
    it("reads " .. content:gsub("\n", " "), function()
      local call, mistake = read(content)
      assert.is_nil(mistake)
      assert.are.same({ "read_file", { path = "a" } }, { call.name, call.arguments })
    end)
  end

  it("leaves arguments in a string to be read later, and the thought with the call", function()
    assert.are.equal('{"path":"a"}', read('{"tool":"read_file","arguments":"{\\"path\\":\\"a\\"}"}').arguments)
    assert.are.equal("hm", read(CALL).thought)
  end)

  it("reads several marked calls", function()
    local _, _, found = read("<tool_call>" .. CALL .. "</tool_call>\n<tool_call>" .. CALL .. "</tool_call>")
    assert.are.equal(2, #found)
  end)

  it("tells a text that a bound cut off from a whole one", function()
    local function call(size) return json.encode { tool = "read_file", arguments = { path = "a", content = ("ä"):rep(size) } } end
    for size, mistake in pairs { [1998] = false, [1999] = true, [2000] = false } do
      local found, words = text_protocol.read(call(size), tools, true)
      assert.are.equal(mistake, not found, size)
      assert.are.equal(mistake, words ~= nil and words:find("content is too long", 1, true) ~= nil)
    end
    assert.is_truthy(text_protocol.read(call(1999), tools, false))
  end)

  it("does not read a large object again and again for those in it", function()
    local decode, size = json.decode_repaired, 0
    json.decode_repaired = function(text) ---@diagnostic disable-line: duplicate-set-field
      size = size + #text
      return decode(text)
    end
    local content = "so: " .. ('{"a":'):rep(32) .. '"' .. ("x"):rep(1 << 20) .. '"' .. ("}"):rep(32)
    local found = read(content)
    json.decode_repaired = decode
    assert.is_nil(found)
    assert.is_true(size < 4 * #content)
    assert.are.equal("read_file", read('so: {"a": {"b": ' .. CALL .. "}}").name)
  end)

  it("says why there is none", function()
    for content, words in pairs {
      ["I think that"] = "not the JSON object that was asked for: line 1, column 1", [""] = "the end of the text", ["{}"] = "names no tool",
      ['{"path":"a"}'] = "names no tool", ['{"tool":null}'] = "names no tool", ['{"tool":"read_file","argum'] = "the end of the text",
      ["[1,2]"] = "names no tool", ["{{{"] = "not the JSON",
    } do
      local call, mistake = read(content)
      assert.is_nil(call, content)
      assert.is_truthy(mistake and mistake:find(words, 1, true), ("%s: %s"):format(content, mistake))
    end
  end)
end)

describe("text_protocol.find", function()
  it("finds a reply that is nothing but calls", function()
    for _, content in ipairs { CALL, "```json\n" .. CALL .. "\n```", "<tool_call>" .. CALL .. "</tool_call>", "[" .. CALL .. "]" } do
      assert.are.equal("read_file", text_protocol.find(content, tools)[1].name, content)
    end
  end)

  it("takes no words about a call for one", function()
    for _, content in ipairs {
      "Use " .. CALL, "```json\n" .. CALL .. "\n```\nwould do.",
      '{"tool":"rm","arguments":{}}', '{"name":"read_file"}', '{"a":1}', "", "[]", "{",
      '["read_file"]', '{"tool":"readfile","arguments":{}}',
    } do
      assert.is_nil(text_protocol.find(content, tools), content)
    end
  end)
end)

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
