-- SPDX-License-Identifier: Apache-2.0
local compile = require "sba.repl".compile

describe("a chunk at the prompt", function()
  it("is an expression or a statement", function()
    assert.equal(3, compile "1 + 2" ())
    assert.same({ 1, 2 }, { compile "1, 2" () })
    assert.equal(0, select("#", compile "local x = 1" ()))
    assert.equal(0, select("#", compile "" ()))
    assert.equal(0, select("#", compile "-- nothing" ()))
    assert.equal(7, compile "return 7" ())
  end)

  it("is unfinished where more lines can make it whole", function()
    local sources = {
      "for i = 1, 2 do", "f(", "{ 1,", "x =", "[[a", "--[[ a", "function f()", "1 +", "if x then y()", "'a\\",
    }
    for _, source in ipairs(sources) do
      local made, message, unfinished = compile(source)
      assert.is_nil(made)
      assert.is_string(message)
      assert.is_true(unfinished, source)
    end
  end)

  it("is wrong where they cannot", function()
    for _, source in ipairs { "x x", "end", "'a", "for for", ")", "1 = 2" } do
      local made, message, unfinished = compile(source)
      assert.is_nil(made)
      assert.truthy(message:find("^stdin:1: "))
      assert.is_falsy(unfinished, source)
    end
  end)

  it("is never bytecode", function()
    assert.is_nil((compile(string.dump(function() end))))
  end)
end)
