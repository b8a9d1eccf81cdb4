-- SPDX-License-Identifier: Apache-2.0
local client = require "sba.agent.client"

describe("what is nearly used up", function()
  local function scarce(left, inference, used)
    return client.scarce {
      job = { constraints = { max_runtime_seconds = 100 }, inference = inference }, record = { inference = used },
      seconds_left = function() return left end,
    }
  end

  it("is the time that the model is told, without what is kept for the checks", function()
    assert.same({ "time", "none", "none" }, { scarce(20), scarce(21) or "none", scarce(nil) or "none" })
  end)

  it("is the last fifth of requests and tokens", function()
    local used <const> = { requests = 8, prompt_tokens = 700, completion_tokens = 99 }
    assert.equal("requests", scarce(50, { max_requests = 10 }, used))
    assert.equal("tokens", scarce(50, { max_requests = 11, max_total_tokens = 900 }, used))
    assert.is_nil(scarce(50, { max_requests = 11, max_total_tokens = 1000 }, used))
  end)
end)
