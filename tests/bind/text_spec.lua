-- SPDX-License-Identifier: Apache-2.0
local text = require "native.text"

describe("native.text", function()
  it("repairs only what is broken", function()
    local same, changed = text.repair("a\0é€")
    assert.are.equal("a\0é€", same)
    assert.is_false(changed)
    assert.are.same({ "a\u{FFFD}b", true }, { text.repair("a\xFFb") })
    assert.is_true(text.is_utf8("é"))
    assert.is_false(text.is_utf8("\xED\xA0\x80"))
  end)

  it("cuts between characters", function()
    assert.are.equal("a", text.cut("aé", 2))
    assert.are.equal("aé", text.cut("aé", 3))
    assert.are.equal("", text.cut("€", 0))
    assert.has_error(function() text.cut("a", -1) end)
  end)

  it("speaks base64, strictly", function()
    local bytes = string.rep("\0\xFF\x10a", 1001)
    assert.are.equal(bytes, text.base64_decode(text.base64_encode(bytes)))
    local nothing, failure = text.base64_decode("Zg=")
    assert.is_nil(nothing)
    assert.are.equal("invalid", failure.code)
    assert.are.equal("not base64: a byte outside its alphabet at byte 2", select(2, text.base64_decode("ab c")).message)
  end)

  it("hashes", function()
    assert.are.equal("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", text.sha256(""))
  end)
end)
