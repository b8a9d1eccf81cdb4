-- SPDX-License-Identifier: Apache-2.0
local confine = require "native.confine"
local native_file = require "native.file"
local process = require "native.process"
local workspace = require "native.workspace"

local LONG <const> = 1000 -- clock ticks: more than the test takes

describe("native.process", function()
  local temporary <close> = assert(workspace.open("/tmp"))
  local directory = assert(temporary:directory("."))

  local function run(argv, more)
    local options = { argv = argv, env = { "PATH=/usr/bin:/bin" }, directory = directory,
      output_limit = 1000, end_at_limit = true }
    for name, value in pairs(more or {}) do options[name] = value end
    return process.run(options)
  end

  it("gives everything about a command", function()
    local outcome = assert(run { "sh", "-c", "echo out; echo err >&2; exit 3" })
    assert.same({ "exit", 3 }, { outcome.ended, outcome.exit_code, outcome.signal })
    assert.same({ "out\n", "err\n" }, { outcome.stdout, outcome.stderr })
    assert.same({ false, false }, { outcome.stdout_truncated, outcome.stderr_truncated })
    for _, name in ipairs { "duration_ms", "cpu_time_ms", "max_rss_bytes" } do
      assert.equal("integer", math.type(outcome[name]))
    end
  end)

  it("gives what is long as a file", function()
    for _, spool in ipairs { "/tmp", "" } do
      local command = { "sh", "-c", "yes | head -c 3000000; echo err >&2" }
      local outcome = assert(run(command, { output_limit = 2999999, spool = spool }))
      local file <close> = outcome.stdout.file
      assert.same({ 2999999, "y\ny", "" }, { outcome.stdout.size, file:read(2999996, 3), outcome.stderr })
      assert.equal(2999999, (native_file.measure_text(outcome.stdout)))
    end
  end)

  it("finds a program where a command would, without running it", function()
    assert.equal("/bin/sh", process.find("sh", "/nowhere::/bin:/usr/bin"))
    assert.matches("/sh$", process.find "sh")
    assert.equal("not_found", select(2, process.find("no-such-command", "/bin")).code)
    assert.equal("not_found", select(2, process.find("..", "/bin")).code)
    assert.equal("not_executable", select(2, process.find("passwd", "/etc")).code)
  end)

  it("confines no command once one has run", function()
    assert(run { "true" })
    assert.equal("too_late", select(2, confine.set_rules({ "/tmp" }, {})).code)
  end)

  it("raises on misuse", function()
    for _, argv in ipairs { {}, { "true", {} }, { "echo", "a\0b" } } do
      assert.has_error(function() run(argv) end)
    end
    local wrong = { env = { "A=\0" }, tick = 1, timeout = 0, unknown = 1, spool = true, end_at_limit = "wait" }
    for name, value in pairs(wrong) do
      assert.has_error(function() run({ "true" }, { [name] = value }) end)
    end
  end)

  it("passes on an error of tick and leaves nothing behind", function()
    -- One descriptor lost each time would be missed at the latest by the 64th.
    assert(os.execute "prlimit --nofile=64: --pid $PPID")
    for _ = 1, 64 do
      local ok, problem = pcall(run, { "sleep", "600" }, { tick = function() error({ "mine" }) end })
      assert.is_false(ok)
      assert.same({ "mine" }, problem)
    end
    assert.equal(0, process.finish(0))
  end)

  it("knows whether another process lives", function()
    local self, other = process.runner(), process.runner()
    assert.not_equal(self.word, other.word)
    assert.equal("gone", process.life(self)) -- who asks is another run
    self.pid = tonumber(assert(io.open("/proc/self/stat")):read "a":match "%) %a (%d+)") -- our parent
    self.started = self.started + LONG
    assert.equal("gone", process.life(self)) -- it did not start then
    self.pid_namespace = 1
    assert.is_nil(process.life(self))
    assert.is_nil(process.life {})
    assert.has_error(function() process.life { pid = "x" } end)
  end)

  local first -- the first process of a command
  local function began(pid, started) first = { pid = pid, started = started } end

  it("knows a session though its PID was another's before", function()
    local function tick() process.end_leftovers({}, { { pid = first.pid, started = first.started - 1 }, first }, 1) end
    assert.equal(9, assert(run({ "sleep", "600" }, { began = began, tick = tick, timeout = 5 })).signal)
  end)

  it("ends what others left, by a word or a session", function()
    local word, apart = "spec-" .. process.runner().word, os.tmpname() -- which it removes in a session of its own
    run({ "sh", "-c", [[setsid sh -c 'rm "$0"; exec sleep 602' "$0" >/dev/null 2>&1 &
        sleep 601 >/dev/null 2>&1 & while [ -e "$0" ]; do sleep 0.01; done]], apart }, {
      env = { "PATH=/usr/bin:/bin", "CYNODE_RUN=" .. word }, began = began,
    })
    assert.equal("integer", math.type(first.started))
    assert.is_true(process.sessions()[first.pid])
    assert.equal(0, process.end_leftovers({ word .. "1" }, { { pid = first.pid, started = first.started + LONG } }, 1))
    assert.same({ 1, 0, 0 }, { process.end_leftovers({}, { first }, 10) })
    assert.same({ 1, 0, 0 }, { process.end_leftovers({ "x", word }, {}, 10) })
    assert.equal(0, process.finish(2))
    assert.has_error(function() process.end_leftovers({}, { 1 }, 1) end)
    assert.has_error(function() process.end_leftovers({}, {}, -1) end)
  end)

  it("ends what was left running and says how much", function()
    run { "sh", "-c", "setsid sleep 600 >/dev/null 2>&1 & setsid sleep 600 >/dev/null 2>&1 &" }
    assert.equal(2, process.finish(2))
    assert.equal(0, process.finish(2))
    assert.is_true(process.usage().max_rss_bytes > 0)
  end)
end)
