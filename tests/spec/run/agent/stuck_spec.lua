-- SPDX-License-Identifier: Apache-2.0
local stuck = require "sba.run.agent.stuck"

local function repeated(watch, times, changed)
  local last
  for _ = 1, times do last = watch:answered("run_command", { shell = "make" }, "failed", changed) end
  return last
end

describe("stuck", function()
  it("warns at the third and ends at the fourth time", function()
    local watch = stuck.new()
    assert.is_nil(repeated(watch, 2))
    assert.equal("warn", repeated(watch, 1))
    assert.equal("end", repeated(watch, 1))
  end)

  it("tells calls by arguments and by result", function()
    local watch = stuck.new()
    for i = 1, 9 do assert.is_nil(watch:answered("read_file", { path = "a" .. i }, "x")) end
    for i = 1, 9 do assert.is_nil(watch:answered("read_file", { path = "a" }, "x" .. i)) end
  end)

  it("counts anew after the workspace was changed", function()
    local watch = stuck.new()
    repeated(watch, 3)
    assert.is_nil(watch:answered("write_file", { path = "a" }, "wrote", true))
    assert.is_nil(repeated(watch, 2))
  end)

  it("does not let the same change over and over count as a change", function()
    local watch = stuck.new()
    local last
    for _ = 1, 4 do last = watch:answered("write_file", { path = "a" }, "wrote", true) end
    assert.equal("end", last)
  end)

  it("ends at three unreadable or three empty replies in a row", function()
    local watch = stuck.new()
    assert.is_false(watch:could_not_read())
    assert.is_false(watch:could_not_read())
    watch:was_read()
    assert.is_false(watch:could_not_read())
    assert.is_false(watch:could_not_read())
    assert.is_true(watch:could_not_read())
    watch = stuck.new()
    assert.is_false(watch:said_nothing())
    assert.is_false(watch:said_nothing())
    assert.is_true(watch:said_nothing())
  end)
end)
