-- SPDX-License-Identifier: Apache-2.0
local acceptance = require "sba.agent.acceptance"

local null = require "sba.util.json".null

local criteria = { "All tests pass.", "The file NEWS names the change" }
local states = { ["step-1"] = "success", ["step-2"] = "failure" }

local function entry(criterion, evidence, met)
  return { criterion = criterion, evidence = evidence, met = met ~= false }
end

local function judge(list, entries, checks)
  return acceptance.judge({ acceptance_criteria = list, checks = checks or {} }, entries, states)
end

describe("acceptance", function()
  it("takes an entry for each criterion, by text or number, whatever the order", function()
    local list, missing, unmet = judge(criteria, { entry("2", "see step 1"), entry("all  tests pass", "step-1: ok") })
    assert.same({}, missing)
    assert.is_nil(unmet)
    assert.same({
      { criterion = "All tests pass.", met = true, evidence = "step-1: ok", verified_by = "model" },
      { criterion = "The file NEWS names the change", met = true, evidence = "see step 1", verified_by = "model" },
    }, list)
  end)

  it("says which criterion has no entry", function()
    local list, missing = judge(criteria, { entry("1", "step-1") })
    assert.same(1, #missing)
    assert.matches("NEWS", missing[1])
    assert.same({ criterion = criteria[2], met = null, evidence = "", verified_by = null }, list[2])
  end)

  it("wants evidence that names a step of this job that succeeded", function()
    for evidence, words in pairs {
      ["I ran the tests"] = "names no step", ["step-2 shows it"] = "did not succeed", ["step-9"] = "not a step of this job",
      ["check-3 passed"] = "not a step of this job",
    } do
      local list, missing = judge({ "x" }, { entry("x", evidence) })
      assert.equal(null, list[1].met)
      assert.matches(words, missing[1])
    end
    assert.same({}, (select(2, judge({ "x" }, { entry("x", "step-2 failed, step-1 did it") }))))
  end)
end)
