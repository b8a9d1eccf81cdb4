-- SPDX-License-Identifier: Apache-2.0
local text = require "native.text"

describe("native.text", function()
  it("repairs only what is broken", function()
    assert.same({ { "a\0é€", false }, { "a\u{FFFD}b", true } }, { { text.repair("a\0é€") }, { text.repair("a\xFFb") } })
    assert.same({ true, false }, { text.is_utf8("é"), text.is_utf8("\xED\xA0\x80") })
  end)

  it("agrees with Lua on what is UTF-8", function()
    local likely = { "\x7F", "\x80", "\x8F", "\x90", "\x9F", "\xA0", "\xBF", "\xC0", "\xC1", "\xC2", "\xDF", "\xE0",
      "\xE1", "\xED", "\xEF", "\xF0", "\xF1", "\xF4", "\xF5", "\xFF" }
    math.randomseed(1)
    for round = 1, 20000 do
      local longest, bytes = round % 2 == 0 and 8 or 80, {}
      for i = 1, math.random(0, longest) do
        bytes[i] = "a"
        if math.random(3) == 1 then bytes[i] = likely[math.random(#likely)] end
      end
      local given = table.concat(bytes)
      assert(text.is_utf8(given) == (utf8.len(given) ~= nil), given)
      assert(utf8.len((text.repair(given))), given)
    end
  end)

  it("finds a part", function()
    assert.same({ 2, 5 }, { text.find("\0ab\0ab", "ab", 1), text.find("\0ab\0ab", "ab", 3) })
    assert.is_nil(text.find("ab", "ab", 2) or text.find("ab", "b", 9))
    assert.has_error(function() text.find("a", "a", 0) end)
    assert.is_nil(text.find(("a"):rep(1 << 22), ("a"):rep(1 << 20) .. "b", 1)) -- string.find takes minutes
  end)

  it("tells values apart, whatever the order of members", function()
    for one, other in pairs { [1] = "1", [{ 1, 2 }] = { 2, 1 }, [("x"):rep(50)] = ("x"):rep(49) .. "y" } do
      assert.is_false(text.fingerprint(one) == text.fingerprint(other))
    end
    assert.equal(text.fingerprint { a = 1, b = true }, text.fingerprint { b = true, a = 1 })
  end)

  it("estimates tokens", function()
    for utf8, tokens in pairs {
      ["one two, three"] = 4, ["a 12345"] = 7, ["修复"] = 4, [("9f8a"):rep(16)] = 58, [""] = 0,
      ["\xE4\xBF"] = 2, -- cut in the middle of a character
    } do
      assert.equal(tokens, text.tokens(utf8))
    end
  end)
end)
