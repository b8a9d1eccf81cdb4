-- SPDX-License-Identifier: Apache-2.0
local http = require "sba.util.http"

describe("http.send", function()
  it("closes an exchange that gets no status: it would hold a connection until it is collected", function()
    local closed = 0
    local exchange = {
      status = function() return nil, { code = "slow_first_byte", message = "no answer" } end,
      close = function() closed = closed + 1 end,
    }
    local opened, failure = http.send({ open = function() return exchange end }, { method = "GET", url = "http://h/" })
    assert.same({ nil, "slow_first_byte", true, 1 }, { opened, failure.code, failure.transient, closed })
  end)
end)

describe("a web page where an answer was wanted", function()
  it("is called so", function()
    local many <const> = "<title>" .. ("<title>"):rep(9000)
    for _, body in ipairs { "<html></html>", "<title></title>", "<title>never ends", many } do
      assert.equal("an HTML page", (http.words(body)))
    end
    for _, blank in ipairs { " ", "\t", "\n" } do
      assert.equal("an HTML page", (http.words("<title>" .. blank:rep(4096))))
    end
  end)

  it("is not what other answers are", function()
    assert.equal('{"a":"<title>x</title>"}', (http.words '{"a": "<title>x</title>"}'))
    assert.equal("an empty answer", (http.words ""))
  end)
end)

describe("a URL's origin", function()
  it("is scheme, host and port", function()
    assert.equal("http://gw:80", http.origin "HTTP://GW/mcp")
    assert.equal("https://gw:443", http.origin "https://user:word@gw:443/")
    assert.equal("http://[::1]:8080", http.origin "http://[::1]:8080")
    assert.equal("http://[::1]:80", http.origin "http://a@b@[::1]?x:2")
    assert.equal("http://gw:80", http.origin "http://gw:/")
    assert.equal("http://a:b:80", http.origin "http://a:b")
    assert.is_nil(http.origin "gw/mcp")
  end)

  it("is shown without user name, password, path and query", function()
    for given, shown in pairs {
      ["http://user:word@gw:1/path?key=1"] = "http://gw:1",
      ["http://localhost:11434/v1?key=x"] = "http://localhost:11434",
      ["http+unix://%2Frun%2Fa%20b/mcp"] = "the socket /run/a b", ["secret"] = "its URL",
    } do
      assert.equal(shown, http.display_url(given))
    end
  end)
end)

describe("a redirect", function()
  local to = http.redirected

  it("stays at home", function()
    assert.equal("http://gw:1/mcp/", to("http://gw:1/mcp", "/mcp/"))
    assert.equal("http://gw/mcp/", to("http://gw/mcp", "http://GW:80/mcp/"))
    assert.equal("http+unix://%2Frun%2Fs/mcp/", to("http+unix://%2Frun%2Fs/mcp", "/mcp/"))
  end)

  it("goes nowhere else", function()
    local elsewhere = {
      "", "//evil/", "/\\evil/", "https://gw:1/", "http://gw:2/", "http://gw:1@evil/", "http://gw:1.evil/", "mcp",
      "/a\1b", "/a b",
    }
    for _, location in ipairs(elsewhere) do
      assert.is_nil(to("http://gw:1/mcp", location), location)
    end
  end)

  -- curl takes one to three slashes.
  it("is not followed from an address of another form than the runner reads", function()
    assert.is_nil(to("http:/gw:1/mcp", "/mcp/"))
    assert.is_nil(to("http:/gw:1/mcp", "http://gw:1/mcp/"))
    assert.is_nil(to("http:///gw:1/mcp", "/evil/"))
    assert.is_nil(to("http:///gw:1/mcp", "http:///evil/"))
  end)
end)

describe("http.events", function()
  local function events(lines)
    local i, found = 0, {}
    for event in http.events(function()
      i = i + 1
      return lines[i], lines[i] and true or nil
    end) do
      found[#found + 1] = event.data
    end
    return found
  end

  it("end with a blank line, or where another JSON text can only begin", function()
    assert.same({ "1\n2" }, events { "data: 1", "data:2", "" })
    assert.same({ '{"a":1}', '{"a":2}', "[DONE]" }, events { 'data: {"a":1}', 'data:{"a":2}', "data: [DONE]" })
    assert.same({ '{"a":\n{"b":1}\n}' }, events { 'data: {"a":', 'data: {"b":1}', "data: }" })
    assert.same({ '[{"a":1},\n{"a":2}]' }, events { 'data: [{"a":1},', 'data: {"a":2}]', "" })
  end)
end)
