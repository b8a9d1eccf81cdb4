-- SPDX-License-Identifier: Apache-2.0
local excerpt = require "sba.util.excerpt"

describe("excerpt", function()
  it("leaves alone what fits", function()
    for _, bytes in ipairs { "", "abc", ("x"):rep(100) } do
      assert.same({ bytes, false }, { excerpt.of(bytes, #bytes) })
    end
  end)

  it("never exceeds the limit, splits no character, and counts what it left out", function()
    local bytes = ("aé€😀"):rep(500)
    local function hint(offset) return ("read on from %d"):format(offset) end
    for limit = 0, 600 do
      local shown, is_cut = excerpt.of(bytes, limit, hint)
      assert.is_true(is_cut and #shown <= limit, limit)
      assert.is_truthy(utf8.len(shown), limit)
      local head, said, tail = shown:match "^(.*)\n%[%.%.%. (.-) %.%.%.%]\n(.*)$"
      assert.equal(limit > 80, head ~= nil)
      if head then
        local count, whole, more = said:match "^(%d+) of (%d+) bytes left out(.*)$"
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

local long = ("iVB0"):rep(64) -- as short as it may be

describe("base64", function()
  it("is named wherever it stands in a text", function()
    for words, wanted in pairs {
      [long] = "[base64, 192 bytes]", [long .. "aA=="] = "[base64, 193 bytes]",
      ["a picture: data:image/png;base64," .. long .. "=, done"] =
        "a picture: data:image/png;base64,[base64, 192 bytes], done",
      ['{"a":"' .. long .. '","b":["' .. long .. '"]}'] = '{"a":"[base64, 192 bytes]","b":["[base64, 192 bytes]"]}',
      [("a-_1B"):rep(52)] = "[base64, 195 bytes]", -- of URLs
      ['"' .. ("aB\\/1"):rep(64) .. '"'] = '"[base64, 192 bytes]"', -- of PHP's JSON
    } do
      assert.equal(wanted, excerpt.without_base64(words))
    end
  end)

  it("is named where it is broken into lines", function()
    for _, length in ipairs { 64, 76 } do
      for _, line_break in ipairs { "\n", "\r\n", "\\n", "\\r\\n" } do
        local whole = (("aB1/"):rep(length // 4) .. line_break):rep(4)
        assert.equal(("[base64, %d bytes]"):format(length * 3), excerpt.without_base64(whole))
        assert.equal(("x [base64, %d bytes]."):format(length * 3 + 3), excerpt.without_base64("x " .. whole .. "aB1/."))
      end
    end
  end)

  it("is looked for once, however often lines are as long as its lines", function()
    local words = (("a"):rep(64) .. "\n"):rep(1 << 16)
    assert.is_true(excerpt.without_base64(words) == words)
  end)

  it("is not what only looks like it", function()
    local line = ("aB1/"):rep(15) -- of 60
    for _, words in ipairs {
      "", "grüße", long:sub(2), ("x"):rep(300), ("0123456789abcdef"):rep(20), ("src/A1"):rep(50, "\n"),
      (line .. "\n"):rep(9), (line .. "aB1/\n"):rep(3) .. "end", ("="):rep(300), "\xFF\0" .. long:sub(2),
    } do
      assert.equal(words, excerpt.without_base64(words))
    end
  end)
end)
