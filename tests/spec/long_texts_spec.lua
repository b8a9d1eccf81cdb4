-- SPDX-License-Identifier: Apache-2.0
-- Long texts from outside, each made so that a reader that goes back, or copies what it has, would take hours over it,
-- and many more of Lua's instructions than the text has bytes. For Lua's patterns, tests/style/patterns.lua says so of
-- all.
local arguments = require "sba.agent.arguments"
local context = require "sba.job.context"
local transcript = require "sba.agent.transcript"
local find = require "sba.model.text_calls.find"
local file = require "native.file"
local journal = require "sba.report.source".journal
local apply_unified_diff = require "sba.steps.apply_unified_diff"
local fold = require "sba.journal.fold"
local schemas = require "sba.result.events"
local repetition = require "sba.model.repetition"
local scratch = require "scratch"
local text = require "native.text"

local LONG <const> = 300000
local MOST <const> = 400 -- Lua's instructions for a byte

local function many(characters) return characters:rep(LONG // #characters) end

--- What a call gives. Fails if it takes more of Lua's instructions than a text of that size may. What C and LPeg do
--- in one of them is bounded by the time that the whole test has.
local function within(size, call, ...)
  local left = size * MOST
  local thread = coroutine.create(call)
  debug.sethook(thread, function()
    left = left - 1000
    if left < 0 then error("more than " .. MOST .. " instructions for a byte", 0) end
  end, "", 1000)
  local results = table.pack(coroutine.resume(thread, ...))
  assert(results[1], results[2])
  return table.unpack(results, 2, results.n)
end

describe("a long text", function()
  local here = scratch()

  it("is trimmed", function()
    assert.is_true(text.trim("\n " .. "a" .. many " " .. "b" .. many "\t") == "a" .. many " " .. "b")
    assert.equal("", text.trim(many " \n"))
    assert.is_true(text.trim_end("a" .. many "/" .. "b//", "/") == "a" .. many "/" .. "b")
    assert.equal("a\0", text.trim_end("a\0 "))
  end)

  it("may be the torn last line of a journal", function()
    local torn = '{"event":"job","job_sha256":"x","started_wall":1}\n{"event":"' .. many "a"
    here:put("journal.jsonl", torn)
    local log <close> = assert(file.open(here.path .. "/journal.jsonl"))
    local read = assert(fold.resume(log, "", { schemas = schemas, job_file = { sha256 = "x" } }))
    assert.equal(1, read.job.started_wall)
    local _, note = journal(log, {})
    assert.truthy(note:find("its last line is incomplete, which happens when the runner is killed", 1, true))
  end)

  it("may be a file of requirements", function()
    local function requirements(markdown)
      here:put("context/requirements.md", markdown)
      return context.load(nil, here.path .. "/").requirements
    end
    assert.same({ "a" .. many " " .. "b" }, requirements("a" .. many " " .. "b"))
    assert.same({ "a" }, requirements("a" .. many "\t"))
    assert.equal(LONG - 1, #requirements(many "a\n")[1])
    assert.equal(LONG // 4, #requirements(many "- a\n"))
  end)

  it("may be a reply of a model", function()
    local tools = { { name = "read_file" } }
    for _, reply in ipairs {
      many "``` ", many "`", "```" .. many "a", many "<tool_call>", many "{", many "{}", many "```\nx", many "x ```",
      many " ", many "\n", many "[", many '{"a":', many "<tool_call>{", many '<tool_call>{"', many '<tool_call>{"\\',
      many "<tool_call>" .. many "[", many "<function=a><parameter=b>", many "<tool_call>a<arg_key>",
      many "to=functions.a", many "<|message|>to=functions.a", many "[TOOL_CALLS]a[ARGS]{", many '<invoke name="',
      many '"\n', many "[1,]", many "```json\n{}```\n", many "```json\n[", many "<tool_call>{'a", many "\\",
      many '{"a": "\\', many "</think>", many "functools[", many "read_file\n{", many "<function=read_file>{",
      many "\nread_file(", many "[read_file", many "<tool_call>{}</tool_call>x",
    } do
      assert.is_nil((within(#reply, find.read, reply, tools)))
      assert.is_nil((within(#reply, find.calls, reply, tools)))
      within(#reply, find.thinking, reply)
    end
    local nested, torn = many "<think>", many "</thin"
    assert.same({ "", nested:sub(#"<think>" + 1) }, { within(#nested, find.thinking, nested) })
    assert.same({ "", torn }, { within(#torn, find.thinking, "<think>" .. torn) })
    assert.same({ many " x", "" }, { within(LONG, find.thinking, many " x") })
    local _, before = find.calls(many "<tool_call>" .. '<tool_call>{"name":"read_file","arguments":{}}'
      .. many "</tool_call>", tools)
    assert.equal(#many "<tool_call>", #before)
    assert.equal("read_file", find.read("```json\n" .. many " " .. '{"tool":"read_file"}\n```', tools)[1].name)
  end)

  it("may be the names that a gateway's tool requires, and a call's arguments", function()
    local tool <const>, given = { kind = "gateway" }, {}
    tool.parameters = ('{"additionalProperties":{"type":"string"},"required":[%s""]}'):format(many '"r",')
    for i = 1, LONG // 30 do given["name" .. i] = "x" end
    within(LONG, arguments.read, tool, { arguments = given })
  end)

  it("may come in small pieces, in which nothing is repeated", function()
    local numbers, watch = {}, repetition.new(1024)
    for i = 1, LONG // 20 do numbers[i] = ("%d is not %d. "):format(i, i * i) end
    local whole = table.concat(numbers)
    within(#whole, function()
      for at = 1, #whole, 4 do assert.is_nil(watch:add(whole:sub(at, at + 3))) end
    end)
  end)

  it("may be a diff", function()
    here:put("long", ("x\n"):rep(500000))
    local search, block = "<<<<<<< SEARCH\n", "<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n"
    for _, diff in ipairs {
      "a.py\n" .. many(search), many("a.py\n" .. block), many "<", many "--- a\n", many "old mode 100644\n",
      many "rename from a\nindex b\n", "--- a/long\n+++ b/long\n" .. ("@@ -1,2 +1,2 @@\nbare\n-x\n+y\n"):rep(2000),
      "--- a/long\n+++ b/long\n@@ -1,2 +1,2 @@\n" .. many "bare\n", many " " .. "\n" .. search .. many "=",
    } do
      within(#diff, apply_unified_diff.run, { diff = diff }, { workspace = here.root })
    end
  end)

  it("may be in a replay", function()
    local function message(content) return { { role = "tool", content = content } } end
    local recorded = { messages = message(many "1" .. " s\nx"), reply = {} }
    local recording = { exchanges = { recorded }, tool_lists = {} }
    function recording.exchange() return recorded end
    local state = { run = { recording = recording }, number = 0 }
    local _, failure = pcall(transcript.next, state, message(many "1" .. " x\nx"))
    assert.is_truthy(failure.message:find('line 1: the recording has "<duration> s", this run has "111', 1, true))
  end)
end)
