-- SPDX-License-Identifier: Apache-2.0
local rules = require "sba.gateway.rules"

describe("a tool's name for models", function()
  it("is letters, digits, _ and -, once, at most 64", function()
    assert.equal("artifact_put", rules.mapped("artifact.put", {}))
    assert.equal("a_b_c-d_", rules.mapped("a b/c-dß", {}))
    assert.equal("a____", rules.mapped("a\xFF\n\0.", {}))
    local taken, long = {}, ("x"):rep(100)
    for _ = 1, 12 do
      local name = rules.mapped(long, taken)
      assert.is_true(#name <= 64 and not taken[name])
      taken[name] = true
    end
  end)
end)

describe("the rules", function()
  local function code(tool, allowed)
    local refusal = rules.refusal(tool, allowed)
    return refusal and refusal.code
  end

  it("never open what no job may call", function()
    for _, tool in ipairs {
      "db.x", "DB.X", " node.list", "sandbox.exec", "skills.create", "skills.update", "skills.delete\n",
    } do assert.equal("tool_forbidden", code(tool, true), tool) end
  end)

  it("open the outside where the job may go there", function()
    for _, tool in ipairs { "web.fetch", "web.search", "web.anything", "api.call" } do
      assert.equal("ext_net_required", code(tool, false))
      assert.is_nil(code(tool, true))
    end
  end)

  it("keep the query of an orchestrator's address", function()
    local function address(base) return (rules.address { ORCHESTRATOR_URL = base }) end
    for _, path in ipairs { "", "/", "/v1/mcp/tools/call", "/v1/mcp/tools/call/" } do
      local base = "http://a/b" .. path
      assert.equal("http://a/b/v1/mcp/tools/call", address(base))
      assert.equal("http://a/b/v1/mcp/tools/call?k=/v#x", address(base .. "?k=/v#x"))
    end
  end)

  it("leave everything else alone", function()
    for _, tool in ipairs {
      "dbx", "database.get", "skills.get", "skills.created", "api.caller", "webcam.look", "my.db.x", "",
    } do assert.is_nil(code(tool, false), tool) end
  end)
end)
