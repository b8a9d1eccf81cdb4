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
