-- SPDX-License-Identifier: Apache-2.0
local meter = require "sba.agent.meter"

local PROSE <const> = ("The quick brown fox jumps over the lazy dog. "):rep(100)
local DIGITS <const> = ("3141592653"):rep(400)

local function said(content) return { role = "user", content = content } end

-- Between so many per cent of a number.
local function assert_near(expected, actual, least, most)
  assert.is_true(actual >= expected * least // 100 and actual <= expected * most // 100, ("%d is not near %d"):format(actual, expected))
end

describe("meter", function()
  it("charges by kind of text before anything was counted", function()
    for _, case in ipairs {
      { PROSE, 4.0, 5.0 }, { DIGITS, 1.0, 1.0 }, { ("9f8a07b3"):rep(200), 1.0, 1.5 }, { ("QkFTRTY0IGZvbyBiYXIg"):rep(90), 1.0, 1.5 },
      { ("修复错误"):rep(300), 1.4, 1.6 }, { ("काम करो "):rep(300), 1.3, 2.0 }, { ("\1\2\3"):rep(300), 1.0, 1.0 },
    } do
      local bytes = #case[1] / meter.raw(case[1])
      assert.is_true(bytes >= case[2] and bytes <= case[3], ("%s...: %.2f bytes a token"):format(case[1]:sub(1, 12), bytes))
    end
  end)

  it("charges for calls and thinking too", function()
    local call = { name = "write_file", arguments = { path = "a", content = PROSE } }
    local message = { role = "assistant", content = "", thinking = PROSE, tool_calls = { call } }
    assert_near(2 * meter.raw(PROSE), meter.new(0):of(message), 100, 105)
  end)

  it("takes over what the server counted, to the token", function()
    local watch, messages = meter.new(1000), { said(PROSE), said(PROSE) }
    watch:learn(messages, 50, 2500)
    assert.equal(2500, watch.tools + 50 + watch:total(messages))
    messages[3] = said(DIGITS)
    watch:learn(messages, 50, 4000)
    assert.equal(4000, watch.tools + 50 + watch:total(messages))
    assert_near(1500, watch:of(messages[3]), 99, 101)
  end)

  it("raises a price at once", function()
    local watch = meter.new(0)
    watch:learn({ said(PROSE) }, 0, 2 * meter.raw(PROSE))
    assert_near(2 * meter.raw(PROSE), watch:of(said(PROSE)), 99, 102)
  end)

  it("charges the tools what they cost, once more where they are told in another form", function()
    local watch, messages = meter.new(1000), { said "x" }
    watch:learn(messages, 0, 3000)
    assert_near(3000, watch.tools, 98, 100)
    watch:learn(messages, 0, 1500, true)
    assert_near(1500, watch.tools, 95, 100)
  end)

  it("learns nothing from a count that cannot be the whole prompt's", function()
    local watch, messages = meter.new(1000), { said(PROSE) }
    for _, count in ipairs { 0, 5, 100 } do watch:learn(messages, 0, count) end
    watch:learn(messages, 0, nil)
    assert.are.same({ 1000, 8 + meter.raw(PROSE) }, { watch.tools, watch:of(messages[1]) })
  end)

  it("keeps the price a token of a message that is shortened", function()
    local watch, message, shorter = meter.new(0), said(PROSE), said(PROSE:sub(1, #PROSE // 2))
    watch:learn({ message }, 0, 2 * meter.raw(PROSE))
    local messages = { message }
    assert_near(meter.raw(PROSE), watch:replace(messages, 1, shorter), 98, 102)
    assert.are.equal(shorter, messages[1])
    assert_near(meter.raw(PROSE), watch:of(shorter), 98, 102)
  end)
end)
