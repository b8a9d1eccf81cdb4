-- SPDX-License-Identifier: Apache-2.0
local native = require "native.secret"
local secret_stream = require "sba.util.secret_stream"

-- A secret is never forgotten, and the tests of a file share a process.
native.add "correct-horse-battery"

local function shown(...)
  local stream, parts = secret_stream(), {}
  for _, piece in ipairs { ... } do
    parts[#parts + 1] = type(piece) == "table" and stream:add(piece[1], piece[2]) or stream:add(piece)
  end
  parts[#parts + 1] = stream:finish()
  return parts
end

describe("text that comes in pieces", function()
  it("has its secrets redacted, however it is cut", function()
    local text = "a correct-horse-battery; correct-horse, b"
    for size = 1, #text do
      local pieces = {}
      for at = 1, #text, size do pieces[#pieces + 1] = text:sub(at, at + size - 1) end
      assert.equal("a [redacted]; correct-horse, b", table.concat(shown(table.unpack(pieces))))
    end
  end)

  it("is shown as it comes, but for what a secret may begin with", function()
    assert.same({ "one\n", "two", "" }, shown("one\n", "two"))
    assert.same({ "it is ", "[redacted]!", "" }, shown("it is correct-h", "orse-battery!"))
    assert.same({ "it is ", "correct-hen", "" }, shown("it is correct-h", "en"))
    assert.same({ "it is ", "correct-h" }, shown "it is correct-h")
  end)

  it("does not split characters", function()
    assert.same({ "a", "é€", "" }, shown("a\xc3", "\xa9€"))
    assert.same({ "\u{FFFD}x", "\u{FFFD}" }, shown "\xffx\xe2\x82")
  end)

  it("says what is left out, and redacts what that cut", function()
    assert.equal("a \n[... 7 bytes left out ...]\nb", table.concat(shown("a ", { "b", 7 })))
    assert.equal("a [redacted]\n[... 7 bytes left out ...]\n[redacted] b",
      table.concat(shown("a correct-ho", { "-battery b", 7 })))
  end)
end)
