-- SPDX-License-Identifier: Apache-2.0
-- The end of a job that could not end by itself (native.ending): the program again, which knows
-- only the journal.

local ending = require "native.ending"
local exit = require "sba.result.failure".exit
local failures = require "sba.result.failure"
local file = require "native.file"
local finish = require "sba.run.finish"
local fold = require "sba.journal.fold"
local identity = require "native.identity"
local interrupt = require "native.interrupt"
local journal = require "sba.journal.file"
local json = require "sba.util.json"
local lazy = require "sba.util.lazy"
local process = require "native.process"
local result_schema = require "sba.result.result_schema"
local schema_check = require "sba.util.schema_check"
local schemas = require "sba.result.events"
local state = require "sba.run.state"
local todo = require "sba.run.todo"
local usage = require "sba.journal.usage"
local workspace = require "native.workspace"

local direct = lazy "sba.run.direct"
local run_step = lazy "sba.run.step"
local task = lazy "sba.task"
local undo = lazy "sba.run.undo"

local LARGEST_LIST <const> = 16 << 20 -- bytes
-- Seconds from SIGTERM to SIGKILL; none past the deadline.
local GRACE <const> = 1
local KILLING <const> = 0.3 -- seconds from SIGKILL on
local SWEEPING <const> = 1 -- seconds
-- Seconds since the deadline, as `finish` is told: some are left for artifacts.
local AGO <const> = 1.2

-- The job's failure by the reason of the end. of_step: the error code of the step that ran, where it
-- is another.
local ends <const> = {
  timeout = { code = "timeout",
    message = "the job's time was up, and the runner hung: its watchdog ended it" },
  signal = { code = "cancelled",
    message = "the job was cancelled by a signal, and the runner hung: its watchdog ended it" },
  memory = { code = "internal_error", of_step = "out_of_memory",
    message = "the runner ran out of memory; a job of this size needs more" },
  crash = { code = "internal_error",
    message = "the runner crashed; this is a bug of the runner, or somebody sent it such a signal" },
}
local items_schema <const> = result_schema.properties.todo.properties.items
local list_schema <const> = { type = "object", required = { "items" }, properties = { items = items_schema } }

-- An agent's items are in todo.json, which commands can write to.
local function todo_items(run)
  local directory, mistakes = run.result_directory, { total = 0, limit = 1 }
  local bytes = directory and not run.steps and file.read(directory .. "todo.json", LARGEST_LIST)
  local list = bytes and json.decode_own(bytes)
  if list then schema_check.check(list, list_schema, mistakes) end
  if list and mistakes.total == 0 then return list.items end
  return run.history:job_list "todo" or {}
end

-- Steps that have not finished end in the result only: a resumed job runs them.
local function adopt_steps(run)
  local failure = run.failure
  run_step.adopt(run)
  run.journal = journal.begin(nil, 0)
  local index, step = next(run.history.unfinished)
  if index == run.record.count + 1 then
    local status = failure.code == "timeout" and "timeout" or "failure"
    local entry = { status = status, started_at = step.at, error = failure.message }
    entry.error_code = failure.of_step or failure.code
    run_step.keep(run, { index = index, step = step }, entry, "step.kept")
  end
  if run.steps then direct.skip_rest(run) end
end

-- What failed a direct job before is still why: after it came but steps that run always, and
-- checks.
local function first_failure(run)
  local history = run.history
  -- A resumed run that has not begun a step has not failed.
  if not run.steps or history.goes_back then return nil end
  for index = 1, history.count do
    local status = history.statuses[index]
    local has_failed = status == "failure" or status == "timeout"
    local entry = has_failed and not history.checks[index] and history:head(index)
    if entry and not entry.tolerated then
      return run_step.failure_of(entry, index, failures.of_step(entry.error_code, entry.error))
    end
  end
end

local function look_back(run)
  local history = run.history
  local problem, is_torn = history:fold({ schemas = schemas, strict = true }, run.journal_file)
  if problem and is_torn ~= true then error(problem, 0) end
  local job, record = history.job, run.record
  if not job then return end
  run.has_result = true -- it knows all that a result needs
  record:continue(job.started_wall)
  record.job_sha256 = job.job_sha256
  record.confinement = job.confinement or record.confinement
  if job.criteria then record:expect(job.criteria) end
  for number, verdict in pairs(record.acceptance and history.verdicts or {}) do
    verdict.criterion = job.criteria[number]
    record.acceptance[number] = verdict.criterion and verdict
  end
  run.steps = history:job_list "steps"
  run.job = { steps = run.steps or {} }
  run.todo = todo.new(todo_items(run))
  record.todo = run.todo
  record.inference = usage.sum(history.used, history.answers)
  adopt_steps(run)
  run.failure = first_failure(run) or run.failure
end

-- Puts back what the step that ran was changing, and removes its temporary files.
local function recover(run)
  local left = run.history.changes
  local is_partial = left and not left.committed
  local is_unfinished = next(run.history.unfinished) ~= nil
  if is_partial or is_unfinished then run.workspace = workspace.open(run.settings.workspace) end
  if not run.workspace then return end
  if is_partial then undo.recover(run) end
  if is_unfinished then undo.sweep(run, interrupt.now() + SWEEPING) end
end

-- The run that has to end. inherited: what accept.keep told.
local function run_of(inherited)
  local settings = inherited.settings
  if settings.archive then settings.keep = function(run) task.keep(run) end end
  local run = state.new(settings, identity.environment {})
  run.record.job_id, run.record.task_id = inherited.job_id, inherited.task_id
  run.log:identify(inherited.job_id, inherited.task_id)
  run.history, run.status_url = fold.new(), inherited.status_url
  run.temporary_artifacts = inherited.temporary
  if inherited.directory then file.keep_directory(run.result_directory, inherited.directory) end
  run.crashed, run.has_result = true, inherited.has_result
  run.artifacts = inherited.artifacts and workspace.open(inherited.artifacts)
  return run
end

-- Returns why the journal is of no use.
local function take_journal(run, descriptor)
  run.journal_file = file.adopt(descriptor)
  run.record.from = run.journal_file
  local ok, problem = pcall(look_back, run)
  -- What stands is better than a result without steps.
  if not ok and run.settings.result ~= "-" then return tostring(problem) end
  run.journal = journal.begin(run.journal_file, run.history.size, function() end)
  recover(run)
end

---@return integer status
return function()
  local before = assert(ending.inherited())
  collectgarbage "restart" -- the host stopped the collector
  local reason, standing, grace = before.reason, exit.FAILED, GRACE
  interrupt.disarm()
  if reason == "timeout" then standing, grace = exit.TIMEOUT, 0 end
  if reason == "signal" then standing = 128 + before.signal end
  -- The exit status, should this not come to its own end.
  ending.last(standing)
  -- The result does not wait for those that hang.
  process.finish(grace, interrupt.now() + grace + KILLING)
  local inherited = before.information and json.decode(before.information)
  if not inherited then return standing end
  local run = run_of(inherited)
  run.failure = ends[reason]
  local problem = before.journal and take_journal(run, before.journal)
  run.deadline = interrupt.now() - AGO
  local status = problem and standing or finish(run)
  local message = "the runner could not end the job: it was started again, which wrote the result"
  if problem then
    message = "the journal cannot be read, so the latest result stays: " .. problem
  end
  -- The result is written: where there is no memory for a line, that stays so.
  pcall(function() run.log:event("error", "watchdog.ended", { error = message }) end)
  return status
end
