-- SPDX-License-Identifier: Apache-2.0
local finish = require "sba.agent.finish"

local UNMET <const> = { code = "acceptance_unmet", message = "not met", gave_up = true }

--- What the failure is called after steps: { type, error_code }, in order.
local function called(steps, failure)
  local state = {}
  for i, step in ipairs(steps) do
    finish.note(state, { id = "step-" .. i, type = step[1], error = step[2] and "it wanted x", error_code = step[2] })
  end
  return finish.failure(state, failure)
end

describe("an agent's job that failed", function()
  local fetch, works, fails = { "run_command", "ext_net_required" }, { "run_command" }, { "run_command", "step_failed" }

  it("failed for want of the outside where the last command did", function()
    assert.same({ code = "ext_net_required", message = "step-2: it wanted x; not met" }, called({ works, fetch }, UNMET))
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
