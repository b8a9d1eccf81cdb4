-- SPDX-License-Identifier: Apache-2.0
local checkpoint = require "sba.result.checkpoint"
local interrupt = require "native.interrupt"

--- A checkpoint whose clock stands still until it is moved, and whose writes take `cost` seconds.
local function prepare()
  local state = { now = 100.0, writes = 0, cost = 0, works = true }
  state.checkpoint = checkpoint.new(function()
    state.now, state.writes = state.now + state.cost, state.writes + 1
    return state.works or nil
  end)
  ---Moves the clock, then ticks. Returns how many writes there were.
  function state.tick_after(seconds)
    state.now = state.now + seconds
    state.checkpoint:tick()
    return state.writes
  end
  ---Likewise, with a change before the tick.
  function state.change_after(seconds)
    state.checkpoint:changed()
    return state.tick_after(seconds)
  end
  interrupt.now = function() return state.now end
  return state
end

describe("a checkpoint", function()
  local now, state = interrupt.now, nil
  before_each(function() state = prepare() end)
  after_each(function() interrupt.now = now end)

  it("writes a change at once, and the next ones together 200 ms later", function()
    for _ = 1, 100 do assert.equal(1, state.change_after(0)) end
    assert.equal(1, state.change_after(0.19))
    assert.equal(2, state.tick_after(0.02))
  end)

  it("writes nothing where nothing changed", function()
    state.checkpoint:tick()
    state.checkpoint:flush()
    assert.equal(0, state.writes)
  end)

  it("writes a change now when it is flushed", function()
    for _ = 1, 2 do assert.equal(1, state.change_after(0)) end
    state.checkpoint:flush()
    assert.equal(2, state.writes)
  end)

  it("hurries where that costs little", function()
    state.cost = 0.01
    for _ = 1, 2 do state.change_after(0) end
    state.checkpoint:hurry()
    assert.equal(1, state.writes)
    state.now = state.now + 0.2
    state.checkpoint:hurry()
    assert.equal(2, state.writes)
  end)

  it("takes at most a twentieth of the time where a write is slow", function()
    state.cost = 1
    state.change_after(0)
    assert.equal(1, state.change_after(18.9))
    assert.equal(2, state.tick_after(0.2))
  end)

  it("tries again later what failed", function()
    state.works = false
    for _ = 1, 100 do assert.equal(1, state.change_after(0)) end
    state.works = true
    assert.equal(2, state.tick_after(0.3))
    assert.is_false(state.checkpoint.dirty)
  end)
end)
