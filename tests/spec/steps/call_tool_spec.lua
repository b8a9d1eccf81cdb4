-- SPDX-License-Identifier: Apache-2.0
local call_tool = require "sba.steps.call_tool"
local fail = require "sba.util.fail"
local http = require "sba.util.http"
local secret = require "native.secret"

local function limits_of(arguments, agent)
  local given
  call_tool.run(arguments, { max_output_bytes = 1000, agent = agent, call_tool = function(_, _, limits)
    given = limits
    return { content = "", is_error = false }
  end })
  return given
end

describe("call_tool", function()
  it("gives a direct job's call no limit but its own", function()
    assert.same({}, limits_of({ tool = "t" }, false))
    assert.same({ whole = 7 }, limits_of({ tool = "t", timeout_seconds = 7 }, false))
  end)

  it("gives a model's call 120 s without progress", function()
    assert.same({ idle = 120 }, limits_of({ tool = "t" }, true))
  end)

  it("names its own timeout", function()
    local _, failure = fail.caught(call_tool.run, { tool = "t", timeout_seconds = 7 }, {
      max_output_bytes = 1000, agent = false,
      call_tool = function() return nil, http.failure("slow_answer", "slow") end,
    })
    assert.equal("timeout", failure.code)
    assert.matches("within its timeout of 7 s", failure.message)
  end)

  it("returns no part of a secret where it cuts the answer", function()
    secret.add "a-token-of-the-gateway"
    local answer = { content = ("x"):rep(440) .. "a-token-of-the-gateway" .. ("y"):rep(2000), is_error = true }
    local _, failure = call_tool.run({ tool = "t" }, {
      max_output_bytes = 1000, agent = true, call_tool = function() return answer end,
    })
    assert.is_nil((failure.text .. failure.result.content):find "token")
  end)
end)
