-- SPDX-License-Identifier: Apache-2.0
local cut = require "sba.inference.cut"

local PROSE <const> = ("The quick brown fox jumps over the lazy dog. "):rep(1000) -- 45,000 bytes, some 10,000 tokens

local function user(content) return { role = "user", content = content } end

describe("cut", function()
  it("finds half a window, and what is far below", function()
    assert.is_true(cut.new():judge({ user(PROSE) }, 8192, 4098))
    assert.is_true(cut.new():judge({ user(PROSE) }, 32768, 2050))
    assert.is_true(cut.new():judge({ user("a"), user(PROSE) }, 32768, 30))
  end)

  it("finds nothing in honest counts", function()
    for _, count in ipairs { 9000, 10000, 12000, 16386, 22500 } do
      assert.is_false(cut.new():judge({ user(PROSE) }, 32768, count), count)
    end
    assert.is_false(cut.new():judge({ user("hello") }, 32768, 1))
    assert.is_false(cut.new():judge({ user(PROSE) }, 32768, nil))
  end)

  it("is not misled by text of few tokens", function()
    assert.is_false(cut.new():judge({ user((" "):rep(40000) .. "hello") }, 32768, 600))
    assert.is_false(cut.new():judge({ user(("="):rep(40000)) }, 32768, 600))
  end)

  it("is not misled by a server that leaves out what it had in its cache", function()
    local judge, messages = cut.new(), { user(PROSE) }
    assert.is_false(judge:judge(messages, 32768, 10000))
    for i = 1, 5 do
      messages[#messages + 1] = user("more " .. i)
      assert.is_false(judge:judge(messages, 32768, 8))
    end
    messages[#messages + 1] = user(PROSE)
    assert.is_true(judge:judge(messages, 32768, 2050))
  end)

  it("learns that a server counts its cache, and then holds it to that", function()
    local judge, messages = cut.new(), { user(PROSE) }
    assert.is_false(judge:judge(messages, 32768, 10000))
    messages[2] = user("more")
    assert.is_false(judge:judge(messages, 32768, 10004))
    messages[3] = user("more")
    assert.is_true(judge:judge(messages, 32768, 2050))
  end)
end)
