-- SPDX-License-Identifier: Apache-2.0
-- Long texts from outside, each made so that a reader that goes back, or copies what it has, would take hours over it. For Lua's
-- patterns, tests/style/patterns.lua says so of all.
local context = require "sba.job.context"
local transcript = require "sba.agent.transcript"
local find = require "sba.model.text_calls.find"
local file = require "native.file"
local journal = require "sba.report.source".journal
local fold = require "sba.journal.fold"
local schemas = require "sba.result.events"
local scratch = require "scratch"
local text = require "native.text"

local LONG <const> = 1000000

local function many(characters)
  return characters:rep(LONG // #characters)
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
    local size <const> = 1000000 -- a context file has 1 MiB at most
    assert.same({ "a" .. (" "):rep(size) .. "b" }, requirements("a" .. (" "):rep(size) .. "b"))
    assert.same({ "a" }, requirements("a" .. ("\t"):rep(size)))
    assert.equal(size - 1, #requirements(("a\n"):rep(size // 2))[1])
    assert.equal(size // 4, #requirements(("- a\n"):rep(size // 4)))
  end)

  it("may be a reply of a model", function()
    local tools = { { name = "read_file" } }
    for _, reply in ipairs {
      many "``` ", many "`", "```" .. many "a", many "<tool_call>", many "{", many "{}", many "```\nx", many "x ```", many " ", many "\n",
      many "[", many '{"a":', many "<tool_call>{", many '<tool_call>{"', many '<tool_call>{"\\', many "<tool_call>" .. many "[",
      many "<function=a><parameter=b>", many "<tool_call>a<arg_key>", many "to=functions.a", many "<|message|>to=functions.a",
      many "[TOOL_CALLS]a[ARGS]{", many '<invoke name="', many '"\n', many "[1,]", many "```json\n{}```\n", many "```json\n[",
      many "<tool_call>{'a", many "\\", many '{"a": "\\', many "</think>", many "functools[", many "read_file\n{",
      many "<function=read_file>{",
      many "\nread_file(", many "[read_file", many "<tool_call>{}</tool_call>x",
    } do
      assert.is_nil(find.read(reply, tools))
      assert.is_nil(find.calls(reply, tools))
    end
    local _, before = find.calls(many "<tool_call>" .. '<tool_call>{"name":"read_file","arguments":{}}' .. many "</tool_call>", tools)
    assert.equal(#many "<tool_call>", #before)
    assert.equal("read_file", find.read("```json\n" .. many " " .. '{"tool":"read_file"}\n```', tools)[1].name)
  end)

  it("may be in a replay", function()
    local function message(content) return { { role = "tool", content = content } } end
    local recorded = { messages = message(many "1" .. " s\nx"), reply = {} }
    local recording = { exchanges = { recorded }, resumes = {}, exchange = function() return recorded end }
    local _, failure = transcript.next({ run = { recording = recording }, number = 0 }, message(many "1" .. " x\nx"))
    assert.is_truthy(failure.message:find('line 1: the recording has "<duration> s", this run has "111', 1, true))
  end)
end)
