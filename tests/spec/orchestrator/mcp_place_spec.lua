-- SPDX-License-Identifier: Apache-2.0
local place = require "sba.orchestrator.mcp.place"

describe("an origin", function()
  it("is scheme, host and port", function()
    assert.are.equal("http://gw:80", place.origin "HTTP://GW/mcp")
    assert.are.equal("https://gw:443", place.origin "https://user:word@gw:443/")
    assert.are.equal("http://[::1]:8080", place.origin "http://[::1]:8080")
    assert.is_nil(place.origin "gw/mcp")
  end)

  it("is shown without what is nobody's business", function()
    assert.are.equal("the MCP gateway http://gw:1", place.shown "http://user:word@gw:1/path?key=1")
    assert.are.equal("the MCP gateway at the socket /run/a b", place.shown "http+unix://%2Frun%2Fa%20b/mcp")
  end)
end)

describe("a redirect", function()
  local function to(url, location) return place.redirected(url, location) end

  it("stays at home", function()
    assert.are.equal("http://gw:1/mcp/", to("http://gw:1/mcp", "/mcp/"))
    assert.are.equal("http://gw/mcp/", to("http://gw/mcp", "http://GW:80/mcp/"))
    assert.are.equal("http+unix://%2Frun%2Fs/mcp/", to("http+unix://%2Frun%2Fs/mcp", "/mcp/"))
  end)

  it("goes nowhere else", function()
    local elsewhere = { "", "//evil/", "/\\evil/", "https://gw:1/", "http://gw:2/", "http://gw:1@evil/", "http://gw:1.evil/", "mcp" }
    for _, location in ipairs(elsewhere) do
      assert.is_nil(to("http://gw:1/mcp", location), location)
    end
  end)
end)
