-- SPDX-License-Identifier: Apache-2.0
local excerpt = require "sba.util.excerpt"

describe("excerpt", function()
  it("leaves alone what fits", function()
    for _, bytes in ipairs { "", "abc", ("x"):rep(100) } do assert.are.equal(bytes, excerpt(bytes, #bytes)) end
  end)

  it("never exceeds the limit, splits no character, and counts what it left out", function()
    local bytes = ("aé€😀"):rep(500)
    for limit = 0, 300 do
      local shown = excerpt(bytes, limit)
      assert.is_true(#shown <= limit, limit)
      assert.is_truthy(utf8.len(shown), limit)
      local head, count, tail = shown:match("^(.*)\n%[(%d+) bytes left out%]\n(.*)$")
      if head then
        assert.are.equal(#bytes, #head + tonumber(count) + #tail)
        assert.are.equal(bytes:sub(1, #head), head)
        assert.are.equal(bytes:sub(#bytes - #tail + 1), tail)
      else
        assert.is_true(limit <= 40, limit)
      end
    end
  end)
end)
