-- SPDX-License-Identifier: Apache-2.0
local conversation = require "sba.agent.conversation"
local text = require "native.text"

local PROSE <const> = ("The quick brown fox jumps over the lazy dog. "):rep(100)

local function said(content) return { role = "user", content = content } end

--- Whether messages fit once they were made to.
local function fits(messages, budget)
  local _, tokens = conversation.new(0, messages):fit(budget)
  return tokens <= budget
end

local function talk_of(exchanges, size)
  local messages = { { role = "system", content = "who you are" }, { role = "user", content = "the task" } }
  for i = 1, exchanges do
    local id, step = "c" .. i, "step-" .. i
    table.insert(messages, { role = "assistant", content = "", tool_calls = { { id = id, name = "read_file" } } })
    table.insert(messages, { role = "tool", tool_call_id = id, step = step, content = ("x"):rep(size) })
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

describe("a conversation", function()
  it("leaves alone what fits", function()
    local talk = talk_of(3, 100)
    assert.is_true(fits(talk, 100000))
    assert.equal(8, #talk)
  end)

  it("shortens old results before it drops anything, and says how to read the rest", function()
    local talk = talk_of(10, 3000)
    assert.is_true(fits(talk, 4800))
    assert.equal(22, #talk)
    assert.matches("read_output of step%-1", talk[4].content)
    assert.equal(3000, #talk[22].content)
  end)

  it("drops whole exchanges, oldest first, and keeps the system text, the task and the last exchange", function()
    local talk = talk_of(200, 3000)
    assert.is_true(fits(talk, 4000))
    assert.equal("the task", talk[2].content)
    assert.matches("%d+ earlier exchanges are left out", talk[3].content)
    assert.equal(3000, #talk[#talk].content)
    assert_paired(talk)
    assert.is_true(conversation.new(0, talk):total() <= 4000)
  end)

  it("keeps one note however often it makes room, and counts on", function()
    local talk = talk_of(40, 2000)
    fits(talk, 3000)
    local first = talk[3].dropped
    for _, message in ipairs(talk_of(40, 2000)) do
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
    local talk = talk_of(2, 100000)
    assert.is_true(fits(talk, 1000))
    assert.is_true(#talk[#talk].content > 1500)
    assert.is_false(fits(talk_of(2, 100000), 50))
  end)

  it("leaves whole what the user said, in between and last", function()
    local old, last = talk_of(6, 3000), talk_of(1, 3000)
    table.insert(old, 5, said(PROSE))
    table.insert(last, said(PROSE))
    assert.is_true(fits(old, conversation.new(0, old):total() - 1))
    assert.is_true(fits(last, conversation.new(0, last):total() * 3 // 4))
    assert.same({ PROSE, PROSE }, { old[5].content, last[5].content })
  end)

  it("shortens what a reply says where nothing else is left", function()
    local talk = talk_of(1, 10)
    talk[3].content, talk[3].thinking, talk[3].thinking_parts = ("so "):rep(5000), "so", { { text = "so" } }
    assert.is_true(fits(talk, 500))
    assert.matches("bytes shortened", talk[3].content)
    assert.same({}, { talk[3].thinking, talk[3].thinking_parts })
  end)
end)

local DIGITS <const> = ("3141592653"):rep(400)

-- Between so many per cent of a number.
local function assert_near(expected, actual, least, most)
  local is_near = actual >= expected * least // 100 and actual <= expected * most // 100
  assert.is_true(is_near, ("%d is not near %d"):format(actual, expected))
end

describe("its price", function()
  it("charges by kind of text before anything was counted", function()
    for words, expected in pairs { [PROSE] = { 4.0, 5.0 }, [DIGITS] = { 1.0, 1.0 }, ["9f8a07b3"] = { 1.0, 1.5 },
      ["QkFTRTY0IGZvbyBiYXIg"] = { 1.0, 1.5 }, ["修复错误"] = { 1.4, 1.6 }, ["काम करो "] = { 1.3, 2.0 },
      ["\1\2\3"] = { 1.0, 1.0 },
    } do
      local long = words:rep(300)
      local bytes = #long / text.tokens(long)
      assert.is_true(bytes >= expected[1] and bytes <= expected[2], ("%s: %.2f bytes a token"):format(words, bytes))
    end
  end)

  it("charges for calls and thinking too", function()
    local call = { name = "write_file", arguments = { path = "a", content = PROSE } }
    local message = { role = "assistant", content = "", thinking = PROSE, tool_calls = { call } }
    assert_near(2 * text.tokens(PROSE), conversation.new(0):of(message), 100, 105)
  end)

  it("takes over what the server counted, to the token", function()
    local talk = conversation.new(1000, { said(PROSE), said(PROSE) })
    talk:learn(50, 2500)
    assert.equal(2500, talk.tools + 50 + talk:total())
    talk:add(said(DIGITS))
    talk:learn(50, 4000)
    assert.equal(4000, talk.tools + 50 + talk:total())
    assert_near(1500, talk:of(talk.messages[3]), 99, 101)
  end)

  it("raises a price at once", function()
    local talk = conversation.new(0, { said(PROSE) })
    talk:learn(0, 2 * text.tokens(PROSE))
    assert_near(2 * text.tokens(PROSE), talk:of(said(PROSE)), 99, 102)
  end)

  it("charges the tools what they cost, once more where they are told in another form", function()
    local talk = conversation.new(1000, { said "x" })
    talk:learn(0, 3000)
    assert_near(3000, talk.tools, 98, 100)
    talk:learn(0, 1500, true)
    assert_near(1500, talk.tools, 95, 100)
  end)

  it("learns nothing from a count that cannot be the whole prompt's", function()
    local talk = conversation.new(1000, { said(PROSE) })
    for _, count in ipairs { 0, 5, 100 } do talk:learn(0, count) end
    talk:learn(0, nil)
    assert.same({ 1000, 8 + text.tokens(PROSE) }, { talk.tools, talk:of(talk.messages[1]) })
  end)

  it("keeps the price a token of a message that is shortened", function()
    local talk = conversation.new(0, { said "s", said "t", { role = "assistant", content = PROSE:rep(4) } })
    talk:learn(0, 2 * text.tokens(PROSE:rep(4)))
    talk:fit(text.tokens(PROSE))
    local shorter = talk.messages[3]
    assert.is_true(#shorter.content < #PROSE)
    assert_near(2 * text.tokens(shorter.content), talk:of(shorter), 90, 115)
  end)
end)
