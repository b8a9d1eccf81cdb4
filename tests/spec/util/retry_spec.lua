-- SPDX-License-Identifier: Apache-2.0
local retry = require "sba.util.retry"

local NOW <const> = 784111777000 -- Sun, 06 Nov 1994 08:49:37 GMT

describe("retry.after", function()
  it("reads seconds and dates", function()
    for value, seconds in pairs {
      ["0"] = 0, ["120"] = 120, [" 7 "] = 7, ["1.5"] = 1.5, ["Sun, 06 Nov 1994 08:49:37 GMT"] = 0,
      ["Sun, 06 Nov 1994 08:50:07 GMT"] = 30, ["Sun, 06 Nov 1994 08:49:00 GMT"] = 0,
      ["Mon, 07 Nov 1994 08:49:37 GMT"] = 86400, ["Thu, 29 Feb 1996 08:49:37 GMT"] = 480 * 86400,
      ["Fri, 01 Mar 1996 08:49:37 GMT"] = 481 * 86400, ["Wed, 01 Mar 2000 08:49:37 GMT"] = 1942 * 86400,
    } do
      assert.equal(seconds, retry.after(value, nil, NOW), value)
    end
  end)

  it("prefers milliseconds", function()
    local others <const> = { soon = 7, [""] = 7, [("1"):rep(1000)] = 7, ["-1"] = 7 }
    for given, seconds in pairs(others) do assert.equal(seconds, retry.after("7", given)) end
    for given, seconds in pairs { ["1500"] = 1.5, ["20.5"] = 0.0205, ["0"] = 0 } do
      assert.equal(seconds, retry.after("7", given))
    end
  end)

  it("knows nothing of anything else", function()
    for _, value in ipairs { "", "soon", "-1", "1e3", "1d", "2026-01-01",
      "Sun, 06 Now 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 CET", "\0", "1.2.3", "Sun, 06 anF 1994 08:49:37 GMT",
      ("1"):rep(1000000), (" "):rep(1000000) } do
      assert.is_nil(retry.after(value, nil, NOW), value)
    end
    assert.is_nil(retry.after(nil))
  end)
end)

describe("retry.wait", function()
  it("grows with each try, up to its bound", function()
    for _ = 1, 50 do
      local policy, last = retry.policy(), 0
      for number = 1, 10 do
        local wait = retry.wait(policy, number)
        assert.is_true(wait > last or wait == policy.longest)
        assert.is_true(wait <= policy.longest)
        last = wait
      end
    end
  end)

  it("is never less than what the server asked for, and no more than a server may ask for", function()
    local policy = retry.policy()
    for _ = 1, 100 do
      local wait = retry.wait(policy, 1, 7)
      assert.is_true(wait >= 7 and wait < 8.5)
    end
    assert.is_true(retry.wait(policy, 1, math.huge) < policy.longest_asked + 2)
  end)
end)
