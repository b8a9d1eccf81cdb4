-- SPDX-License-Identifier: Apache-2.0
local loop_detector = require "sba.agent.loop_detector"

local QUICK <const>, CHANGED <const>, SLOW <const> = {}, { changed = true }, { duration_ms = 1000 }

describe("loop_detector", function()
  local watch
  before_each(function() watch = loop_detector.new() end)

  local function repeated(times, about)
    local last
    for _ = 1, times do last = watch:answered("run_command", { shell = "make" }, "failed", about or QUICK) end
    return last
  end

  it("counts a call that took a second or more a third", function()
    assert.is_nil(repeated(8, SLOW))
    assert.equal("warn", repeated(1, SLOW))
    assert.is_nil(repeated(2, SLOW))
    assert.equal("end", repeated(1, SLOW))
    watch = loop_detector.new()
    repeated(8, SLOW)
    assert.equal("warn", repeated(1))
    assert.equal("end", repeated(1))
  end)

  it("tells calls by arguments and by result", function()
    for i = 1, 9 do assert.is_nil(watch:answered("read_file", { path = "a" .. i }, "x", QUICK)) end
    for i = 1, 9 do assert.is_nil(watch:answered("read_file", { path = "a" }, "x" .. i, QUICK)) end
  end)

  it("counts anew after the workspace was changed", function()
    repeated(3)
    assert.is_nil(watch:answered("write_file", { path = "a" }, "wrote", CHANGED))
    assert.is_nil(repeated(2))
  end)

  it("does not let the same change over and over count as a change", function()
    local last
    for _ = 1, 4 do last = watch:answered("write_file", { path = "a" }, "wrote", CHANGED) end
    assert.equal("end", last)
  end)

  it("finds circles of several calls, changes among them", function()
    for length = 2, 6 do
      watch = loop_detector.new()
      local found = {}
      for i = 0, 4 * length - 1 do
        found[#found + 1] = watch:answered("run_command", { shell = "echo " .. i % length }, "done", CHANGED)
      end
      assert.equal("end", found[#found], length)
      assert.same({ "warn", length + 1 }, { found[1], #found })
    end
  end)

  it("forgets what is long ago", function()
    for i = 1, 20 do
      for j = 1, 30 do
        assert.is_nil(watch:answered("read_file", { path = "f" .. i * j }, ("%d of %d"):format(i, j), QUICK))
      end
      assert.is_nil(watch:answered("read_file", { path = "a" }, "x", QUICK))
    end
  end)

  it("takes no times, ids and line numbers in an answer for something new", function()
    for _, answers in ipairs {
      { "took 0.3 s", "took 12 ms", "took 2 seconds", "took 1 s" },
      { "at 2026-01-31T09:05:00Z", "at 2026-01-31 09:05:01.5", "at 2026-02-01T00:00:00Z", "at 2026-02-01 00:00:01" },
      { "Sat 09:05:00 UTC", "Sat 09:05:07 UTC", "Sat 10:00:00 UTC", "Sat 10:00:01 UTC" },
      { "1790000000123456789", "1790000001123456789", "1790000002000000000", "1790000003000000001" },
      { "id 100000001", "id 100000002", "id 100000003", "id 100000004" },
      { "commit 3f2a9c1", "commit 9e01b7d4c5", "commit a1b2c3d", "commit 00ff00a" },
      { "0x7ffd1234", "0xdeadbeef", "0x1", "0xabcd" },
      { "pid 17", "pid 4711", "pid=9", "PID: 12" },
      { "now:\n9\tx\n10\ty\n", "now:\n10\tx\n11\ty\n", "now:\n11\tx\n12\ty\n", "now:\n12\tx\n13\ty\n" },
      { "in /tmp/tmp.Xy12/a", "in /tmp/tmpab_c/a", "in /tmp/go-build7/a", "in /tmp/x/a" },
      { "123e4567-e89b-12d3-a456-426614174000", "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff", "123e4567-e89b-12d3-a456-426614174001" },
    } do
      watch = loop_detector.new()
      local last
      for _, answer in ipairs(answers) do last = watch:answered("run_command", { shell = "x" }, answer, CHANGED) end
      assert.equal("end", last, answers[1])
    end
  end)

  it("takes other numbers for something new", function()
    for i = 1, 9 do
      local answer = ("%d of 9 passed, a.c:%d:3"):format(i, i * 10)
      assert.is_nil(watch:answered("run_command", { shell = "make" }, answer, CHANGED))
    end
  end)

  it("raises the temperature with each repetition until something new is done", function()
    local seen = {}
    for i = 1, 3 do
      repeated(1)
      seen[i] = watch:temperature() or false
    end
    assert.same({ false, 1.0, 1.2 }, seen)
    watch:answered("read_file", { path = "a" }, "x", QUICK)
    assert.is_nil(watch:temperature())
    watch:replied "unreadable"
    assert.equal(1.0, watch:temperature())
    watch:replied(nil)
    assert.is_nil(watch:temperature())
  end)

  it("ends at the third reply in a row with one flaw; mistaken calls count from the sixth on", function()
    for flaw, most in pairs { unreadable = 3, silent = 3, mistaken = 8 } do
      for i = 1, most do assert.equal(i == most, watch:replied(flaw), flaw) end
      watch:replied(nil)
      assert.is_false(watch:replied(flaw))
    end
    watch = loop_detector.new()
    for _, flaw in ipairs { "unreadable", "silent", "unreadable", "unreadable", "mistaken", "unreadable", "silent" } do
      assert.is_false(watch:replied(flaw))
    end
  end)
end)
