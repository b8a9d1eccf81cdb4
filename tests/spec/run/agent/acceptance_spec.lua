-- SPDX-License-Identifier: Apache-2.0
local acceptance = require "sba.run.agent.acceptance"

local criteria = { "All tests pass.", "The file NEWS names the change" }
local states = { ["step-1"] = "success", ["step-2"] = "failure" }
local function status_of(id) return states[id] end

local function entry(criterion, evidence, met)
  return { criterion = criterion, evidence = evidence, met = met ~= false }
end

describe("acceptance", function()
  it("takes an entry for each criterion, by text or number, whatever the order", function()
    local list = acceptance.judge(criteria, { entry("2", "see step 1"), entry("all  tests pass", "step-1: ok") }, status_of)
    assert.same({ "All tests pass.", "The file NEWS names the change" }, { list[1].criterion, list[2].criterion })
    assert.equal("see step 1", list[2].evidence)
  end)

  it("says which criterion has no entry", function()
    local list, missing = acceptance.judge(criteria, { entry("1", "step-1") }, status_of)
    assert.is_nil(list)
    assert.same(1, #missing)
    assert.matches("NEWS", missing[1])
  end)

  it("wants evidence that names a step of this job that succeeded", function()
    for evidence, words in pairs {
      ["I ran the tests"] = "names no step", ["step-2 shows it"] = "did not succeed", ["step-9"] = "not a step of this job",
    } do
      local list, missing = acceptance.judge({ "x" }, { entry("x", evidence) }, status_of)
      assert.is_nil(list)
      assert.matches(words, missing[1])
    end
    assert.is_table((acceptance.judge({ "x" }, { entry("x", "step-2 failed, step-1 did it") }, status_of)))
  end)

  it("ends at once where a criterion is said not to be met", function()
    local list, missing, unmet = acceptance.judge(criteria, { entry("1", "", false) }, status_of)
    assert.is_nil(missing)
    assert.equal("All tests pass.", unmet)
    assert.is_false(list[1].met)
  end)

  it("needs nothing where there are no criteria", function()
    assert.same(0, #acceptance.judge({}, {}, status_of))
  end)
end)
