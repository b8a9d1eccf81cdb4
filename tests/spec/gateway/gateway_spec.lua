-- SPDX-License-Identifier: Apache-2.0
local gateway = require "sba.gateway"
local http = require "sba.util.http"
local mcp = require "sba.gateway.mcp"

describe("a call of a gateway's tool", function()
  local connect = mcp.connect
  local calls, ends, failure

  local function call(limits)
    mcp.connect = function()
      return {
        list = function() return { { name = "t", inputSchema = {} } } end,
        call = function(_, _, _, given)
          calls, ends[#ends + 1] = calls + 1, given.until_when
          if calls < 3 then return nil, failure end
          return { content = {} }
        end,
      }
    end
    calls, ends = 0, {}
    local remote = assert(gateway.connect {
      environment = { SBA_MCP_GATEWAY_URL = "http://gw/" }, http = {}, job_id = "j", task_id = "t",
      ext_net_allowed = false,
    })
    return remote:call("t", {}, limits), calls
  end

  after_each(function() mcp.connect = connect end)

  it("is made again only if it surely was not carried out", function()
    for code, tries in pairs {
      connection_refused = 3, name_not_resolved = 3,
      cut_off = 1, connection_failed = 1, slow_answer = 1, tool_refused = 1,
    } do
      failure = http.failure(code, "it failed")
      local answer, made = call()
      assert.equal(tries, made, code)
      assert.equal(tries == 3, answer ~= nil, code)
    end
  end)

  it("has its time for all tries together", function()
    failure = http.failure("connection_refused", "it failed")
    call { until_when = 1e9 }
    assert.same({ 1e9, 1e9, 1e9 }, ends)
  end)

  it("is made again after any transient failure where the caller allows it", function()
    for code, tries in pairs { cut_off = 3, gateway_failed = 1, slow_answer = 1 } do
      failure = http.failure(code, "it failed")
      assert.equal(tries, select(2, call { repeatable = true }), code)
    end
  end)
end)
