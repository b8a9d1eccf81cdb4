-- SPDX-License-Identifier: Apache-2.0
local checkpoint = require "sba.result.checkpoint"

--- A file of parts that grow: counts how often and how much is written.
local function growing()
  local state = { size = 0, writes = 0, written = 0 }
  state.checkpoint = checkpoint.new(function()
    if state.broken then
      state.tries = (state.tries or 0) + 1
      return nil
    end
    state.writes, state.written = state.writes + 1, state.written + state.size
    return state.size
  end)
  function state.grow(bytes)
    state.size = state.size + bytes
    state.checkpoint:changed(bytes)
    state.checkpoint:tick()
  end
  return state
end

describe("a checkpoint", function()
  it("follows every change of a small file", function()
    local state = growing()
    for _ = 1, 100 do state.grow(100) end
    assert.are.equal(100, state.writes)
  end)

  it("writes a large file a bounded number of times", function()
    local state = growing()
    state.grow(100000)
    local before = state.written
    for _ = 1, 100000 do state.grow(300) end
    assert.is_true(state.written - before <= 2.5 * state.size, ("%d of %d"):format(state.written, state.size))
  end)

  it("writes what became old when it is ticked, and only if something changed", function()
    local state = growing()
    state.grow(100000)
    state.grow(1)
    assert.are.equal(1, state.writes)
    state.checkpoint:tick()
    assert.are.equal(1, state.writes)
    state.checkpoint.at = state.checkpoint.at - 2
    state.checkpoint:tick()
    assert.are.equal(2, state.writes)
    state.checkpoint.at = state.checkpoint.at - 2
    state.checkpoint:tick()
    assert.are.equal(2, state.writes)
  end)

  it("does not try again at every change what failed", function()
    local state = growing()
    state.grow(10)
    state.broken = true
    for _ = 1, 100 do state.grow(10) end
    assert.are.equal(1, state.tries)
    state.broken = false
    state.checkpoint.at = state.checkpoint.at - 2
    state.grow(10)
    assert.are.equal(2, state.writes)
  end)
end)
