-- SPDX-License-Identifier: Apache-2.0
local output = require "sba.result.output"

local LIMIT <const> = 16 * 1024

describe("the plain text of a step", function()
  it("stays as it is up to 16 KiB", function()
    local whole = ("x"):rep(LIMIT)
    assert.are.equal(whole, output(whole))
    assert.are.equal("", output "")
  end)

  it("is cut between head and tail, with the count left out", function()
    local bytes = ("h"):rep(10000) .. ("t"):rep(10000)
    local short = output(bytes)
    assert.is_true(#short <= LIMIT)
    local head, count, tail = short:match("^(h+)\n%[%.%.%. (%d+) bytes left out %.%.%.%]\n(t+)$")
    assert.are.equal(#bytes, #head + tonumber(count) + #tail)
  end)

  it("is UTF-8 and within bounds whatever the bytes", function()
    for _, piece in ipairs { "\xff", "€", "\u{1F600}", "a\xe2\x82" } do
      for extra = 0, 3 do
        local short = output(("a"):rep(extra) .. piece:rep(40000))
        assert.is_true(#short <= LIMIT)
        assert.truthy(utf8.len(short))
      end
    end
    assert.truthy(utf8.len(output(("\xff"):rep(LIMIT - 1))))
    assert.is_nil(output(("€"):rep(40000)):find("\u{FFFD}", 1, true))
  end)
end)
