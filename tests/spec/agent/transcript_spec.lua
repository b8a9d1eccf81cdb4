-- SPDX-License-Identifier: Apache-2.0
local fail = require "sba.util.fail"
local transcript = require "sba.agent.transcript"

local function said(content) return { { role = "tool", content = content } } end

describe("transcript", function()
  --- The reply to the first request, of a recording that has it after these messages, nil: after any; false:
  --- of an empty one.
  local function replay(messages, fresh)
    local exchange = { messages = messages or nil, reply = { content = "x" } }
    local recording = { exchanges = { messages ~= false and exchange or nil }, resumes = {}, tool_lists = {} }
    function recording:exchange(number) return self.exchanges[number] end
    local function ignore() end
    local run = {
      history = { exchanges = {}, resumes = {} }, recording = recording, emit = ignore,
      record = { count_request = ignore }, log = { event = ignore },
    }
    return fail.caught(transcript.next, { run = run, session = { model = "m" }, number = 0 }, fresh)
  end

  it("takes times and durations as the same in a replay", function()
    for was, is in pairs {
      ["2026-01-01T10:00:00Z in 0.31s, 12 ms, 3 seconds"] = "2026-02-03T11:12:13Z in 1.07s, 9 ms, 14 seconds",
      ["Thu Jan  1 10:00:00 UTC 2026"] = "Sun Nov 22 22:21:32 UTC 2026",
      ["Thu Jan  1 10:00:00 AM CET 2026"] = "Sun Nov 22 09:21:32 PM CEST 2026",
      ["Thu, 01 Jan 2026 10:00:00 +0000"] = "Sun, 22 Nov 2026 22:21:32 +0100",
      ["2026-01-01T10:00:00+01:00"] = "2026-11-22T22:21:32+00:00",
    } do
      assert.equal("x", replay(said("on " .. was .. " a"), said("on " .. is .. " a")).content)
    end
  end)

  it("names the first difference in a replay", function()
    for is, words in pairs {
      ["one\n2\nthree"] = 'line 2: the recording has "two", this run has "2"',
      ["one\ntwo"] = 'line 3: the recording has "three", this run has "the end"',
      ["one\ntwo\nthree\n"] = 'line 4: the recording has "the end", this run has ""',
    } do
      local reply, failure = replay(said "one\ntwo\nthree", said(is))
      assert.is_nil(reply)
      assert.equal("internal_error", failure.code)
      assert.matches("exchange 1, message 1 (tool), " .. words, failure.message, 1, true)
    end
  end)

  it("names a message too many or too few", function()
    local _, failure = replay(said "one", { said("one")[1], said("two")[1] })
    assert.matches("message 2: the recording has none, this run has one of tool", failure.message)
    assert.matches("this run has none", select(2, replay(said "one", {})).message)
  end)

  it("compares nothing where a script says nothing", function()
    assert.equal("x", replay(nil, said "anything").content)
  end)

  it("ends where the recording does", function()
    assert.matches("the recording ends after 0 replies", select(2, replay(false, said "a")).message)
  end)
end)
