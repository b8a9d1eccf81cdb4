-- SPDX-License-Identifier: Apache-2.0
local finish = require "sba.agent.finish"
local null = require "sba.util.json".null

local UNMET <const> = { code = "acceptance_unmet", message = "not met", gave_up = true }

--- What the failure is called after steps: { type, error_code }, in order.
local function called(steps, failure)
  local state = { status_of = {} }
  for i, step in ipairs(steps) do
    finish.note(state, { id = "step-" .. i, type = step[1], error = step[2] and "it wanted x", error_code = step[2] })
  end
  return finish.failure(state, failure)
end

describe("an agent's job that failed", function()
  local fetch, works, fails = { "run_command", "ext_net_required" }, { "run_command" }, { "run_command", "step_failed" }

  it("failed for want of the outside where the last command did", function()
    local wanted <const> = { code = "ext_net_required", message = "step-2: it wanted x; not met" }
    assert.same(wanted, called({ works, fetch }, UNMET))
    assert.equal("ext_net_required", called({ fetch, { "read_file" }, { "write_file" } }, UNMET).code)
    assert.equal("ext_net_required", called({ { "call_tool", "ext_net_required" } }, UNMET).code)
  end)

  it("failed for itself in all other cases", function()
    assert.equal(UNMET, called({}, UNMET))
    assert.equal(UNMET, called({ fetch, works }, UNMET))
    assert.equal(UNMET, called({ fetch, fails }, UNMET))
    assert.equal(UNMET, called({ { "call_tool", "tool_denied" } }, UNMET))
    local unreadable = { code = "agent_stuck", message = "three replies" }
    assert.equal(unreadable, called({ fetch }, unreadable))
  end)
end)

local criteria = { "All tests pass.", "The file NEWS names the change" }
local states = { ["step-1"] = "success", ["step-2"] = "failure" }

local function entry(criterion, evidence, met)
  return { criterion = criterion, evidence = evidence, met = met ~= false }
end

local function judge(list, entries, checks)
  return finish.judge({ acceptance_criteria = list, checks = checks or {} }, entries, states)
end

describe("the evidence of a finish", function()
  it("takes an entry for each criterion, by text or number, whatever the order", function()
    local list, missing, unmet = judge(criteria, { entry("2", "see step 1"), entry("all  tests pass", "step-1: ok") })
    assert.same({}, missing)
    assert.is_nil(unmet)
    assert.same({
      { criterion = "All tests pass.", met = true, evidence = "step-1: ok", verified_by = "model" },
      { criterion = "The file NEWS names the change", met = true, evidence = "see step 1", verified_by = "model" },
    }, list)
  end)

  it("tells criteria apart that differ in a number only", function()
    local two, three = "2 files exist", "3 files exist"
    local list, missing, unmet = judge({ two, three }, { entry(two, "step-1"), entry(three, "step-1", false) })
    assert.same({ true, false, {}, three }, { list[1].met, list[2].met, missing, unmet })
    list = judge({ two, three }, { entry("2. 3 files exist.", "step-1", false), entry("1) 2 Files exist", "step-1") })
    assert.same({ true, false }, { list[1].met, list[2].met })
    list, missing = judge({ "1. done", "2. done" }, { entry("2. Done", "step-1") })
    assert.same({ null, true, 1 }, { list[1].met, list[2].met, #missing })
    list, missing = judge({ "2. done", "1. done" }, { entry("2. done", "step-1") })
    assert.same({ true, null, 1 }, { list[1].met, list[2].met, #missing })
    list, missing = judge({ "same", "same" }, { entry("same", "step-1") })
    assert.same({ true, true, 0 }, { list[1].met, list[2].met, #missing })
  end)

  it("says which criterion has no entry", function()
    local list, missing = judge(criteria, { entry("1", "step-1") })
    assert.same(1, #missing)
    assert.matches("NEWS", missing[1])
    assert.same({ criterion = criteria[2], met = null, evidence = "", verified_by = null }, list[2])
  end)

  it("wants evidence that names a step of this job that succeeded", function()
    for evidence, words in pairs { ["I ran the tests"] = "names no step", ["step-2 shows it"] = "did not succeed",
      ["step-9"] = "not a step of this job", ["check-3 passed"] = "not a step of this job",
    } do
      local list, missing = judge({ "x" }, { entry("x", evidence) })
      assert.equal(null, list[1].met)
      assert.matches(words, missing[1])
    end
    assert.same({}, (select(2, judge({ "x" }, { entry("x", "step-2 failed, step-1 did it") }))))
  end)
end)
