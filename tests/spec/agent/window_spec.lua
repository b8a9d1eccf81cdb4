-- SPDX-License-Identifier: Apache-2.0
local meter = require "sba.agent.meter"
local window = require "sba.agent.window"

--- Whether a conversation fits once it was made to.
local function fits(messages, budget)
  local _, tokens = window.fit(messages, budget, meter.new(0))
  return tokens <= budget
end

local function conversation(exchanges, size)
  local messages = { { role = "system", content = "who you are" }, { role = "user", content = "the task" } }
  for i = 1, exchanges do
    messages[#messages + 1] = { role = "assistant", content = "", tool_calls = { { id = "c" .. i, name = "read_file" } } }
    messages[#messages + 1] = { role = "tool", tool_call_id = "c" .. i, step = "step-" .. i, content = ("x"):rep(size) }
  end
  return messages
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
    assert.is_true(fits(talk, 100000))
    assert.equal(8, #talk)
  end)

  it("shortens old results before it drops anything, and says how to read the rest", function()
    local talk = conversation(10, 3000)
    assert.is_true(fits(talk, 4800))
    assert.equal(22, #talk)
    assert.matches("read_output of step%-1", talk[4].content)
    assert.equal(3000, #talk[22].content)
  end)

  it("drops whole exchanges, oldest first, and keeps the system text, the task and the last exchange", function()
    local talk = conversation(200, 3000)
    assert.is_true(fits(talk, 4000))
    assert.equal("the task", talk[2].content)
    assert.matches("%d+ earlier exchanges are left out", talk[3].content)
    assert.equal(3000, #talk[#talk].content)
    assert_paired(talk)
    assert.is_true(meter.new(0):total(talk) <= 4000)
  end)

  it("keeps one note however often it makes room, and counts on", function()
    local talk = conversation(40, 2000)
    fits(talk, 3000)
    local first = talk[3].dropped
    for _, message in ipairs(conversation(40, 2000)) do
      if message.role ~= "system" and message.role ~= "user" then table.insert(talk, message) end
    end
    fits(talk, 3000)
    local notes = 0
    for _, message in ipairs(talk) do notes = notes + (message.dropped and 1 or 0) end
    assert.equal(1, notes)
    assert.is_true(talk[3].dropped > first)
    assert_paired(talk)
  end)

  it("shortens the last exchange too, and gives up where that is not enough", function()
    local talk = conversation(2, 100000)
    assert.is_true(fits(talk, 1000))
    assert.is_true(#talk[#talk].content > 1500)
    assert.is_false(fits(conversation(2, 100000), 50))
  end)

  it("shortens what a reply says where nothing else is left", function()
    local talk = conversation(1, 10)
    talk[3].content = ("so "):rep(5000)
    assert.is_true(fits(talk, 500))
    assert.matches("bytes shortened", talk[3].content)
  end)
end)
