-- SPDX-License-Identifier: Apache-2.0
local cut = require "sba.inference.cut"

local PROSE <const> = ("The quick brown fox jumps over the lazy dog. "):rep(1000) -- 45,000 bytes, some 10,000 tokens

local function user(content) return { role = "user", content = content } end

--- What is said of these counts, with 300 bytes more at each.
local function judge_all(window, counts)
  local judge, messages, found = cut.new(), { user(PROSE) }, {}
  for i, count in ipairs(counts) do
    found[i] = judge:judge(messages, window, count) or false
    messages[#messages + 1] = user(("more"):rep(75))
  end
  return found
end

describe("cut", function()
  it("finds a count that falls although messages were only added", function()
    assert.are.same({ false, false, 3900 }, judge_all(nil, { 3800, 3900, 3300 }))
    assert.are.same({ false, 10000, 10000 }, judge_all(16384, { 10000, 9000, 8000 }))
  end)

  it("finds the half of a window that is known", function()
    assert.are.equal(4098, cut.new():judge({ user(PROSE) }, 8192, 4098))
    assert.is_nil(cut.new():judge({ user(PROSE) }, nil, 4098))
  end)

  it("takes any count of a first prompt, for scripts have 1 to 25 bytes a token", function()
    for _, count in ipairs { 1, 600, 2050, 9000, 45000 } do assert.is_nil(cut.new():judge({ user(PROSE) }, 32768, count), count) end
  end)

  it("takes 0 and nothing for unknown", function()
    assert.are.same({ false, false, false, false }, judge_all(nil, { 10000, 0, 10100, 10200 }))
    assert.is_nil(cut.new():judge({ user(PROSE) }, 32768, nil))
  end)

  it("takes no count well below half of a window for a cut", function()
    assert.are.same({ false, false, false }, judge_all(32768, { 14000, 12000, 10000 }))
    assert.are.same({ false, false, false }, judge_all(nil, { 10000, 8, 2500 }))
  end)

  it("takes a large new message that is counted alone for what it is", function()
    local judge, messages = cut.new(), { user(PROSE) }
    assert.is_nil(judge:judge(messages, nil, 10000))
    messages[2] = user(PROSE:sub(1, 30000))
    assert.is_nil(judge:judge(messages, nil, 6600))
  end)

  it("takes a shorter conversation for what it is", function()
    local judge = cut.new()
    assert.is_nil(judge:judge({ user "a", user(PROSE) }, nil, 10000))
    assert.is_nil(judge:judge({ user "a", user(PROSE:sub(1, 30000)), user "b" }, nil, 7000))
  end)
end)
