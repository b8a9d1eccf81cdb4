-- SPDX-License-Identifier: Apache-2.0
local url = require "sba.util.url"

describe("an origin", function()
  it("is scheme, host and port", function()
    assert.equal("http://gw:80", url.origin "HTTP://GW/mcp")
    assert.equal("https://gw:443", url.origin "https://user:word@gw:443/")
    assert.equal("http://[::1]:8080", url.origin "http://[::1]:8080")
    assert.equal("http://[::1]:80", url.origin "http://a@b@[::1]?x:2")
    assert.equal("http://gw:80", url.origin "http://gw:/")
    assert.equal("http://a:b:80", url.origin "http://a:b")
    assert.is_nil(url.origin "gw/mcp")
  end)

  it("is shown without user name, password, path and query", function()
    for given, shown in pairs {
      ["http://user:word@gw:1/path?key=1"] = "http://gw:1", ["http://localhost:11434/v1?key=x"] = "http://localhost:11434",
      ["http+unix://%2Frun%2Fa%20b/mcp"] = "the socket /run/a b", ["secret"] = "its URL",
    } do
      assert.equal(shown, url.shown(given))
    end
  end)
end)

describe("a redirect", function()
  local to = url.redirected

  it("stays at home", function()
    assert.equal("http://gw:1/mcp/", to("http://gw:1/mcp", "/mcp/"))
    assert.equal("http://gw/mcp/", to("http://gw/mcp", "http://GW:80/mcp/"))
    assert.equal("http+unix://%2Frun%2Fs/mcp/", to("http+unix://%2Frun%2Fs/mcp", "/mcp/"))
  end)

  it("goes nowhere else", function()
    local elsewhere = {
      "", "//evil/", "/\\evil/", "https://gw:1/", "http://gw:2/", "http://gw:1@evil/", "http://gw:1.evil/", "mcp", "/a\1b", "/a b",
    }
    for _, location in ipairs(elsewhere) do
      assert.is_nil(to("http://gw:1/mcp", location), location)
    end
  end)
end)
