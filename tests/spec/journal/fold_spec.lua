-- SPDX-License-Identifier: Apache-2.0
local file = require "native.file"
local fold = require "sba.journal.fold"
local json = require "sba.util.json"
local journal = require "sba.journal.file"
local schemas = require "sba.result.events"
local record = require "sba.result.record"

local STEPS <const> = { { id = "a", type = "x" }, { id = "b", type = "x" } }

local function job(log, sha256) log:event("job", { job_sha256 = sha256, started_wall = 1000 }) end

local function started(log, index)
  log:event("step.started", { index = index - 1, id = STEPS[index].id, type = STEPS[index].type })
end

local function finished(log, result) log:event("job.finished", { result = result }) end

describe("the journal", function()
  local path, held

  before_each(function() path = os.tmpname() end)
  after_each(function()
    if held then held:close() end
    held = nil
    os.remove(path)
  end)

  local function entry(index, id, status)
    local failed = status == "failure" and ',"error":"no","error_code":"step_failed"' or ""
    return ('{"index":%d,"id":"%s","type":"x","status":"%s","started_at":"","duration_ms":0%s}'):format(
      index, id, status or "success", failed)
  end

  local function begin(size, failed)
    if held then held:close() end
    held = assert(journal.lock(path, true))
    return journal.begin(held, size, failed or error)
  end

  local function write(fill)
    local log = begin(0)
    job(log, "sha")
    if fill then fill(log) end
  end

  local function read()
    local log = assert(file.open(path))
    return fold.resume(log, path, { schemas = schemas, job_file = { sha256 = "sha", steps = STEPS } })
  end

  local function refusal(reason)
    local history, failure = read()
    assert.is_nil(history)
    assert.truthy(failure.message:find(reason, 1, true), failure.message)
  end

  local function append(bytes)
    local handle = assert(io.open(path, "a"))
    handle:write(bytes)
    handle:close()
  end

  it("gives back what was written", function()
    write(function(log)
      started(log, 1)
      log:steps_finished { entry(0, "a") }
      started(log, 2)
    end)
    local history = assert(read())
    assert.equal(1000, history.job.started_wall)
    assert.equal(entry(0, "a"), held:read(history.offsets[1], history.sizes[1]))
    assert.equal("success", history.statuses[1])
    assert.truthy(history.unfinished[2].at:find("^%d%d%d%d%-.*Z$"))
    assert.is_nil(history.unfinished[1])
    assert.same({ STEPS[2].id, STEPS[2].type }, { history.unfinished[2].id, history.unfinished[2].type })
    assert.is_nil(history.result)
  end)

  it("takes an entry with something behind it", function()
    write(function(log)
      started(log, 1)
      log:append({ '{"event":"step.finished","entry":' .. entry(0, "a") .. ',"later":{}}' })
    end)
    assert.same(json.decode(entry(0, "a")), (assert(read()):entry(1)))
  end)

  local function ended(failure, first, second)
    local result = record.new("j", "t"):fields(failure)
    write(function(log)
      started(log, 1)
      log:steps_finished { entry(0, "a", first) }
      if second == "success" then started(log, 2) end
      log:steps_finished { entry(1, "b", second) }
      finished(log, result)
    end)
    return result
  end

  it("goes on where a job did not succeed, any number of times", function()
    ended({ code = "step_failed", message = "no" }, "failure", "skipped")
    local history = assert(read())
    assert.is_nil(history.result)
    assert.same({ {}, 1 }, { history.offsets, history.failed })
    assert.same({ { after = 0, why = "step_failed: no" } }, history.resumes)
    local log = begin(assert(read()).size)
    log:event("job.resumed", {})
    started(log, 1)
    log:steps_finished { entry(0, "a") }
    history = assert(read())
    assert.same({ 1, nil }, { history.count, history.failed })
    log:event("job.resumed", {})
    started(log, 1)
    assert.equal(0, assert(read()).count)
    started(log, 1)
    log:steps_finished { entry(0, "a") }
    log:steps_finished { entry(0, "a") }
    refusal "not the next one"
  end)

  it("forgets what had begun where a later run went back", function()
    write(function(log)
      started(log, 1)
      log:steps_finished { entry(0, "a") }
      started(log, 2)
      log:event("job.resumed", {})
      started(log, 1)
    end)
    local history = assert(read())
    assert.same({ 0, true, false }, { history.count, history.unfinished[1] ~= nil, history.unfinished[2] ~= nil })
  end)

  it("knows what was asked of models, and what checks found, without long texts in memory", function()
    local long = ("x"):rep(100000)
    write(function(log)
      log:event("step.started", { index = 0, id = "a", type = "ask_model" })
      local asked_model = '{"index":0,"id":"a","type":"ask_model","status":"success","started_at":"","duration_ms":0,'
        .. '"result":{"content":"%s","model":"m","prompt_tokens":3},"output":"%s"}'
      log:steps_finished { asked_model:format(long, long) }
      log:event("model.session", { model = "n", context_length = 9 })
      local asked = json.array { { role = "user", content = long } }
      log:event("model.exchange", { messages = asked, reply = { content = long, prompt_tokens = 4 } })
      local check = { index = 1, id = "b", type = "run_command", check = 2, arguments = { command = "true" } }
      log:event("step.started", check)
      log:steps_finished { (entry(1, "b"):gsub('"x"', '"run_command","check":2')) }
    end)
    local log = assert(file.open(path))
    local history = fold.new()
    assert.is_nil(history:fold({ schemas = schemas, strict = true }, log))
    for model, used in pairs { m = history.answers, n = history.used } do
      local tokens = model == "m" and 3 or 4
      assert.same({ model = model, requests = 1, prompt_tokens = tokens, completion_tokens = 0, duration_ms = 0 }, used)
    end
    local evidence = "b: `true` ended with exit code 0"
    assert.same({ met = true, verified_by = "check", evidence = evidence }, history.verdicts[2])
    assert.equal(long, history:entry(1).result.content)
    assert.equal(long, history:exchange(1).reply.content)
    assert.is_nil(history:head(1).output)
  end)

  it("takes arguments of any shape, for people edit journals", function()
    write(function(log)
      log:event("step.started", { index = 0, id = "a", type = "x", check = 1, arguments = { shell = json.null } })
      log:steps_finished { (entry(0, "a"):gsub('"x"', '"x","check":1')) }
    end)
    local history = fold.new()
    assert.is_nil(history:fold({ schemas = schemas }, assert(file.open(path))))
    assert.equal("a: its command ended with exit code 0", history.verdicts[1].evidence)
  end)

  it("is refused when it is of another job, edited, or cut in the middle", function()
    local function line(index) return ('{"event":"step.started","index":%d,"id":"b","type":"x"}\n'):format(index) end
    for _, case in ipairs {
      { "line 2", "x\n" }, { "not the next one", line(1) }, { "no such step", line(0) },
      { "not an event", '{"event":"other"}\n' }, { "not an event", "[1]\n" },
      { "had not begun", fill = function(log) log:steps_finished { entry(0, "a") } end },
      { "not the next one", fill = function(log) started(log, 1) log:steps_finished { entry(1, "b") } end },
      { "steps are missing", fill = function(log) finished(log, record.new("j", "t"):fields()) end },
    } do
      write(case.fill)
      append(case[2] or "")
      refusal(case[1])
    end
    file.replace(path, { '{"event":"job.resumed"}\n' })
    refusal "does not begin with its job"
    job(begin(0), "another")
    refusal "another job"
  end)

  it("takes steps of the journal's job that are none for other ones", function()
    local job_file <const> = { sha256 = "sha", job_id = "j", task_id = "t", steps = STEPS }
    for _, steps in ipairs { 1, "x", {}, json.array { 1 } } do
      local line = { job_sha256 = "another", started_wall = 1000, job_id = "j", task_id = "t", steps = steps }
      begin(0):event("job", line)
      local rules = { schemas = schemas, job_file = job_file }
      local history, failure = fold.resume(assert(file.open(path)), path, rules)
      if json.is_array(steps) then
        assert.matches("does not say what its steps were", failure.message)
      else
        assert.equal(0, history.same)
      end
    end
  end)

  it("keeps the last line of an earlier run when the next cannot be written", function()
    write(function(log) started(log, 1) end)
    local log = begin(assert(read()).size, function() end)
    local real, tries = log.log, 0
    log.log = {
      cut = function(_, size) return real:cut(size) end,
      append = function(_, parts)
        tries = tries + 1
        if tries == 1 then return nil, { code = "no_space", message = "" } end
        return real:append(parts)
      end,
    }
    started(log, 2)
    local lines = {}
    for line in io.lines(path) do lines[#lines + 1] = (assert(json.decode(line))).event end
    assert.same({ "job", "step.started", "journal.failed" }, lines)
  end)

  it("is given up for good when a line cannot be written: one behind it would make the whole unreadable", function()
    local failures, tries = 0, 0
    local log = begin(0, function() failures = failures + 1 end)
    local function refuse()
      tries = tries + 1
      return nil, { code = "no_space", message = "" }
    end
    log.log = { append = refuse, cut = function() end }
    job(log, "sha")
    log:steps_finished { "{}" }
    assert.same({ 1, 1 }, { failures, tries })
  end)
end)
