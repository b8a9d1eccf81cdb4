-- SPDX-License-Identifier: Apache-2.0
local file = require "native.file"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local log = require "sba.util.log"
local progress = require "sba.run.progress"

local clock = 0

local real_now, real_elapsed_ms, real_write = interrupt.now, interrupt.elapsed_ms, file.write
before_each(function()
  interrupt.now = function() return clock end
  interrupt.elapsed_ms = function(since) return (clock - since) * 1000 // 1 end
end)
after_each(function()
  interrupt.now, interrupt.elapsed_ms, file.write = real_now, real_elapsed_ms, real_write
end)

--- A progress whose log and whose changes of the result are kept.
local function new()
  local kept = { events = {}, changes = 0 }
  kept.progress = progress.new {
    changed = function() kept.changes = kept.changes + 1 end,
    log = {
      event = function(_, level, event, fields)
        table.insert(kept.events, { level, event, fields.duration_ms, fields.output_bytes })
      end,
      view = {
        output = function(_, words, kind) table.insert(kept.events, { kind, words }) end,
        end_output = function() end,
      },
    },
  }
  return kept
end

local function begin(kept)
  kept.progress:step(function() return { step = 3, id = "s", type = "run_command" } end, 1 << 20)
end

describe("what runs", function()
  it("has a heartbeat every 30 s", function()
    local kept = new()
    begin(kept)
    kept.progress:said "abc"
    for second = 0, 95 do
      clock = clock + 1
      if second == 10 then kept.progress:said("de", 5) end
      kept.progress:tick()
    end
    assert.are.same({
      { "step", "abc" }, { "step", "\n[... 5 bytes left out ...]\nde" }, { "info", "step.running", 30000, 10 },
      { "info", "step.running", 60000, 10 }, { "info", "step.running", 90000, 10 },
    }, kept.events)
  end)

  it("is named by the result soon, and every second", function()
    local kept = new()
    begin(kept)
    kept.progress:tick()
    assert.are.equal(0, kept.changes)
    clock = clock + 0.3
    kept.progress:tick()
    assert.are.equal(1, kept.changes)
    for _ = 1, 110 do
      clock = clock + 0.1
      kept.progress:tick()
    end
    assert.are.equal(11, kept.changes)
    for _ = 1, 100 do
      clock = clock + 0.1
      kept.progress:said "more"
      kept.progress:tick()
    end
    assert.is_true(kept.changes >= 30 and kept.changes <= 50, kept.changes)
    local running = kept.progress:running_step()
    assert.are.same({ 2, "s", "run_command" }, { running.index, running.id, running.type })
    assert.are.equal(("more"):rep(100), running.output)
    kept.progress:finish()
    assert.is_nil(kept.progress:running_step())
    kept.progress:finish() -- again: nothing runs
  end)

  it("is a model or a step, and a question within a step is the step's", function()
    local kept = new()
    kept.progress:model "m"
    kept.progress:said "word"
    assert.is_nil(kept.progress:running_step())
    kept.progress:finish()
    begin(kept)
    kept.progress:model "m"
    kept.progress:said "answer"
    assert.are.same({ { "model", "word" }, { "step", "answer" } }, kept.events)
  end)

  it("is shown with the end of what it said", function()
    local kept = new()
    begin(kept)
    for i = 1, 50000 do kept.progress:said(("%09d\n"):format(i)) end
    local running = kept.progress:running_step()
    assert.are.equal(4096, #running.output)
    assert.is_true(running.output_truncated)
    assert.truthy(running.output:find("000050000\n$"))
  end)
end)

describe("events of output", function()
  local function told(follow)
    local list = {}
    file.write = function(_, parts)
      local event = assert(json.decode(table.concat(parts)))
      table.insert(list, { event.output, event.left_out_bytes })
      return true
    end
    return log.new({ format = "json", follow = follow }).view, list
  end

  local function say(view, words) view:output(words, "step", function() return {} end) end

  it("come at most once a second, with the last 4 KiB", function()
    local view, list = told()
    say(view, "a")
    say(view, "b")
    assert.are.same({}, list)
    clock = clock + 1.1
    view:tick()
    assert.are.same({ { "ab" } }, list)
    say(view, ("c"):rep(5000))
    clock = clock + 1.1
    view:tick()
    assert.are.same({ ("c"):rep(4096), 904 }, list[2])
    say(view, "d")
    view:end_output()
    clock = clock + 1.1
    view:tick()
    assert.are.equal(2, #list)
    say(view, "of another, which is soon over")
    view:end_output()
    assert.are.equal(2, #list)
  end)

  it("have all where the log follows", function()
    local view, list = told(true)
    say(view, ("c"):rep(5000))
    say(view, "d")
    assert.are.same({ { ("c"):rep(5000) }, { "d" } }, list)
  end)
end)
