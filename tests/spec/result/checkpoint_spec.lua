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
  function state.change()
    state.checkpoint:changed()
    state.checkpoint:tick()
  end
  interrupt.now = function() return state.now end
  return state
end

describe("a checkpoint", function()
  local now = interrupt.now
  after_each(function() interrupt.now = now end)

  it("writes a change at once, and the next ones together 200 ms later", function()
    local state = prepare()
    for _ = 1, 100 do state.change() end
    assert.are.equal(1, state.writes)
    state.now = state.now + 0.19
    state.change()
    assert.are.equal(1, state.writes)
    state.now = state.now + 0.02
    state.checkpoint:tick()
    assert.are.equal(2, state.writes)
  end)

  it("writes nothing where nothing changed", function()
    local state = prepare()
    state.checkpoint:tick()
    state.checkpoint:flush()
    assert.are.equal(0, state.writes)
  end)

  it("writes a change now when it is flushed", function()
    local state = prepare()
    state.change()
    state.change()
    state.checkpoint:flush()
    assert.are.equal(2, state.writes)
  end)

  it("hurries where that costs little", function()
    local state = prepare()
    state.cost = 0.01
    state.change()
    state.change()
    state.checkpoint:hurry()
    assert.are.equal(1, state.writes)
    state.now = state.now + 0.05
    state.checkpoint:hurry()
    assert.are.equal(2, state.writes)
  end)

  it("takes at most a fifth of the time where a write is slow", function()
    local state = prepare()
    state.cost = 1
    state.change()
    state.now = state.now + 3.9
    state.change()
    assert.are.equal(1, state.writes)
    state.now = state.now + 0.2
    state.checkpoint:tick()
    assert.are.equal(2, state.writes)
  end)

  it("tries again later what failed", function()
    local state = prepare()
    state.works = false
    for _ = 1, 100 do state.change() end
    assert.are.equal(1, state.writes)
    state.works, state.now = true, state.now + 0.3
    state.checkpoint:tick()
    assert.are.equal(2, state.writes)
    assert.is_false(state.checkpoint.dirty)
  end)
end)
