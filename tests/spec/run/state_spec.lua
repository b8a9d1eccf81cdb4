-- SPDX-License-Identifier: Apache-2.0
local state = require "sba.run.state"

describe("the state of a run", function()
  it("takes the fields that its class lists, and no others", function()
    local source <close> = assert(io.open((debug.getinfo(state).source:gsub("^@", ""))))
    local run, count = state {}, 0
    for name in source:read("a"):gmatch "%-%-%-@field ([%a_%d]+)" do
      assert.is_nil(run[name])
      run[name], count = name, count + 1
      assert.equal(name, run[name])
    end
    assert.is_true(count > 30)
    local _, known = debug.getupvalue(getmetatable(state {}).__newindex, 1)
    assert.is_function(known)
    local _, names = debug.getupvalue(known, 1)
    for name in pairs(names) do assert.equal(name, run[name]) end
  end)

  it("raises on a field that is not listed: at the start, when set, when read", function()
    assert.error_matches(function() state { wrong = 1 } end, "a run has no field 'wrong'")
    assert.error_matches(function() state {}.wrong = 1 end, "a run has no field 'wrong'")
    assert.error_matches(function() return state {}.wrong end, "a run has no field 'wrong'")
  end)
end)
