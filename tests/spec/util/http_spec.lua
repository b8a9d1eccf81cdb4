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
    for _, body in ipairs { "<html></html>", "<title></title>", "<title>never ends", "<title>" .. ("<title>"):rep(9000) } do
      assert.equal("an HTML page", (http.words(body)))
    end
    for _, blank in ipairs { " ", "\t", "\n" } do assert.equal("an HTML page", (http.words("<title>" .. blank:rep(4096)))) end
  end)

  it("is not what other answers are", function()
    assert.equal('{"a":"<title>x</title>"}', (http.words '{"a": "<title>x</title>"}'))
    assert.equal("an empty answer", (http.words ""))
  end)
end)
