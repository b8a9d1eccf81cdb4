-- SPDX-License-Identifier: Apache-2.0
local json = require "sba.util.json"
local reply = require "sba.model.reply"

local tools <const> = {
  { name = "read_file", parameters = { type = "object", properties = { path = { type = "string" } } } },
  { name = "finish", parameters = { type = "object", properties = {} } },
}

local function session() return { calls = 0, ids = {} } end

--- A reply of these parts: a text of content, or { index, id, name, arguments }; a reason ends it.
local function built(parts, reason, wanted)
  local builder = reply.new(wanted or { tools = tools })
  for _, part in ipairs(parts) do
    if type(part) == "string" then
      builder:content(part)
    else
      builder:call { index = part[1], id = part[2], name = part[3], arguments = part[4] }
    end
  end
  builder:ended(reason)
  return builder
end

local function calls_of(builder)
  local list = {}
  for i, one in ipairs(builder:finish(session()).tool_calls) do
    list[i] = one.name .. " " .. tostring(one.arguments.path)
  end
  return list
end

describe("a reply", function()
  it("is whole, broken or open, by the reason of its end", function()
    for reason, state in pairs {
      stop = "whole", length = "whole", tool_calls = "whole", function_call = "whole", content_filter = "whole",
      eos = "whole", MAX_TOKENS = "whole", error = "broken", network_error = "broken", aborted = "broken",
      cancelled = "broken", insufficient_system_resource = "broken", [""] = "open", [7] = "open", [json.null] = "open",
    } do
      assert.equal(state, built({ "hello" }, reason).state, tostring(reason))
    end
    for _, reason in ipairs { "length", "MAX_TOKENS", "max_output_tokens", "model_context_window_exceeded" } do
      assert.equal("length", built({}, reason).done_reason)
    end
    assert.is_true(built({}, "error").failure.transient)
    assert.matches("could not read the call", built({}, "malformed_function_call"):finish(session()).unreadable)
  end)

  it("stays what it was at first", function()
    local builder = built({ "x" }, "stop")
    builder:ended "error"
    assert.equal("whole", builder.state)
    builder = built({ "x" }, "error")
    builder:ended "stop"
    assert.equal("broken", builder.state)
  end)

  it("is whole at a mark without a reason, if what it has is", function()
    local many <const> = { { 0, "x", "read_file", '{"path":"' } } -- each with the name
    for i = 2, 300 do many[i] = { 0, nil, "read_file", "a" } end
    many[301] = { 0, nil, nil, '"}' }
    for parts, state in pairs {
      [many] = "whole", [{ { 0, "x", "read_file", '{"path":"a"}' } }] = "whole", [{ "hello" }] = "whole",
      [{ { 0, "x", "read_file", '{"path":' } }] = "open", [{}] = "open",
    } do
      local builder = built(parts)
      builder:marked_end()
      assert.equal(state, builder.state)
    end
  end)

  it("has content and thinking of parts, too", function()
    local builder = reply.new()
    builder:content(json.array {
      { type = "thinking", text = json.null, thinking = json.array { { type = "text", text = "hm" } } },
      { type = "text", text = "forty" }, "-two", 7, {}, { type = "refusal", text = "", refusal = "!" },
    })
    builder:content { { { { { { { { { { "too deep" } } } } } } } } } }
    builder:thinking("so", "reasoning")
    assert.same({ "forty-two!", "hmso", "reasoning" }, { builder:texts(), select(2, builder:texts()),
      builder.thinking_field })
  end)

  it("counts what was cached, whether the server's count has it or not", function()
    for _, case in ipairs { { 3000, 2000, 3000 }, { 40, 2960, 3000 }, { 40, nil, 40 }, { nil, 5, nil } } do
      local builder = reply.new()
      builder:counted(case[1], 20, case[2])
      assert.equal(case[3], builder.prompt_tokens)
    end
  end)
end)

describe("fragments of calls", function()
  local A <const>, B <const> = "read_file a", "read_file b"
  local READ <const>, PATH_A <const>, PATH_B <const> = "read_file", '{"path":"a"}', '{"path":"b"}'
  local cases <const> = {
    { "two by index", { A, B },
      { { 0, "x", READ, '{"pa' }, { 1, "y", READ, '{"path"' }, { 0, nil, nil, 'th":"a"}' }, { 1, "", "", ':"b"}' } } },
    { "a new id under the same index", { A, B },
      { { 0, "x", READ, PATH_A }, { 0, "y", READ, '{"path"' }, { 0, nil, nil, ':"b"}' } } },
    { "two by id, then the last", { A, B },
      { { nil, "x", READ, '{"pa' }, { nil, "x", nil, 'th":"a"}' }, { nil, "y", READ, '{"path"' },
        { nil, nil, nil, ':"b"}' } } },
    { "its name with each fragment", { A, B },
      { { 0, "x", READ, '{"pa' }, { 0, "x", READ, 'th":"a"}' }, { 1, "y", READ, PATH_B } } },
    { "arguments as a table", { A, B }, { { 0, nil, READ, { path = "a" } }, { 1, nil, READ, PATH_B } } },
    { "neither index nor id", { A, B }, { { nil, nil, READ, PATH_A }, { nil, nil, READ, PATH_B } } },
    { "all with index 0 and an empty id", { A, B }, { { 0, "", READ, PATH_A }, { 0, "", READ, PATH_B } } },
    { "whole tables with index 0", { A, B }, { { 0, nil, READ, { path = "a" } }, { 0, nil, READ, { path = "b" } } } },
    { "another id with each fragment", { A }, { { 0, "x", READ, '{"pa' }, { 0, "y", nil, 'th":"a"}' } } },
    { "a new name", { A, "finish nil" }, { { 0, nil, READ, PATH_A }, { 0, nil, "finish", "{}" } } },
    { "a name in pieces", { A }, { { 0, "x", "read_", "" }, { 0, nil, "file", "" }, { 0, nil, nil, PATH_A } } },
    { "a name that grows", { A }, { { 0, "x", "read_", "" }, { 0, nil, READ, PATH_A } } },
    { "a late name", { A }, { { 0, "x", nil, PATH_A }, { 0, nil, READ } } },
    { "null at first", { A }, { { 0, "x", READ, json.null }, { 0, json.null, json.null, PATH_A } } },
    { "all so far with each fragment", { A },
      { { 0, "x", READ, '{"pa' }, { 0, nil, nil, '{"path":' }, { 0, nil, nil, PATH_A }, { 0, nil, nil, PATH_A } } },
    { "an empty table at first", { A }, { { 0, "x", READ, {} }, { 0, nil, nil, PATH_A } } },
    { "another index with the tail of a call", { A, B },
      { { 0, "x", READ, PATH_A }, { 0, "y", READ, "" }, { 1, nil, nil, '{"path"' }, { 1, nil, nil, ':"b"}' } } },
    { "a call sent twice", { A }, { { 0, "x", READ, PATH_A }, { 1, "x", READ, PATH_A } } },
    { "one id, other indexes", { A }, { { 0, "x", READ, "" }, { 1, "x", READ, PATH_A }, { 2, "x", READ, PATH_A } } },
    { "two equal calls", { A, A }, { { 0, "x", READ, PATH_A }, { 1, "y", READ, PATH_A } } },
  }

  it("count also where the reply was asked for as JSON", function()
    local parts <const> = { { 0, "x", "read_file", '{"path":"a"}' } }
    assert.same({ A }, calls_of(built(parts, "stop", { tools = tools, is_json = true })))
  end)

  it("are put together", function()
    for _, case in ipairs(cases) do assert.same(case[2], calls_of(built(case[3], "stop")), case[1]) end
  end)

  it("are calls in every shape", function()
    for name, value in pairs {
      ["a list"] = json.array { { ["function"] = { name = "read_file", arguments = { path = "a" } } } },
      ["one object"] = { ["function"] = { name = "read_file", arguments = '{"path":"a"}' } },
      ["without function"] = json.array { { name = "read_file", parameters = { path = "a" } } },
      ["null"] = json.array { { name = "read_file", arguments = json.null, parameters = { path = "a" } } },
      ["with more"] = json.array {
        7, { type = "function", ["function"] = { name = "read_file", arguments = { path = "a" } } },
      },
    } do
      local builder = reply.new { tools = tools }
      builder:calls_of(value)
      builder:ended "stop"
      assert.same({ A }, calls_of(builder), name)
    end
  end)

  it("keep what stands beside a call", function()
    local builder = reply.new { tools = tools }
    builder:call { index = 0, name = "finish", arguments = "{}", extra = { google = { signature = "x" } } }
    builder:ended "stop"
    assert.same({ google = { signature = "x" } }, builder:finish(session()).tool_calls[1].extra)
  end)

  it("are bounded in number and size", function()
    local builder = reply.new()
    for i = 1, 100000 do
      builder:call { index = i, name = "x", arguments = "" }
      if builder.failure then break end
    end
    assert.equal("too_large", builder.failure.code)
  end)
end)

describe("blanks at the end", function()
  local BLANKS <const> = ("\n"):rep(200)
  local CALL <const> = '<tool_call>{"name":"read_file","arguments":{"path":"a"}}</tool_call>'

  it("end a reply that holds a whole call or a text", function()
    for _, case in ipairs {
      { { "All is done." }, "stop" }, { { CALL }, "stop" }, { { "```c\nint a;\n```" }, "stop" },
      { { '{"tool":"read_file","arguments":{"path":"a"}}' }, "stop", is_json = true },
      { { { 0, "x", "read_file", '{"path":"a"}' } }, "tool_calls" }, { { CALL .. "\nIt is read." }, "stop" },
      { { '```\n{"answer": "a [", "status": "done"}\n```' }, "stop" },
    } do
      local builder = built(case[1], nil, { tools = tools, is_json = case.is_json })
      for _ = 1, 10 do builder:content "\n \t\n" end
      assert.is_false(builder.is_over)
      builder:content(BLANKS)
      assert.same({ true, "whole", case[2] }, { builder.is_over, builder.state, builder.done_reason })
    end
  end)

  it("end arguments that are whole", function()
    local builder = built { { 0, "x", "read_file", '{"path":"a"}' } }
    for _ = 1, 200 do builder:call { index = 0, arguments = "\n" } end
    assert.is_true(builder.is_over)
    assert.same({ "read_file a" }, calls_of(builder))
  end)

  it("end nothing else", function()
    for _, part in ipairs {
      "", "<think>hm", "<function=read_file>\n<parameter=path>", '<tools>{"name": "read_file"',
      '<tool_call>{"name":"read_file","arguments":{"path":"', "```python\nx = 1", { 0, "x", "read_file", '{"path":"' },
    } do
      local builder = built { part }
      if type(part) == "table" then
        builder:call { index = 0, arguments = BLANKS }
      else
        builder:content(BLANKS)
      end
      assert.is_false(builder.is_over)
    end
    local open <const> = { '{"tool":"read_file","arguments":{"path":"', BLANKS }
    assert.is_false(built(open, nil, { tools = tools, is_json = true }).is_over)
  end)
end)

describe("a tool's result that a model makes up", function()
  local CALL <const> = '<tool_call>{"name":"read_file","arguments":{"path":"a"}}</tool_call>'
  local MARKS <const> = {
    "<tool_response>", "<function_results>", "<|observation|>", "[TOOL_RESULTS]", "<｜tool▁outputs▁begin｜>",
  }

  it("ends the reply, and counts no more than what follows it", function()
    for _, mark in ipairs(MARKS) do
      for _, before in ipairs { CALL .. "\n", CALL, "I look.\n" .. CALL .. "\n\n" } do
        local builder = built { before, mark:sub(1, 5), mark:sub(6), "\nthe file is empty" }
        assert.is_true(builder.is_over, mark)
        local result = builder:finish(session())
        assert.same({ 1, "a" }, { #result.tool_calls, result.tool_calls[1].arguments.path })
      end
      local result = built({ mark .. "\nall tests pass" }):finish(session())
      assert.same({ "", 0 }, { result.content, #result.tool_calls })
      assert.matches("only the tool can give", result.unreadable)
    end
  end)

  it("is looked for only so often in a text that is full of its marks", function()
    local builder, looks = built { "```\n" }, 0
    function builder:told_apart()
      looks = looks + 1
      return reply.told_apart(self)
    end
    for i = 1, 1000 do builder:content(("\n<tool_response>%d"):format(i)) end
    assert.same({ false, true }, { builder.is_over, looks < 300 })
  end)

  it("is none in words, in a call's arguments, and where there are no tools", function()
    local text = "The mark <tool_response> begins a result.\n"
    assert.equal(text, built({ text }, "stop"):finish(session()).content)
    local lines = "<tool_call>\n<function=write_file>\n<parameter=path>\na\n</parameter>\n<parameter=content>\n"
    local builder = built { lines, "<tool_response>\n", "</parameter>\n</function>\n</tool_call>" }
    assert.is_false(builder.is_over)
    local asked = built({ "<tool_response>\nyes" }, "stop", {})
    assert.equal("<tool_response>\nyes", asked:finish(session()).content)
  end)
end)

describe("a reply that was stopped", function()
  it("keeps the calls that were whole", function()
    local whole = { 0, "x", "read_file", '{"path":"a"}' }
    local builder = built { whole, ("ha "):rep(10000) }
    local result = builder:stopped(builder.failure.repeated, session())
    assert.same({ 1, "repetition" }, { #result.tool_calls, result.done_reason })
    builder = built { { 0, "x", "read_file", '{"path":"' .. ("0"):rep(100000) } }
    result = builder:stopped(builder.failure.repeated, session())
    assert.equal(0, #result.tool_calls)
    assert.matches("over and over", result.unreadable)
  end)

  it("keeps a call as text, and nothing else that was done", function()
    local CALL <const> = '<tool_call>{"name":"read_file","arguments":{"path":"a"}}</tool_call>\n'
    for _, junk in ipairs { "</tool_response>\n", "ha ", "\n\n", "I am done. " } do
      local builder = built { "I look.\n" .. CALL .. junk:rep(4000) }
      local result = builder:stopped(builder.failure.repeated, session())
      assert.same({ 1, "a", "I look." }, { #result.tool_calls, result.tool_calls[1].arguments.path, result.content })
    end
    local builder = built { CALL .. "The file says no. " .. ("ha "):rep(4000) }
    assert.equal(0, #builder:stopped(builder.failure.repeated, session()).tool_calls)
  end)
end)

describe("a window without room for a reply", function()
  it("is told from thinking that nobody sees", function()
    local function has_no_room(parts, reason, completion)
      local builder = built(parts, reason)
      builder:counted(4000, completion)
      return builder:has_no_room(1000)
    end
    assert.is_true(has_no_room({}, "length", nil))
    assert.is_true(has_no_room({ " " }, "length", 1))
    assert.is_false(has_no_room({}, "length", 1000))
    assert.is_false(has_no_room({ "So" }, "length", 1))
    assert.is_false(has_no_room({}, "stop", 1))
  end)
end)
