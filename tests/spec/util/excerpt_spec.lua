-- SPDX-License-Identifier: Apache-2.0
local excerpt = require "sba.util.excerpt"

describe("excerpt", function()
  it("leaves alone what fits", function()
    for _, bytes in ipairs { "", "abc", ("x"):rep(100) } do assert.same({ bytes, false }, { excerpt.of(bytes, #bytes) }) end
  end)

  it("never exceeds the limit, splits no character, and counts what it left out", function()
    local bytes = ("aé€😀"):rep(500)
    local function hint(offset) return ("read on from %d"):format(offset) end
    for limit = 0, 600 do
      local shown, is_cut = excerpt.of(bytes, limit, hint)
      assert.is_true(is_cut and #shown <= limit, limit)
      assert.is_truthy(utf8.len(shown), limit)
      local head, count, whole, more, tail = shown:match("^(.*)\n%[%.%.%. (%d+) of (%d+) bytes left out(.-) %.%.%.%]\n(.*)$")
      assert.equal(limit > 80, head ~= nil)
      if head then
        assert.equal(#bytes, tonumber(whole))
        assert.equal(#bytes, #head + tonumber(count) + #tail)
        assert.equal(bytes:sub(1, #head), head)
        assert.equal(bytes:sub(#bytes - #tail + 1), tail)
        assert.equal(limit > 200 and "; read on from " .. #head or "", more)
      end
    end
  end)

  it("joins a head and a tail that were kept apart", function()
    assert.equal("head\n[... 2 of 10 bytes left out ...]\ntail", excerpt.join("head", "tail", 10, 100))
  end)

  it("gives the last lines of an output as a terminal would show them", function()
    local list, more = excerpt.last_lines("1\n2\n 50%\r100%\r\nend", 3)
    assert.same({ "2", "100%", "end" }, list)
    assert.is_true(more)
    assert.same({ "", "" }, (excerpt.last_lines("\r\n\r", 3)))
    list, more = excerpt.last_lines("", 3)
    assert.same({ {}, false }, { list, more })
  end)
end)
