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
  local whole = { step = 3, steps = 12, type = "run_command", what = "make test", status = "success", duration_ms = 1234 }
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

  it("says once why a job was refused", function()
    assert.equal("refused: schema_validation\n  /a: b\nresult: /r\n", shown(nil, {},
      { "error", "job.refused", { failure_code = "schema_validation", failure_message = "bad", errors = { "/a: b" } } },
      { "error", "job.finished", { status = "failure", failure_code = "schema_validation", failure_message = "bad", outcomes = {},
        duration_ms = 5, result = "/r" } }))
  end)

  it("shows other events only where they are warnings", function()
    assert.equal("", shown(nil, {}, { "info", "todo.changed", {} }))
    assert.equal("warning: journal failed: why\n", shown(nil, {}, { "warning", "journal.failed", { error = "why" } }))
  end)
end)
