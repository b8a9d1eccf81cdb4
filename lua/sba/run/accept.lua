-- SPDX-License-Identifier: Apache-2.0
-- Prepares a valid job, up to a first result that says `interrupted`. If any of this fails, no step
-- runs.

local artifacts = require "sba.run.artifacts"
local bundle = require "native.bundle"
local checkpoint = require "sba.result.checkpoint"
local claims = require "sba.run.claims"
local confinement = require "sba.run.confinement"
local ending = require "native.ending"
local fail = require "sba.util.fail"
local file = require "native.file"
local journal = require "sba.journal.file"
local json = require "sba.util.json"
local lazy = require "sba.util.lazy"
local progress = require "sba.run.progress"
local secret = require "sba.util.secret"
local todo = require "sba.run.todo"
local workspace_access = require "sba.run.workspace_access"

local leftovers = lazy "sba.run.leftovers"
local resume = lazy "sba.run.resume"
local run_step = lazy "sba.run.step"
local undo = lazy "sba.run.undo"
local workspace_changes = lazy "sba.run.workspace_changes"

local accept = {}

local JOURNAL <const>, TODO <const> = "journal.jsonl", "todo.json"
-- A directory, see sba.agent.outputs.
local OUTPUTS <const> = "outputs"
-- How the first process of a session calls itself.
local IDLE <const> = "sba\n"
local ROOM <const> = 64 << 10 -- bytes

---What the end by exec is told.
---@param run run
function accept.keep(run)
  local settings, record, url = run.settings, run.record, run.status_url
  -- An address with "@" names a user, and maybe a password: it is not kept.
  if url and url:find("@", 1, true) then url = nil end
  local is_open = run.journal and run.journal_file
  ending.keep(json.encode {
    settings = {
      result = settings.result, workspace = settings.workspace, archive = settings.archive,
      log_format = settings.log_format, termination_log = settings.termination_log,
    },
    job_id = record.job_id, task_id = record.task_id, status_url = url,
    has_result = run.has_result, directory = run.directory,
    artifacts = run.artifacts and run.artifacts:path(), temporary = run.temporary_artifacts,
  }, is_open and run.journal_file:descriptor() or -1)
end

local function warn(run, event, failure, advice)
  run:warn(event, secret.redact(failure.message) .. "; " .. advice, { code = failure.code })
end

local function cannot_resume(run, failure)
  warn(run, "journal.failed", failure, "this job cannot be resumed")
end

local function begin_journal(run)
  local history = run.history
  run.journal_file = run.journal_file or file.memory()
  run.record.from = run.journal_file
  run.journal = journal.begin(run.journal_file, history.size, function(failure)
    cannot_resume(run, failure)
    run.record:load()
  end)
  local goes_on = history.job and not history.result
  if goes_on then run.journal:event("job.resumed", { run = run.runner }) end
end

--- The journal's first line, or what is new in it. What follows the runner is for an end by exec,
--- and for a resume of an edited job.
local function write_job(run)
  local job, history, record = run.job, run.history, run.record
  local steps = run.steps and json.array {}
  for i, step in ipairs(run.steps or {}) do
    steps[i] = { id = step.id, type = step.type, digest = journal.digest(step) }
  end
  run.journal:event(history.job and "job.changed" or "job", {
    job_sha256 = record.job_sha256, protocol_version = job.protocol_version,
    job_id = job.job_id, task_id = job.task_id,
    started_wall = record.started_wall, version = bundle.version, run = run.runner,
    kept = history.same and math.min(history.same, #(run.steps or {})),
    steps = steps, todo = run.todo:summary().items,
    criteria = record.acceptance and job.context.acceptance_criteria,
    confinement = record.confinement, earlier_artifacts = run.earlier_artifacts,
  })
end

--- Opens the workspace and confines commands to it. Returns avoidable, see confinement.begin.
local function open_workspace(run)
  run.workspace = workspace_access.open(run)
  local state, avoidable = confinement.begin(run)
  if state.partial or state.writes == "none" then run.journal_file:guard() end
  run.record.confinement = state
  return avoidable
end

local function log_accepted(run, avoidable)
  local job, state = run.job, run.record.confinement
  run.log:event("info", "job.accepted", {
    steps = run.steps and #run.steps, mode = job.execution_mode,
    max_runtime_seconds = job.constraints.max_runtime_seconds, confinement = state,
  })
  if not state.partial then return end
  local level = "info"
  -- A warning only to those who chose these places: a task's are the runner's choice.
  if avoidable and not run.settings.task then
    level = "warning"
    if avoidable.evidence then run.log.view:note(avoidable.evidence) end
  end
  local error = table.concat(state.partial, "; ")
  run.log:event(level, "confinement.partial", { partial = state.partial, error = error })
end

local function open_todo(run)
  local job = run.job
  run.todo = todo.new()
  run.todo:fill(job, run.catalogue.what)
  run.record.todo = run.todo
  local criteria = job.context and job.context.acceptance_criteria or {}
  if #criteria > 0 then run.record:expect(criteria) end
end

--- Writes the first interim result, and keeps room for the next: one that is a little larger, or
--- else one without large outputs.
local function open_checkpoint(run)
  local path, problem, warned = run.settings.result, nil, false
  run.checkpoint = checkpoint.new(function()
    if path == "-" then return true end
    local how, more = file.replace(path, run.record:interim(run.history), { durable = false })
    local size = how and more or 0
    if not file.keep_room(path, ROOM + size) then file.keep_room(path, ROOM) end
    if how then return true end
    problem = more
    if not run.accepted or warned then return false end
    warned = true
    warn(run, "checkpoint.failed", more, "the previous result stays, and the job goes on")
  end)
  run.has_result = run.checkpoint:write()
  if run.has_result then return end
  fail.raise("environment_invalid", "cannot write the result, so nothing was run: %s", problem.message)
end

--- Files of the runner are no part of the workspace, wherever they lie.
local function own_files(settings, directory)
  if settings.job ~= "-" then file.own(settings.job) end
  if not directory then return end
  file.own(settings.result)
  for _, name in ipairs { JOURNAL, TODO, OUTPUTS } do file.own(directory .. name) end
end

--- Ends what a killed run left, which may hold the lock too. Returns what is wrong with the lock.
local function end_leftovers(run, path, failure)
  local code = failure and failure.code
  local is_there = not failure or code == "locked" or code == "not_locked"
  if not is_there then return failure end
  local life = leftovers.end_run(run, path, not failure)
  if life == "alive" then
    return { code = "locked", message = "another runner works in this job directory: it writes " .. path }
  end
  if code ~= "locked" then return failure end
  run.journal_file, failure = journal.lock(path, false)
  if failure and failure.code == "locked" and life == "gone" then
    local message = "%s is locked, though its runner is gone; `fuser %s` says by which process"
    failure.message = message:format(path, path)
  end
  return failure
end

---Locks the journal, and ends what the run that wrote it left, if that was killed. Raises `locked`
---where another runner works in its directory.
---@param run run
---@param create? boolean a job that is refused leaves none
function accept.lock(run, create)
  if not create and file.read("/proc/1/comm", #IDLE) == IDLE then leftovers.end_rounds(run) end
  if run.journal_file or not run.result_directory then return end
  local path = run.result_directory .. JOURNAL
  local failure
  run.journal_file, failure = journal.lock(path, create == true)
  if not create then failure = end_leftovers(run, path, failure) end
  if not failure then return end
  if failure.code == "locked" then error(failure) end
  if run.journal_file then
    warn(run, "journal.not_locked", failure, "nothing keeps a second runner out of this job directory")
  elseif create then
    cannot_resume(run, failure)
  end
end

local function open_files(run)
  local settings, directory = run.settings, run.result_directory
  own_files(settings, directory)
  accept.lock(run, true)
  run.directory = directory and file.keep_directory(directory)
  if settings.resume then resume.read_journal(run, directory .. JOURNAL) end
  if settings.replay then resume.read_recording(run) end
  local history = run.history
  claims.remember(run)
  -- The old journal goes before the first result is written: after a kill in between nobody takes
  -- it for this job's.
  begin_journal(run)
  -- Once more: from now on a crash composes the result from the journal.
  accept.keep(run)
  if history.result then
    local message = "the job had succeeded before: its result is written again"
    return run.log:event("info", "job.done_before", { message = message })
  end
  run.progress = progress.new { log = run.log, changed = function() run.checkpoint:changed() end }
  run.record.running = function() return run.progress:running_step() end
  if next(history.unfinished) then resume.tell_interrupted(run) end
  open_todo(run)
  if run.steps and history.job then run_step.adopt(run) end
  open_checkpoint(run)
  if not directory then return end
  run.todo:keep(directory .. TODO, function(failure)
    warn(run, "todo.failed", failure, "the list is in the result only")
  end)
end

---What keeps the job from running is raised.
---@param run run
function accept.accept(run)
  open_files(run)
  local history = run.history
  if history.result then return end
  -- Not earlier: it makes directories, and could hide that the result's is missing.
  artifacts.open(run)
  claims.begin(run)
  run.accepted = true
  accept.keep(run)
  local ok, more = pcall(open_workspace, run)
  -- In any case: a resume may come when the workspace can be used.
  if not history.job or history.edited then write_job(run) end
  if not ok then error(more) end
  log_accepted(run, more)
  workspace_access.warn(run)
  local reports_changes = run.job.constraints.report_changes
    or run.environment.SBA_REPORT_CHANGES == "1"
  if history.changes then undo.recover(run) end
  -- Also without a step, a run may have been killed while it wrote changes.patch.
  if next(history.unfinished) or history.job and reports_changes then undo.sweep(run) end
  if reports_changes then workspace_changes.begin(run) end
end

return accept
