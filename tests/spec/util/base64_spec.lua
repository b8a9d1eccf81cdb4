-- SPDX-License-Identifier: Apache-2.0
local base64 = require "sba.util.base64"

local long = ("iVB0"):rep(64) -- as short as it may be

describe("base64", function()
  it("is named wherever it stands in a text", function()
    for words, wanted in pairs {
      [long] = "[base64, 192 bytes]", [long .. "aA=="] = "[base64, 193 bytes]",
      ["a picture: data:image/png;base64," .. long .. "=, done"] = "a picture: data:image/png;base64,[base64, 192 bytes], done",
      ['{"a":"' .. long .. '","b":["' .. long .. '"]}'] = '{"a":"[base64, 192 bytes]","b":["[base64, 192 bytes]"]}',
      [("a-_1B"):rep(52)] = "[base64, 195 bytes]", -- of URLs
      ['"' .. ("aB\\/1"):rep(64) .. '"'] = '"[base64, 192 bytes]"', -- of PHP's JSON
    } do
      assert.equal(wanted, base64.named(words))
    end
  end)

  it("is named where it is broken into lines", function()
    for _, length in ipairs { 64, 76 } do
      for _, line_break in ipairs { "\n", "\r\n", "\\n", "\\r\\n" } do
        local whole = (("aB1/"):rep(length // 4) .. line_break):rep(4)
        assert.equal(("[base64, %d bytes]"):format(length * 3), base64.named(whole))
        assert.equal(("x [base64, %d bytes]."):format(length * 3 + 3), base64.named("x " .. whole .. "aB1/."))
      end
    end
  end)

  it("is looked for once, however often lines are as long as its lines", function()
    local words = (("a"):rep(64) .. "\n"):rep(1 << 16)
    assert.is_true(base64.named(words) == words)
  end)

  it("is not what only looks like it", function()
    local line = ("aB1/"):rep(15) -- of 60
    for _, words in ipairs {
      "", "grüße", long:sub(2), ("x"):rep(300), ("0123456789abcdef"):rep(20), ("src/A1"):rep(50, "\n"), (line .. "\n"):rep(9),
      (line .. "aB1/\n"):rep(3) .. "end", ("="):rep(300), "\xFF\0" .. long:sub(2),
    } do
      assert.equal(words, base64.named(words))
    end
  end)
end)
