-- SPDX-License-Identifier: Apache-2.0
local printable = require "sba.util.printable"
local terminal = require "sba.util.terminal"

local function shown(columns, environment, ...)
  local written = {}
  local view = terminal.new(function(bytes) written[#written + 1] = bytes end, columns, environment)
  view:identify "job-1"
  for _, event in ipairs { ... } do view:event(event[1], event[2], event[3] or {}) end
  return table.concat(written)
end

local function step(fields)
  local whole = { step = 3, steps = 12, type = "run_command", what = "make test", status = "success",
    duration_ms = 1234 }
  for name, value in pairs(fields or {}) do whole[name] = value end
  return whole
end

describe("foreign text on a terminal", function()
  it("does nothing but stand there", function()
    assert.equal("a\\x1b[31mb\\x07 \\x00c", printable.line "a\27[31mb\7\n\r\t\0c")
    assert.equal("\\x7f\\x9b\\u{202e}\\u{feff}", printable.line "\127\u{9b}\u{202e}\u{feff}")
    assert.equal("\u{FFFD}é€", printable.line "\xffé€")
  end)
end)

describe("the live view", function()
  it("is plain lines where there is no terminal", function()
    local text = shown(nil, { LANG = "C" }, { "info", "job.accepted", { steps = 1, max_runtime_seconds = 75 } },
      { "info", "step.started", step() }, { "info", "step.finished", step() },
      { "error", "step.finished", step { status = "failure", error = "it\27 broke" } },
      { "info", "job.finished", { status = "success", outcomes = { success = 1 }, duration_ms = 5, result = "/r" } })
    assert.equal("job job-1: 1 step, at most 1 min 15 s\n" ..
      "ok step 3 of 12  run_command  make test  1.2 s\n" ..
      "FAILED step 3 of 12  run_command  make test  1.2 s\n  it\\x1b broke\n" ..
      "success in 5 ms, 1 step: 1 succeeded\nresult: /r\n", text)
  end)

  it("names a step whose id was given", function()
    local function line(id) return shown(nil, {}, { "info", "step.finished", step { id = id } }) end
    assert.equal("ok step 3 of 12  build  run_command  make test  1.2 s\n", line "build")
    assert.equal("ok step 3 of 12  run_command  make test  1.2 s\n", line "step-3")
  end)

  it("has marks in ASCII where the terminal or the locale has no more", function()
    local function mark(environment)
      return shown(80, environment, { "info", "step.finished", step() }):find "^ok" ~= nil
    end
    assert.is_true(mark { TERM = "dumb", LANG = "C.UTF-8" })
    assert.is_true(mark { TERM = "xterm", LC_ALL = "C", LANG = "de_DE.UTF-8", NO_COLOR = "1" })
    assert.is_false(mark { TERM = "xterm", LC_CTYPE = "de_DE.utf8", LANG = "C", NO_COLOR = "1" })
  end)

  it("says once why a job was refused", function()
    assert.equal("refused: schema_validation\n  /a: b\nresult: /r\n", shown(nil, {},
      { "error", "job.refused", { failure_code = "schema_validation", failure_message = "bad", errors = { "/a: b" } } },
      { "error", "job.finished", { status = "failure", failure_code = "schema_validation", failure_message = "bad",
        outcomes = {},
        duration_ms = 5, result = "/r" } }))
  end)

  it("shows other events only where they are warnings", function()
    assert.equal("", shown(nil, {}, { "info", "todo.changed", {} }))
    assert.equal("warning: journal failed: why\n", shown(nil, {}, { "warning", "journal.failed", { error = "why" } }))
  end)
end)

describe("a line that tells that it lives", function()
  local clock, written, view

  local function new(columns, environment, follow)
    clock, written = 0, {}
    view = terminal.new(function(bytes) written[#written + 1] = bytes end, columns, environment, follow)
    view.now = function() return clock end
  end

  local function wait(seconds)
    for _ = 1, seconds do
      clock = clock + 1
      view:tick()
    end
  end

  local function said()
    local all = table.concat(written)
    written = {}
    return all
  end

  it("comes on a pipe after 5 s, then every 30 s", function()
    new(nil, {})
    view:event("info", "step.started", step())
    wait(4)
    assert.equal("", said())
    wait(1)
    assert.equal("> step 3 of 12  run_command  make test  5 s\n", said())
    wait(29)
    assert.equal("", said())
    wait(1)
    assert.equal("> step 3 of 12  run_command  make test  35 s\n", said())
    view:event("info", "step.finished", step())
    said()
    wait(100)
    assert.equal("", said())
  end)

  it("is one line on a terminal, drawn again while nothing else is shown, and wiped for what is", function()
    new(80, { TERM = "xterm", NO_COLOR = "1" }, true)
    view:event("info", "step.started", step())
    said()
    wait(6)
    assert.equal("    5 s\r\27[K    6 s", said())
    view:output "words\n"
    assert.equal("\r\27[K    words\n", said())
    wait(4)
    assert.equal("", said())
    wait(1)
    assert.equal("    11 s", said())
    view:event("info", "step.finished", step())
    assert.equal("\r\27[K✓ step 3 of 12  run_command  make test  1.2 s\n", said())
  end)

  it("is not drawn where the cursor cannot move", function()
    new(80, { TERM = "dumb" }, true)
    view:event("info", "step.started", step())
    assert.equal("> step 3 of 12  run_command  make test\n", said()) -- the log follows the output
    wait(5)
    assert.equal("> step 3 of 12  run_command  make test  5 s\n", said())
  end)

  it("tells of a model too, until it answers", function()
    new(nil, {})
    view:event("info", "model.request", { model = "m" })
    wait(5)
    assert.equal("> model  m  5 s\n", said())
    view:event("info", "model.response", {})
    wait(60)
    assert.equal("", said())
  end)

  it("leaves of a line that overwrites itself what stands there at the end", function()
    new(nil, {}, true)
    view:output "10 %\r20 %\r30 %\n"
    assert.equal("    30 %\n", said())
    new(80, { TERM = "xterm" }, true)
    view:output "10 %"
    view:output "\r20 %"
    assert.equal("    10 %\r\27[K    20 %", said())
  end)
end)
