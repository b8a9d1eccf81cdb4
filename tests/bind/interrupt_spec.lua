-- SPDX-License-Identifier: Apache-2.0
local interrupt = require "native.interrupt"

describe("interrupt.sleep", function()
  after_each(function() interrupt.set_deadline(1e9) end)

  it("waits that long, and not at all for nothing", function()
    local started = interrupt.now()
    assert.is_true(interrupt.sleep(0.05))
    assert.is_true(interrupt.sleep(0))
    assert.is_true(interrupt.now() - started >= 0.049)
  end)

  it("ends at the deadline", function()
    interrupt.set_deadline(0.05)
    local ok, failure = interrupt.sleep(1000)
    assert.same({ nil, "timeout" }, { ok, failure.code })
    assert.equal("timeout", (select(2, interrupt.sleep(0))).code)
  end)

  it("gets other time after the work, until that is disarmed again", function()
    interrupt.set_deadline(0)
    interrupt.disarm()
    interrupt.rearm(1000)
    assert.is_true(interrupt.sleep(0.01))
    interrupt.rearm(0.05)
    assert.equal("timeout", (select(2, interrupt.sleep(1000))).code)
    interrupt.disarm()
    assert.is_true(interrupt.sleep(0.01))
    interrupt.rearm(1e8)
  end)

  it("refuses what is no time", function()
    for _, seconds in ipairs { -1, 0 / 0, "x" } do
      assert.has_error(function() interrupt.sleep(seconds) end)
    end
  end)
end)
