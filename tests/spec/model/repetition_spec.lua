-- SPDX-License-Identifier: Apache-2.0
local repetition = require "sba.model.repetition"

local TEXT <const>, ARGUMENTS <const> = 1024, 16384 -- bytes that a repetition fills

--- What is found in a text that comes in pieces of that size, and after how many bytes.
local function found_in(whole, size, least)
  local watch = repetition.new(least or TEXT)
  for at = 1, #whole, size do
    local repeated = watch:add(whole:sub(at, at + size - 1))
    if repeated then return repeated, at + size - 1 end
  end
end

local function numbers(count)
  local parts = {}
  for i = 1, count do parts[i] = ("%d is not %d. "):format(i, i * i) end
  return table.concat(parts)
end

describe("a text", function()
  it("that is one token, line or paragraph over and over is stopped, in pieces of any size", function()
    for _, period in ipairs { "a", "ha ", "\n", "I look again.\n", numbers(10), numbers(90) } do
      for _, size in ipairs { 1, 3, 1000, 5000 } do
        local repeated, at = found_in("Well. " .. period:rep(100000 // #period), size)
        assert.equal(#period, repeated and #repeated, period:sub(1, 20))
        assert.is_true(at <= 1024 + 12 * #period + 1024 + 6 + size)
      end
    end
  end)

  it("of anything else is not", function()
    local interrupted <const> = ("ha "):rep(320) .. numbers(9) .. ("ha "):rep(320)
    for _, whole in ipairs { numbers(30000), ("-"):rep(1000), interrupted, numbers(400):rep(10), "" } do
      assert.is_nil(found_in(whole, 7))
    end
    assert.is_nil(found_in(("x\n"):rep(8000), 7, ARGUMENTS))
  end)

  it("that broke off tells the token that came often at its end", function()
    for whole, repeated in pairs { ["So " .. ("the "):rep(31)] = "the ", [("\n"):rep(24)] = "\n",
      ["a" .. (" b"):rep(23)] = false } do
      local watch = repetition.new(TEXT)
      watch:add(whole)
      assert.equal(repeated, watch:at_end() or false)
    end
  end)

  it("has one of what it repeats", function()
    assert.equal("So: ha  [...]", repetition.once("So: " .. ("ha "):rep(1000), "ha "))
    assert.equal("So: a ha  [...]", repetition.once("So: " .. ("a ha "):rep(1000) .. "a ha ", "a ha "))
    assert.equal("nothing", repetition.once("nothing", "ha "))
  end)
end)
