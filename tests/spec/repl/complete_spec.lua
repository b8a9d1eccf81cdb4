-- SPDX-License-Identifier: Apache-2.0
local complete = require "sba.repl.complete" (_G)
require "sba.repl.globals".install {}

local function completed(before, after)
  local insert, show = complete(before .. (after or ""), #before)
  return insert and before .. insert, show
end

describe("completion", function()
  it("goes as far as all that fit agree", function()
    _G.spec_alpha_one, _G.spec_alpha_two = 1, 2
    assert.equal("spec_alpha_", (completed "spec_al"))
    local insert, show = completed "spec_alpha_"
    assert.is_nil(insert)
    assert.equal("spec_alpha_one  spec_alpha_two", show)
    _G.spec_alpha_one, _G.spec_alpha_two = nil, nil
  end)

  it("is of what stands before the cursor", function()
    assert.equal("x + string.format", (completed("x + string.form", "(1)")))
    assert.equal("print(coroutine", (completed("print(corout", "e)")))
  end)

  it("offers methods only after a colon", function()
    _G.spec_thing = { value = 1, method = print }
    assert.equal("spec_thing:method", (completed "spec_thing:"))
    assert.equal("method  value", select(2, completed "spec_thing."))
    _G.spec_thing = nil
  end)

  it("has nothing to say to what does not exist", function()
    for _, line in ipairs {
      "no_such_thing", "no_such_thing.field", "native.no.such", "1 + ", "'quoted ", "x..", "print(",
    } do assert.is_nil((completed(line)), line) end
  end)
end)
