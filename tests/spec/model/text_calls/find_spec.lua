-- SPDX-License-Identifier: Apache-2.0
local find = require "sba.model.text_calls.find"
local forms = require "sba.model.text_calls.forms"
local json = require "sba.util.json"

local function object(properties, required)
  return { type = "object", required = required, properties = properties }
end
local string <const> = { type = "string" }
local tools = {
  { name = "apply_unified_diff", hidden = true, parameters = object { diff = string } },
  { name = "read_file", description = "Read a file.", parameters = object({ path = string }, { "path" }) },
  { name = "run_command", parameters = object({ command = string }, { "command" }) },
}
local CALL <const> = '{"thought":"hm","tool":"read_file","arguments":{"path":"a"}}'
local RUN <const> = { { name = "run_command", arguments = { command = "ls" } } }

describe("find.read", function()
  for _, content in ipairs {
    CALL, "  " .. CALL .. "\n", "```json\n" .. CALL .. "\n```",
    "Well:\n```\n" .. CALL .. "\n```\nSo be it.", "I will call " .. CALL .. " now.",
    "<tool_call>\n" .. CALL .. "\n</tool_call>", "so <tool_call>" .. CALL, "if (x) { y } " .. CALL,
    '{"name":"read_file","parameters":{"path":"a"}}', '{"action":"read_file","action_input":{"path":"a"}}',
    '{"read_file":{"path":"a"}}',
    '{"function":{"name":"read_file","arguments":{"path":"a"}}}', '[{"name":"read_file","args":{"path":"a"}}]',
    '{"tool_calls":[{"id":"1","type":"function","function":{"name":"read_file","arguments":{"path":"a"}}}]}',
    '{"tool":"read_file","path":"a"}', "{'tool': 'read_file', 'arguments': {'path': 'a'}}",
  } do
    it("reads " .. content:gsub("\n", " "), function()
      local found, mistake = find.read(content, tools)
      assert.is_nil(mistake)
      assert.same({ "read_file", { path = "a" } }, { found[1].name, found[1].arguments })
    end)
  end

  it("leaves arguments in a string to be read later, and the thought with the call", function()
    local written <const> = '{"tool":"read_file","arguments":"{\\"path\\":\\"a\\"}"}'
    assert.equal('{"path":"a"}', find.read(written, tools)[1].arguments)
    assert.equal("hm", find.read(CALL, tools)[1].thought)
  end)

  it("says why there is none, and the form", function()
    for content, why in pairs {
      ["I think that"] = "not JSON: line 1, column 1", [""] = "the end of the text", ["{}"] = "names no tool",
      ['{"path":"a"}'] = "names no tool", ['{"tool":null}'] = "names no tool", ["[1,2]"] = "names no tool",
      ['{"tool":"read_file","argum'] = "the end of the text", ["{{{"] = "not JSON",
      ['{"tool":"read_file","arguments":{},"path":"a"}'] = '"path" stands beside',
    } do
      local found, mistake = find.read(content, tools)
      assert.is_nil(found, content)
      assert.is_truthy(mistake:find(why, 1, true), ("%s: %s"):format(content, mistake))
      assert.is_truthy(mistake:find('"tool": "read_file", "arguments": {"path":"..."}}', 1, true) , mistake)
    end
  end)
end)

describe("each form of the table", function()
  for _, form in ipairs(forms.list) do
    if form.read then
      it("is read: " .. form.name, function()
        local quoted <const> = "```c\nint a[] = {'\"'};\n```\nSo:\n"
        for _, said in ipairs { "", "I look.\n", "I look at `a`, \"x\n\n", quoted, "1 {\n" } do
          local found, before = find.calls(said .. form.example .. "\n", tools)
          assert.same(RUN, found, said)
          assert.equal((said:gsub("%s+$", "")), before)
        end
      end)

      it("is not acted upon where words follow: " .. form.name, function()
        assert.is_nil(find.calls(form.example .. "\nwould be a call.", tools))
      end)

      it("is not acted upon where it is cut: " .. form.name, function()
        for size = 1, form.example:find("ls", 1, true) do
          assert.is_nil(find.calls(form.example:sub(1, size), tools), size)
        end
      end)

      it("may name no other tool: " .. form.name, function()
        local found, mistake = find.calls(form.example:gsub("run_command", "rm"), tools)
        assert.is_nil(found)
        if not form.is_marked and form.name ~= "JSON in a code block" and not mistake then return end -- words
        local told <const> = 'there is no tool "rm", so nothing was done. Call the tool, or end the reply with '
          .. 'this form: <tool_call>{"name": "read_file", "arguments": {"path":"..."}}</tool_call>'
        assert.is_truthy(mistake:find(told, 1, true), mistake)
      end)
    else
      it("is no call: " .. form.name, function() assert.same({}, { find.calls(form.example, tools) }) end)
    end
  end

  for _, form in ipairs(forms.told) do
    it("is answered with the form that is read: " .. form.name, function()
      local found, mistake = find.calls(form.example, tools)
      assert.is_nil(found)
      assert.matches("^it looks like a call, but", mistake)
      assert.matches('{"name": "run_command", "arguments": {"command":"..."}}</tool_call>$', mistake)
    end)
  end
end)

describe("find.calls", function()
  it("reads the marks of small models", function()
    local call <const> = '{"name": "run_command", "arguments": {"command": "ls"}}'
    local invoke <const> = '<invoke name="run_command">\n<parameter name="command">ls</parameter>\n</invoke>'
    for _, written in ipairs {
      call, "<tool_call>" .. call, "<tools>\n" .. call .. "\n</tools>", "<tool_call>\n" .. call .. "\n</tool_response>",
      "<tool_calls>[" .. call .. "]</tool_calls>", "<function_call>" .. call .. "</function_call>",
      "<tool_call>" .. call .. "\n<tool_call>", "<tool_call>" .. call:sub(1, -2) .. "</tool_call>",
      "```\n" .. call .. "\n```", '{"tool_calls": [{"function": ' .. call .. "}]}",
      '<function=run_command={"command": "ls"}</function>', '<function(run_command)>{"command": "ls"}</function>',
      "<minimax:tool_call>\n" .. invoke .. "\n</minimax:tool_call>",
      "<function_calls>\n" .. invoke .. "\n</function_calls>",
      '<tool_call>{"name": "run_command", "command": "ls"}</tool_call>',
      '<tool_call>{"name": "functions.run_command", "command": "ls"}</tool_call>',
      "<TOOLCALL>[" .. call .. "]</TOOLCALL>",
      '{"Tool_Name": "run_command", "tool_args": {"command": "ls"}}', '{"function_call": ' .. call .. "}",
      "<seed:tool_call>\n<function=run_command><parameter=command>ls</parameter></function></seed:tool_call>",
      '<｜DSML｜tool_calls><｜DSML｜ invoke name="run_command">\n<｜DSML｜parameter name="command" string="true">ls'
        .. "</｜DSML｜parameter></｜DSML｜ invoke></｜DSML｜tool_calls>",
      '<|open|>tools<|sep|><|open|>call tool="run_command" index="0"<|sep|><|open|>argument key="command" type="string"'
        .. "<|sep|>ls<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
      '<|tool_calls_section_begin|><|tool_call_begin|>run_command:0<|tool_call_argument_begin|>{"command": "ls"}'
        .. "<|tool_call_end|><|tool_calls_section_end|>",
      '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>run_command\n```json\n{"command": "ls"}\n```'
        .. "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
      '<｜tool▁call▁begin｜>run_command<｜tool▁sep｜>{"command": "ls"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
      '<tool name="run_command">{"command": "ls"}</tool>', '<tool_call name=run_command>{"command": "ls"}</tool_call>',
      '<x:invoke name="run_command">\n<x:parameter name="command">ls</x:parameter>\n</x:invoke>',
      "<function=run_command>\n<parameter=command>\nls\n</parameter>\n</tool_call>",
      '<|START|>[{"tool_call_id": "0", "tool_name": "run_command", "parameters": {"command": "ls"}}]<|END|>',
      "```xml\n<tool_call>" .. call .. "</tool_call>\n```", "```xml\n" .. invoke .. "\n```",
    } do
      local found, mistake = find.calls(written, tools)
      assert.is_nil(mistake ~= "" and mistake or nil, written)
      assert.same({ { command = "ls" }, nil }, { found[1].arguments, found[2] }, written)
    end
  end)

  it("finds several", function()
    for _, form in ipairs(forms.list) do
      local at_end = form.name == "Phi 4" or form.name:find "^GLM 4$"
      if form.read and not at_end then
        local found, before = find.calls("Now:\n" .. form.example .. "\n" .. form.example:gsub("ls", "pwd"), tools)
        assert.same({ 2, "Now:" }, { #found, before }, form.name)
        assert.same({ "ls", "pwd" }, { found[1].arguments.command, found[2].arguments.command }, form.name)
      end
    end
    for _, written in ipairs {
      "[" .. CALL .. "," .. CALL .. "]", CALL .. "\n" .. CALL, "So:\n" .. CALL .. "\n\n" .. CALL,
      "<tool_call>\n" .. CALL .. "\n" .. CALL .. "\n</tool_call>",
      "<tool_call>" .. CALL .. "<tool_call>" .. CALL .. "</tool_call>",
    } do
      assert.equal(2, #find.calls(written, tools), written)
    end
  end)

  it("reads those of the thinking where the reply holds nothing else", function()
    local thought <const> = "I look.\n<tool_call>" .. CALL .. "</tool_call>"
    assert.equal("read_file", find.calls("", tools, thought)[1].name)
    assert.equal("read_file", find.calls(" \n", tools, CALL)[1].name)
    assert.is_nil(find.calls("It is done.", tools, thought))
    assert.same({}, { find.calls("", tools, thought .. " No, rather not.") })
  end)

  it("keeps what stands in the arguments", function()
    local content <const> = "# </tool_call>\n```sh\nx\n```\n\"\\[TOOL_CALLS]\n</think>"
    local arguments <const> = json.encode { path = content }
    for _, form in ipairs {
      '<tool_call>{"name": "read_file", "arguments": %s}</tool_call>',
      '```json\n{"name": "read_file", "arguments": %s}\n```', '[TOOL_CALLS]read_file[ARGS]%s',
      'to=functions.read_file<|message|>%s<|call|>', "<function=read_file>%s</function>",
      '{"name": "read_file", "arguments": %s}',
    } do
      local written = form:gsub("%%s", (arguments:gsub("%%", "%%%%")))
      assert.equal(content, find.calls(find.thinking(written), tools)[1].arguments.path, form)
    end
    local tagged = "<function=read_file><parameter=path>\n  if a < b:\n    \"x\"</think>\n\n</parameter>"
      .. "<parameter=lines>false</parameter></function>"
    local found = find.calls(find.thinking(tagged), tools)
    assert.same({ path = "  if a < b:\n    \"x\"</think>\n", lines = "false" }, found[1].arguments)
  end)

  it("says what is wrong with a call", function()
    local PATH <const> = "<parameter=path>a</parameter>"
    local marked <const> = "<tool_call>" .. CALL .. "</tool_call>"
    for content, words in pairs {
      ['<tool_call>{"name": "read_file", "arguments": {"path": "a}</tool_call>'] = "it is not JSON: line 1, column",
      ['<tool_call>{"name": "read_file", "arguments": {"path": "a"}} That is it.'] = "it is not JSON: line 1, column",
      ["<function=read_file><parameter=path>a"] = 'the end of "path" is missing',
      ["<tool_call>{}</tool_call>"] = "it names no tool",
      ["<tool_use><name>read_file</name></tool_use>"] = "it is not in a form that is known here",
      ["<function=read_file>now" .. PATH .. "</function>"] = 'it holds "now", which is no argument',
      ["<function=read_file>" .. PATH .. "b</function>"] = 'the end of "path" is missing',
      ["<function=read_file>path: a</function>"] = 'it holds "path: a", which is no argument',
      ["<function=read_file>" .. PATH .. PATH .. "</function>"] = 'it has two values for "path"',
      ['<function=read_file>{"path": "a"}{"path": "b"}</function>'] = "there is more than one value for its arguments",
      ['<tool_call>{"name": "read_file", "arguments": {}, "path": "a"}</tool_call>'] =
        '"path" stands beside the arguments',
      [marked .. "\nThe file says x."] = "text stands after the call",
      [marked .. "\nIt says x.\n" .. marked] = "text stands between it and another call",
      ["```json\n" .. CALL .. "\n```\nThis reads it."] = "text stands after the call",
      [CALL .. "\nThis reads it."] = "text stands after the call",
      [CALL .. "\n" .. CALL .. "\nSo."] = "text stands after the call",
    } do
      local found, mistake = find.calls(content, tools)
      assert.is_nil(found, content)
      assert.is_truthy(mistake:find("but " .. words, 1, true), mistake)
    end
  end)

  it("takes no words about a call for one", function()
    for _, content in ipairs {
      '{"name":[1],"id":{"arguments":{}}}', "Use " .. CALL .. " then", '{"name":"read_file"}', '{"a":1}', "", "[]", "{",
      '{"name":"read_file","version":"1.0"}', '["read_file"]', "All is done: read_file() takes `<tool_call>` now.",
      "```json\n{\"name\": \"x\", \"version\": 1}\n```", "```c\nread_file\n```",
      "```xml\n<a>" .. CALL .. "</a>\nis a call\n```", "Run\n```sh\nmake\n```\nto see it.", "done", "Use " .. CALL,
    } do
      assert.same({}, { find.calls(content, tools) }, content)
    end
  end)

  it("takes an object that can be the arguments of one tool alone, and nothing beside it, for its call", function()
    local answer <const> = object { ok = { type = "boolean" } }
    local finish <const> = { name = "finish", parameters = object({ answer = string, status = string }, { "answer" }) }
    local all = { tools[1], tools[2], tools[3], finish }
    local done <const> = '{"answer": "It is ```x```.", "status": "done"}'
    for _, written in ipairs {
      done, "```json\n" .. done .. "\n```", "```\n" .. done .. "\n```\n", "<answer>" .. done .. "</answer>",
      "<tool_call>\n" .. done .. "\n</tool_call>", "\n  " .. done .. "\n",
    } do
      local found, before = find.calls(written, all)
      assert.same({ "finish", "It is ```x```.", "" }, { found[1].name, found[1].arguments.answer, before }, written)
      assert.equal("the reply named no tool; its arguments are those of finish alone", found[1].note)
    end
    for _, written in ipairs {
      "It is done: " .. done, done .. "\nThat is it.", done .. done, "[" .. done .. "]", done:sub(1, -2),
      "```json\n" .. done:sub(1, -2), '{"status": "done"}', '{"answer": "x", "more": 1}', '{"diff": "x"}', "{}",
      "```json\n" .. done .. "\n```\n```json\n" .. done .. "\n```",
    } do
      assert.is_nil(find.calls(written, all), written)
    end
    local twice <const> = { name = "tell", parameters = finish.parameters }
    local gateways <const> = { name = "gw", exact = true, parameters = finish.parameters }
    local answering <const> = { name = "finish", parameters = object({ answer = answer }, { "answer" }) }
    local checks <const> = { name = "check", parameters = object({ ok = { type = "boolean" } }, { "ok" }) }
    assert.is_nil(find.calls(done, { finish, twice }))
    assert.is_nil(find.calls(done, { finish, gateways }))
    assert.is_nil(find.calls(done, { gateways }))
    assert.is_nil(find.calls('{"ok": true}', { checks, answering }))
    assert.equal("finish", find.calls('{"answer": {"ok": true}}', { checks, answering })[1].name)
  end)

  it("takes the line ends at both marks of an argument for no part of it", function()
    for written, path in pairs { ["\na\n"] = "a", ["a\n"] = "a\n", ["\n\na\n\n"] = "\na\n", ["\n"] = "", [""] = "" } do
      local content = "<invoke name=\"read_file\">\n<parameter name=\"path\">" .. written .. "</parameter>\n</invoke>"
      assert.equal(path, find.calls(content, tools)[1].arguments.path)
    end
  end)

  it("takes the mark of an argument's end inside an argument for a part of it", function()
    local content = "<tool_call>\n<function=read_file>\n<parameter=path>\n<r><parameter>1</parameter></r>\nmore\n"
      .. "</parameter>\n</function>\n</tool_call>"
    assert.equal("<r><parameter>1</parameter></r>\nmore", find.calls(content, tools)[1].arguments.path)
  end)
end)

local function split(text) return { find.thinking(text) } end

describe("find.thinking", function()
  for _, case in ipairs {
    { "", "", "" }, { "hello", "hello", "" }, { "<think>hm</think>hello", "hello", "hm" },
    { "\n <think>\nhm\n\nhm </think>\n\n hello ", "hello ", "hm\n\nhm" },
    { "<thinking>hm</thinking>hello", "hello", "hm" }, { "<thi", "<thi", "" }, { "<think></think>hello", "hello", "" },
    { "<think>never ends", "", "never ends" }, { "< think>a</p>", "< think>a</p>", "" }, { "  hello", "  hello", "" },
    { "hm</think>\nhello", "hello", "hm" }, { "write <think>x</think> there", "write <think>x</think> there", "" },
    { "<think>a<think>b</think>c</think>d", "c</think>d", "a<think>b" },
  } do
    it(("splits %q"):format(case[1]), function() assert.same({ case[2], case[3] }, split(case[1])) end)
  end
end)
