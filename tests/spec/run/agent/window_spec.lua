-- SPDX-License-Identifier: Apache-2.0
local meter = require "sba.run.agent.meter"
local window = require "sba.run.agent.window"

local KEEP <const> = 2

local function conversation(exchanges, size)
  local messages = { { role = "system", content = "who you are" }, { role = "user", content = "the task" } }
  for i = 1, exchanges do
    messages[#messages + 1] = { role = "assistant", content = "", tool_calls = { { id = "c" .. i, name = "read_file" } } }
    messages[#messages + 1] = { role = "tool", tool_call_id = "c" .. i, step = "step-" .. i, content = ("x"):rep(size) }
  end
  return { messages = messages }
end

-- Every tool result has its call before it, and every call its result after it.
local function assert_paired(messages)
  local open = {}
  for _, message in ipairs(messages) do
    for _, call in ipairs(message.tool_calls or {}) do open[call.id] = true end
    if message.role == "tool" then
      assert.is_true(open[message.tool_call_id], "a result without its call")
      open[message.tool_call_id] = nil
    end
  end
  assert.is_nil(next(open), "a call without its result")
end

describe("window", function()
  it("leaves alone what fits", function()
    local talk = conversation(3, 100)
    assert.is_true(window.fit(talk, KEEP, 100000, meter.new(0)))
    assert.equal(8, #talk.messages)
  end)

  it("shortens old results before it drops anything, and says how to read the rest", function()
    local talk = conversation(10, 3000)
    assert.is_true(window.fit(talk, KEEP, 4800, meter.new(0)))
    assert.equal(22, #talk.messages)
    assert.matches("read_output of step%-1", talk.messages[4].content)
    assert.equal(3000, #talk.messages[22].content)
  end)

  it("drops whole exchanges, oldest first, and keeps the system text, the task and the last exchange", function()
    local talk = conversation(200, 3000)
    assert.is_true(window.fit(talk, KEEP, 4000, meter.new(0)))
    assert.equal("the task", talk.messages[2].content)
    assert.matches("%d+ earlier exchanges are left out", talk.messages[3].content)
    assert.equal(3000, #talk.messages[#talk.messages].content)
    assert_paired(talk.messages)
    assert.is_true(meter.new(0):total(talk.messages) <= 4000)
  end)

  it("keeps one note however often it makes room, and counts on", function()
    local talk = conversation(40, 2000)
    window.fit(talk, KEEP, 3000, meter.new(0))
    local first = talk.dropped
    for _, message in ipairs(conversation(40, 2000).messages) do
      if message.role ~= "system" and message.role ~= "user" then table.insert(talk.messages, message) end
    end
    window.fit(talk, KEEP, 3000, meter.new(0))
    local notes = 0
    for _, message in ipairs(talk.messages) do notes = notes + (message.note and 1 or 0) end
    assert.equal(1, notes)
    assert.is_true(talk.dropped > first)
    assert_paired(talk.messages)
  end)

  it("shortens the last exchange too, and gives up where that is not enough", function()
    local talk = conversation(2, 100000)
    assert.is_true(window.fit(talk, KEEP, 1000, meter.new(0)))
    assert.is_true(#talk.messages[#talk.messages].content > 1500)
    assert.is_false(window.fit(conversation(2, 100000), KEEP, 50, meter.new(0)))
  end)

  it("shortens the long texts of old calls and what was thought, not the last ones", function()
    local talk = conversation(6, 10)
    for _, message in ipairs(talk.messages) do
      if message.tool_calls then
        message.thinking, message.tool_calls[1].arguments = ("hm "):rep(500), { path = "a", content = ("x "):rep(1500) }
      end
    end
    assert.is_true(window.fit(talk, KEEP, 8000, meter.new(0)))
    assert.equal(14, #talk.messages)
    local first, last = talk.messages[3], talk.messages[13]
    assert.is_nil(first.thinking)
    assert.matches("^[x ]+\n%[%.%.%. %d+ bytes shortened %.%.%.%]$", first.tool_calls[1].arguments.content)
    assert.are.same({ "a", "c1" }, { first.tool_calls[1].arguments.path, first.tool_calls[1].id })
    assert.are.same({ 1500, 3000 }, { #last.thinking, #last.tool_calls[1].arguments.content })
  end)

  it("shortens the texts of the last call where nothing else is left", function()
    local talk = conversation(1, 10)
    talk.messages[3].tool_calls[1].arguments = { content = ("x "):rep(9000) }
    assert.is_true(window.fit(talk, KEEP, 500, meter.new(0)))
  end)

  it("shortens what a reply says where nothing else is left", function()
    local talk = conversation(1, 10)
    talk.messages[3].content = ("so "):rep(5000)
    assert.is_true(window.fit(talk, KEEP, 500, meter.new(0)))
    assert.matches("bytes shortened", talk.messages[3].content)
  end)
end)
