-- SPDX-License-Identifier: Apache-2.0
local calls = require "sba.model.calls"
local json = require "sba.util.json"

local tools = {
  { name = "read_file", description = "Read a file.", parameters = { type = "object", properties = { path = { type = "string" } } } },
  { name = "run_command", description = "Run 100% of a command.", parameters = '{"type":"object"}' },
}
local CALL <const> = '{"thought":"hm","tool":"read_file","arguments":{"path":"a"}}'

local function read(content)
  local found, mistake = calls.read(content, tools)
  return found and found[1], mistake, found
end

describe("calls.read", function()
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
      assert.same({ "read_file", { path = "a" } }, { call.name, call.arguments })
    end)
  end

  it("leaves arguments in a string to be read later, and the thought with the call", function()
    assert.equal('{"path":"a"}', read('{"tool":"read_file","arguments":"{\\"path\\":\\"a\\"}"}').arguments)
    assert.equal("hm", read(CALL).thought)
  end)

  it("reads several marked calls", function()
    local _, _, found = read("<tool_call>" .. CALL .. "</tool_call>\n<tool_call>" .. CALL .. "</tool_call>")
    assert.equal(2, #found)
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

-- As models write them whose server does not know the form. What becomes of a reply: test_small_models.py, CallsAsText.
local FORMS <const> = {
  ["Hermes"] = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>',
  ["Hermes without its end"] = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}',
  ["bare JSON"] = '{"name": "read_file", "arguments": {"path": "a"}}',
  ["Llama 3"] = '{"name": "read_file", "parameters": {"path": "a"}}',
  ["Llama 3, tagged"] = '<|python_tag|>{"name": "read_file", "parameters": {"path": "a"}}<|eom_id|>',
  ["JSON fence"] = '```json\n{"name": "read_file", "arguments": {"path": "a"}}\n```',
  ["fence without a language"] = '```\n{"name": "read_file", "arguments": {"path": "a"}}\n```\n',
  ["OpenAI's object"] = '{"tool_calls": [{"function": {"name": "read_file", "arguments": {"path": "a"}}}]}',
  ["Qwen 3 Coder"] = "<tool_call>\n<function=read_file>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>",
  ["Qwen 3 Coder without marks"] = "<function=read_file>\n<parameter=path>\na\n</parameter>\n</function>",
  ["GLM"] = "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
  ["MiniMax"] = '<function_calls>\n<invoke name="read_file">\n<parameter name="path">a</parameter>\n</invoke>\n</function_calls>',
  ["Mistral"] = '[TOOL_CALLS][{"name": "read_file", "arguments": {"path": "a"}}]</s>',
  ["Mistral, newer"] = '[TOOL_CALLS]read_file[ARGS]{"path": "a"}',
  ["Harmony"] = '<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{"path": "a"}<|call|>',
}

describe("calls.find", function()
  for form, written in pairs(FORMS) do
    it("reads a call as text: " .. form, function()
      for _, said in ipairs { "", "I look.\n", "I look at `a`, \"x\n\n", "```c\nint a[] = {'\"'};\n```\nSo:\n", "1 {\n" } do
        local found, before = calls.find(said .. written .. "\n", tools)
        assert.same({ { name = "read_file", arguments = { path = "a" } } }, found, said)
        assert.equal((said:gsub("%s+$", "")), before)
      end
    end)

    it("takes one with words after it for words: " .. form, function()
      assert.is_nil(calls.find(written .. "\nwould be a call.", tools))
    end)

    it("takes none of a tool that there is not: " .. form, function()
      local found, mistake = calls.find(written:gsub("read_file", "rm"), tools)
      assert.is_nil(found)
      assert.is_truthy(mistake:find('there is no tool "rm", so nothing was done. Call the tool, or end the reply with this form: '
        .. '<tool_call>{"name": "read_file", "arguments": {...}}</tool_call>', 1, true), mistake)
    end)
  end

  it("finds several", function()
    for _, form in ipairs { "Hermes", "Qwen 3 Coder", "GLM", "MiniMax", "Mistral, newer", "JSON fence" } do
      local second = FORMS[form]:gsub(">a<", ">b<"):gsub('"a"', '"b"'):gsub("\na\n", "\nb\n")
      local found, before = calls.find("Now:\n" .. FORMS[form] .. "\n" .. second, tools)
      assert.equal("Now:", before)
      assert.same({ "a", "b", nil }, { found[1].arguments.path, found[2].arguments.path, found[3] }, form)
    end
    assert.equal(2, #calls.find("[" .. CALL .. "," .. CALL .. "]", tools))
  end)

  it("keeps what stands in the arguments", function()
    local content <const> = "# </tool_call>\n```sh\nx\n```\n\"\\[TOOL_CALLS]\n"
    local arguments <const> = json.encode { path = content }
    for _, form in ipairs {
      '<tool_call>{"name": "read_file", "arguments": %s}</tool_call>', '```json\n{"name": "read_file", "arguments": %s}\n```',
      '[TOOL_CALLS]read_file[ARGS]%s', 'to=functions.read_file<|message|>%s<|call|>',
    } do
      assert.equal(content, calls.find(form:gsub("%%s", (arguments:gsub("%%", "%%%%"))), tools)[1].arguments.path, form)
    end
    local tagged = "<function=read_file><parameter=path>\n  if a < b:\n    \"x\"\n\n</parameter>"
      .. "<parameter=lines>[1, 2]</parameter></function>"
    local typed = { { name = "read_file", parameters = { type = "object", properties = {
      path = { type = "string" }, lines = { type = "array", items = { type = "integer" } },
    } } } }
    assert.same({ path = "  if a < b:\n    \"x\"\n", lines = { 1, 2 } }, calls.find(tagged, typed)[1].arguments)
  end)

  it("says what is wrong with a call", function()
    for content, words in pairs {
      ['<tool_call>{"name": "read_file", "arguments": {"path": "a}</tool_call>'] = "it is not JSON: line 1, column",
      ['<tool_call>{"name": "read_file", "arguments": {"path": "a"}} That is it.'] = "it is not JSON: line 1, column",
      ["<function=read_file><parameter=path>a"] = 'the end of "path" is missing', ["<tool_call>{}</tool_call>"] = "it names no tool",
      ['<tool_call>{"name": "read_file"}</tool_call>'] = "it has no arguments",
      ["<tool_call>" .. CALL .. "</tool_call>\nThe file says x."] = "text stands after the call",
      ["```json\n" .. CALL .. "\n```\nThis reads it."] = "text stands after the call",
      [CALL .. "\nThis reads it."] = "text stands after the call", [CALL .. "\n" .. CALL .. "\nSo."] = "text stands after the call",
    } do
      local found, mistake = calls.find(content, tools)
      assert.is_nil(found)
      assert.is_truthy(mistake:find("but " .. words, 1, true), mistake)
    end
  end)

  it("knows other forms for calls that it does not read", function()
    for _, written in ipairs {
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n```json\n{\"path\": \"a\"}\n```<｜tool▁call▁end｜>", -- DeepSeek
      '<|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>{"path": "a"}<|tool_call_end|>', -- Kimi
      '[read_file(path="a")]', "<read_file>\n<path>a</path>\n</read_file>", -- Llama 4, Cline
      'Thought: I look.\nAction: read_file\nAction Input: {"path": "a"}', -- ReAct
    } do
      local found, mistake = calls.find(written, tools)
      assert.is_nil(found)
      assert.matches("^it looks like a call, but", mistake, 1, written)
    end
  end)

  it("takes no words about a call for one", function()
    for _, content in ipairs {
      "Use " .. CALL .. " then", '{"name":"read_file"}', '{"a":1}', "", "[]", "{",
      '["read_file"]', "All is done: read_file() takes `<tool_call>` now.", "```json\n{\"name\": \"x\", \"version\": 1}\n```",
      "```c\nread_file\n```",
      "Run\n```sh\nmake\n```\nto see it.", "done", "Use " .. CALL,
    } do
      local found, mistake = calls.find(content, tools)
      assert.is_nil(found, content)
      assert.is_nil(mistake, content)
    end
  end)

  it("takes the mark of an argument's end inside an argument for a part of it", function()
    local content = "<tool_call>\n<function=read_file>\n<parameter=path>\n<r><parameter>1</parameter></r>\nmore\n"
      .. "</parameter>\n</function>\n</tool_call>"
    assert.equal("<r><parameter>1</parameter></r>\nmore", calls.find(content, tools)[1].arguments.path)
  end)
end)

describe("calls.arguments", function()
  it("takes an object, in whatever form it comes", function()
    for _, given in ipairs {
      { a = 1 }, '{"a":1}', ' {"a":1}\n', json.encode '{"a":1}',
    } do
      assert.same({ a = 1 }, (calls.arguments(given)))
    end
    for _, given in ipairs { "", "  ", "{}", "null", json.null, json.array {}, {}, "[]" } do
      local arguments, mistake = calls.arguments(given)
      assert.equal("{}", json.encode(arguments))
      assert.is_nil(mistake)
    end
  end)

  it("mends what has one meaning: line ends in strings, a comma too many", function()
    for given, arguments in pairs {
      ['{"a":"x\n\ty\r\n"}'] = { a = "x\n\ty\r\n" }, ['{"a":[1,2,],}'] = { a = { 1, 2 } },
      ['{"a":"x,}\n","b":{"c":true ,\n}\n,}'] = { a = "x,}\n", b = { c = true } },
      ['{"n":9007199254740993}'] = { n = 9007199254740993 },
      ['{"a":"\\"\n,]"}'] = { a = '"\n,]' },
    } do
      assert.same(arguments, (calls.arguments(given)))
    end
    for _, given in ipairs { '{"a":"x\n}', '{"a":1,,}', "{,}", '{"a":[,]}', '{"a":"echo "x\n""}', '{"a":"x\\\n"}', '{"a":,}' } do
      assert.is_nil((calls.arguments(given)))
    end
  end)

  it("says what is wrong with anything else", function()
    for given, words in pairs {
      ["{oops"] = "not JSON: line 1, column 2", ["[1]"] = "must be an object, not an array of 1",
      ["1"] = "must be an object, not the number 1",
      ["true"] = "not true", ['"text"'] = "not JSON: line 1", [1] = "the number 1",
      [true] = "true", ['{"a":1'] = "the end of the text",
    } do
      local arguments, mistake = calls.arguments(given)
      assert.is_nil(arguments)
      assert.is_truthy(mistake:find(words, 1, true), mistake)
      assert.is_nil(mistake:find "\n")
    end
  end)
end)

describe("calls.name", function()
  local names = {
    { name = "read_file", exact = false }, { name = "run_command", called = { "bash", "run_shell" } }, { name = "finish" },
    { name = "artifact_put", exact = true },
  }

  it("finds what is meant", function()
    for given, name in pairs {
      read_file = "read_file", ReadFile = "read_file", ["read-file"] = "read_file", ["functions.read_file"] = "read_file",
      [" read_file\n"] = "read_file", ["read_file()"] = "read_file", redfile = "read_file", Finish = "finish", finnish = "finish",
      bash = "run_command", Bash = "run_command", runShell = "run_command", ["functions.run-shell"] = "run_command",
      ["artifact.put"] = "artifact_put", -- as the gateway calls it
    } do
      assert.equal(name, calls.name(given, names), given)
    end
    local both = { { name = "run_command", called = { "bash" } }, { name = "bash", exact = true } }
    assert.equal("bash", calls.name("bash", both), "a tool that has the name comes first")
  end)

  it("guesses nothing else", function()
    for _, given in ipairs { "", "delete", "rea", "x", "artifact_pu", ("read_file"):rep(100), (" "):rep(1000000), 1, {} } do
      assert.is_nil(calls.name(given, names))
    end
  end)
end)

describe("calls.normal", function()
  it("gives each call an id of its own", function()
    local session = { calls = 0, ids = {} }
    local given = {
      { id = "a", name = "x" }, { id = "a", name = "x" }, { id = "", name = "x" }, { id = 7, name = "x" }, { id = "call_4", name = "x" },
    }
    local seen = {}
    for _ = 1, 2 do
      for _, call in ipairs((calls.normal(given, { { name = "x" } }, session))) do
        assert.is_nil(seen[call.id])
        seen[call.id] = true
      end
    end
    assert.is_true(seen.a)
  end)

  it("keeps the arguments as they were written, where that is JSON", function()
    local session, names = { calls = 0, ids = {} }, { { name = "x" } }
    for given, written in pairs { ['{"a" :1}'] = '{"a" :1}', ['{"a":1,}'] = false, ['"{}"'] = false } do
      assert.equal(written, calls.normal({ { name = "x", arguments = given } }, names, session)[1].written or false)
    end
  end)

  it("keeps an unknown name, for the caller to refuse", function()
    local given = { { name = "nothing_like_it" }, { name = json.null } }
    local list = calls.normal(given, { { name = "x_y" } }, { calls = 0, ids = {} })
    assert.same({ "nothing_like_it", "(no name)" }, { list[1].name, list[2].name })
  end)
end)

local function split(text) return { calls.thinking(text) } end

describe("calls.thinking", function()
  for _, case in ipairs {
    { "", "", "" }, { "hello", "hello", "" }, { "<think>hm</think>hello", "hello", "hm" },
    { "\n <think>\nhm\n\nhm </think>\n\n hello ", "hello ", "hm\n\nhm" }, { "<thinking>hm</thinking>hello", "hello", "hm" },
    { "<think></think>hello", "hello", "" }, { "<think>never ends", "", "never ends" }, { "<thi", "<thi", "" },
    { "< think>a</p>", "< think>a</p>", "" }, { "  hello", "  hello", "" }, { "hm</think>\nhello", "hello", "hm" },
    { "write <think>x</think> there", "write <think>x</think> there", "" },
    { "<think>a<think>b</think>c</think>d", "c</think>d", "a<think>b" },
  } do
    it(("splits %q"):format(case[1]), function() assert.same({ case[2], case[3] }, split(case[1])) end)
  end

  it("takes a long text that a search which goes back would not end", function()
    local blanks, nested, torn, words = (" "):rep(2000000), ("<think>"):rep(300000), ("</thin"):rep(300000), (" x"):rep(1000000)
    for text, expected in pairs {
      [blanks] = { blanks, "" }, [nested] = { "", nested:sub(#"<think>" + 1) }, ["<think>" .. torn] = { "", torn }, [words] = { words, "" },
    } do
      local got = split(text)
      assert.is_true(got[1] == expected[1] and got[2] == expected[2])
    end
  end)
end)
