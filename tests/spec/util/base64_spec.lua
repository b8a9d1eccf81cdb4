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
    } do
      assert.are.equal(wanted, base64.named(words))
    end
  end)

  it("is not what only looks like it", function()
    local line = ("aB1/"):rep(15) -- of 60
    for _, words in ipairs {
      "", "grüße", long:sub(2), ("x"):rep(300), ("0123456789abcdef"):rep(20), ("src/A1"):rep(50, "\n"), (line .. "\n"):rep(9),
      (line .. "aB1/\n"):rep(3) .. "end", ("="):rep(300), "\xFF\0" .. long:sub(2),
    } do
      assert.are.equal(words, base64.named(words))
    end
  end)
end)
