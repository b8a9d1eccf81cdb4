-- SPDX-License-Identifier: Apache-2.0
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
    assert.is_true(window.fit(talk, KEEP, 100000))
    assert.equal(8, #talk.messages)
  end)

  it("shortens old results before it drops anything, and says how to read the rest", function()
    local talk = conversation(10, 3000)
    assert.is_true(window.fit(talk, KEEP, 8000))
    assert.equal(22, #talk.messages)
    assert.matches("read_output of step%-1", talk.messages[4].content)
    assert.equal(3000, #talk.messages[22].content)
  end)

  it("drops whole exchanges, oldest first, and keeps the system text, the task and the last exchange", function()
    local talk = conversation(200, 3000)
    assert.is_true(window.fit(talk, KEEP, 4000))
    assert.equal("the task", talk.messages[2].content)
    assert.matches("%d+ earlier exchanges are left out", talk.messages[3].content)
    assert.equal(3000, #talk.messages[#talk.messages].content)
    assert_paired(talk.messages)
    assert.is_true(window.total(talk.messages) <= 4000)
  end)

  it("keeps one note however often it makes room, and counts on", function()
    local talk = conversation(40, 2000)
    window.fit(talk, KEEP, 3000)
    local first = talk.dropped
    for _, message in ipairs(conversation(40, 2000).messages) do
      if message.role ~= "system" and message.role ~= "user" then table.insert(talk.messages, message) end
    end
    window.fit(talk, KEEP, 3000)
    local notes = 0
    for _, message in ipairs(talk.messages) do notes = notes + (message.note and 1 or 0) end
    assert.equal(1, notes)
    assert.is_true(talk.dropped > first)
    assert_paired(talk.messages)
  end)

  it("shortens the last exchange too, and gives up where that is not enough", function()
    local talk = conversation(2, 100000)
    assert.is_true(window.fit(talk, KEEP, 1000))
    assert.is_true(#talk.messages[#talk.messages].content > 1500)
    assert.is_false(window.fit(conversation(2, 100000), KEEP, 50))
  end)
end)
