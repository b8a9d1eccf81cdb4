-- SPDX-License-Identifier: Apache-2.0
-- Prepares a valid job, up to a first result that says `interrupted`. If any of this fails, no step runs.

local artifacts = require "sba.run.artifacts"
local bundle = require "native.bundle"
local checkpoint = require "sba.result.checkpoint"
local claims = require "sba.run.claims"
local confinement = require "sba.run.confinement"
local ending = require "native.ending"
local file = require "native.file"
local interrupt = require "native.interrupt"
local journal = require "sba.journal.file"
local json = require "sba.util.json"
local json_file = require "sba.util.json_file"
local progress = require "sba.run.progress"
local schemas = require "sba.result.events"
local secret = require "sba.util.secret"
local text = require "native.text"
local todo = require "sba.run.todo"
local workspace_access = require "sba.run.workspace_access"

local accept = {}

local JOURNAL <const>, TODO <const> = "journal.jsonl", "todo.json"
local OUTPUTS <const> = "outputs" -- a directory, see sba.agent.outputs
local IDLE <const> = "sba\n" -- how the first process of a session calls itself
local ROOM <const> = 64 << 10 -- bytes
local LONG <const>, DIGITS <const> = 1024, 16 -- bytes of an argument; hexadecimal digits

---What the end by exec is told.
---@param run run
function accept.keep(run)
  local url, settings, record = run.status_url, run.settings, run.record
  ending.keep(json.encode {
    result = settings.result, workspace = settings.workspace, log_format = settings.log_format, job_id = record.job_id,
    task_id = record.task_id, has_result = run.has_result, directory = run.directory,
    artifacts = run.artifacts and run.artifacts:path(), temporary = run.temporary_artifacts,
    termination_log = settings.termination_log, kept = settings.kept,
    status_url = url and not url:find("@", 1, true) and url or nil,
  }, run.journal and run.journal_file and run.journal_file:descriptor() or -1)
end

local function warn(run, event, failure, advice)
  run:warn(event, secret.redact(failure.message) .. "; " .. advice, { code = failure.code })
end

local function cannot_resume(run, failure) warn(run, "journal.failed", failure, "this job cannot be resumed") end

local function refuse(code, message) error { code = code, message = message } end

--- Long texts stand as their digests: a job may be of megabytes.
local function shortened(value)
  if type(value) == "string" and #value > LONG then return "sha256:" .. text.sha256(value) end
  if type(value) ~= "table" then return value end
  local copy = setmetatable({}, getmetatable(value))
  for name, part in pairs(value) do copy[name] = shortened(part) end
  return copy
end

--- By which --resume knows the step of a job that was edited.
local function digest(step) return text.sha256(json.encode(shortened(step.arguments))):sub(1, DIGITS) end

--- The result that stands knows more than one that is made without the journal.
local function refuse_resume(failure)
  local code = failure.code == "invalid_journal" and "schema_validation" or "environment_invalid"
  error { code = code, message = "cannot resume: " .. failure.message, keeps_result = true }
end

local function tell_edited(run, history)
  local message, first = "the job was edited; the steps that are done stay as they are", nil
  if run.steps and history.same < #run.steps then
    first = history.same + 1
    message = ("step %d %s; it and all after it run"):format(first, history.was_there and "was changed" or "is new")
  elseif history.same and not run.steps then
    message = "the job had steps and is an agent's now; nothing of what was done is kept"
  end
  run.log:event("info", "job.changed", { message = message, step = first })
end

--- If the earlier run succeeded (history.result), only its result is written again.
local function read_past(run)
  local path = run.result_directory .. JOURNAL
  if not run.journal_file then refuse_resume { message = path .. " cannot be written" } end
  local history, failure = run.lazy.fold().resume(run.journal_file, path, {
    schemas = schemas, job_sha256 = run.job_sha256, job_id = run.job.job_id, task_id = run.job.task_id,
    digest = digest, steps = run.steps, catalogue = run.catalogue,
  })
  interrupt.hold(false) -- what earlier runs did is read whole, also where a signal comes meanwhile
  if failure then refuse_resume(failure) end
  if not history then
    return run:warn("journal.missing", secret.redact(path) .. " holds no job to resume; starting anew")
  end
  run.history = history
  run.record:continue(history.job.started_wall)
  if history.result then return end
  run.record.inference = history.answers -- an agent's replies are counted as they are adopted
  if history.edited then tell_edited(run, history) end
end

--- What an interrupted step had said stands in the latest result.
local function tell_interrupted(run)
  local index, step = next(run.history.unfinished)
  if not index then return end
  local log <close> = file.open(run.settings.result)
  local result = log and json_file.outline(log, 0, "steps")
  local running = json.is_object(result) and result.running_step
  local output = json.is_object(running) and running.output
  step.output = type(output) == "string" and secret.redact((text.repair(output))) or nil
  run:emit("step.interrupted", { index = index, step = step })
end

local function begin_journal(run)
  run.journal_file = run.journal_file or file.memory()
  run.record.from = run.journal_file
  run.journal = journal.begin(run.journal_file, run.history.size, function(failure)
    cannot_resume(run, failure)
    run.record:load()
  end)
  run.has_job_line = run.history.job ~= nil
  if run.history.job and not run.history.result then run:emit("job.resumed", { run = run.runner }) end
end

--- The journal's first line, or what is new in it. What follows the ids is for an end by exec, and for a resume of an
--- edited job.
local function write_job(run)
  local job, history, steps = run.job, run.history, run.steps and json.array {}
  for i, step in ipairs(run.steps or {}) do steps[i] = { id = step.id, type = step.type, digest = digest(step) } end
  run:emit(history.job and "job.changed" or "job", {
    kept = history.same and math.min(history.same, #(run.steps or {})),
    job_sha256 = run.job_sha256, protocol_version = job.protocol_version, job_id = job.job_id, task_id = job.task_id,
    run = run.runner, started_wall = run.record.started_wall, version = bundle.version,
    steps = steps, todo = run.todo:summary().items,
    criteria = run.record.acceptance and job.context.acceptance_criteria, confinement = run.record.confinement,
    earlier_artifacts = run.earlier_artifacts,
  })
  run.has_job_line = true
end

--- Opens the workspace and confines commands to it. Returns avoidable, see confinement.begin.
local function open_workspace(run)
  local failure, state, avoidable
  run.workspace, failure = workspace_access.open(run)
  if not run.workspace then error(failure) end
  state, failure, avoidable = confinement.begin(run)
  if not state then error(failure) end
  if state.partial or state.writes == "none" then run.journal_file:guard() end
  run.record.confinement = state
  return avoidable
end

local function log_accepted(run, avoidable)
  local job, partial = run.job, run.record.confinement.partial
  run.log:event("info", "job.accepted", {
    steps = run.steps and #run.steps, max_runtime_seconds = job.constraints.max_runtime_seconds, mode = job.execution_mode,
    confinement = run.record.confinement,
  })
  if not partial then return end
  -- Who starts a task with --task chose none of these places.
  local level = avoidable and not run.settings.task and "warning" or "info"
  if level == "warning" and avoidable.evidence then run.log.view:note(avoidable.evidence) end -- of a directory of their own
  run.log:event(level, "confinement.partial", { partial = partial, error = table.concat(partial, "; ") })
end

local function open_todo(run)
  run.todo = todo.new()
  run.todo:fill(run.job, run.catalogue.what)
  run.record.todo = run.todo
  local criteria = run.job.context and run.job.context.acceptance_criteria or {}
  if #criteria > 0 then run.record:expect(criteria) end
end

--- Writes the first interim result, and keeps room for the next: one that is a little larger, or else one without large outputs.
local function open_checkpoint(run)
  local path, problem, warned = run.settings.result, nil, false
  run.checkpoint = checkpoint.new(function()
    if path == "-" then return true end
    local how, more = file.replace(path, run.record:interim(run.history), { durable = false })
    if not file.keep_room(path, ROOM + (how and more or 0)) then file.keep_room(path, ROOM) end
    if how then return true end
    problem = more
    if run.accepted and not warned then warn(run, "checkpoint.failed", more, "the previous result stays, and the job goes on") end
    warned = run.accepted
  end)
  run.has_result = run.checkpoint:write()
  if run.has_result then return end
  refuse("environment_invalid", "cannot write the result, so nothing was run: " .. problem.message)
end

--- Files of the runner are no part of the workspace, wherever they lie.
local function own_files(settings, directory)
  if settings.job ~= "-" then file.own(settings.job) end
  if not directory then return end
  for _, path in ipairs { settings.result, directory .. JOURNAL, directory .. TODO, directory .. OUTPUTS } do
    file.own(path)
  end
end

--- What a killed run left may hold the lock, too.
local function end_leftovers(run, path, failure)
  local is_there = not failure or failure.code == "locked" or failure.code == "not_locked"
  if not is_there then return failure end
  local life = run.lazy.leftovers().finish(run, path, not failure)
  if life == "alive" then
    return { code = "locked", message = ("another runner works in this job directory: it writes %s"):format(path) }
  end
  if not failure or failure.code ~= "locked" then return failure end
  run.journal_file, failure = journal.lock(path, false)
  if failure and failure.code == "locked" and life == "gone" then
    failure.message = ("%s is locked, though its runner is gone; `fuser %s` says by which process"):format(path, path)
  end
  return failure
end

---Locks the journal, and ends what the run that wrote it left, if that was killed. Raises `locked` where another runner
---works in its directory.
---@param run run
---@param create? boolean a job that is refused leaves none
---@return true
function accept.lock(run, create)
  if not create and file.read("/proc/1/comm", #IDLE) == IDLE then run.lazy.leftovers().finish_rounds(run) end
  if run.journal_file or not run.result_directory then return true end
  local path, failure = run.result_directory .. JOURNAL
  run.journal_file, failure = journal.lock(path, create == true)
  if not create then failure = end_leftovers(run, path, failure) end
  if not failure then return true end
  if failure.code == "locked" then error(failure) end
  if run.journal_file then
    warn(run, "journal.not_locked", failure, "nothing keeps a second runner out of this job directory")
  elseif create then
    cannot_resume(run, failure)
  end
  return true
end

local function open_files(run)
  local settings, directory = run.settings, run.result_directory
  own_files(settings, directory)
  accept.lock(run, true)
  run.directory = directory and file.keep_directory(directory)
  if settings.resume then read_past(run) end
  if settings.replay then -- it may be the journal, which is cut off next
    local failure
    run.recording, failure = run.lazy.fold().recording(settings.replay, run.job_sha256, schemas)
    if failure then refuse("schema_validation", "cannot replay: " .. failure.message) end
  end
  claims.remember(run)
  -- The old journal goes before the first result is written: after a kill in between nobody takes it for this one's.
  begin_journal(run)
  accept.keep(run) -- a crash that comes after the first result composes one from the journal
  if run.history.result then
    return run.log:event("info", "job.done_before", { message = "the job had succeeded before: its result is written again" })
  end
  run.progress = progress.new { log = run.log, changed = function() run.checkpoint:changed() end }
  run.record.running = function() return run.progress:running_step() end
  tell_interrupted(run)
  open_todo(run)
  if run.steps and run.history.job then run.lazy.step().adopt(run) end
  open_checkpoint(run)
  if directory then
    run.todo:keep(directory .. TODO, function(failure) warn(run, "todo.failed", failure, "the list is in the result only") end)
  end
end

---What keeps the job from running is raised.
---@param run run
---@return true
function accept.accept(run)
  open_files(run)
  if run.history.result then return true end
  artifacts.open(run) -- after the first result: it makes directories, and could hide that the result's is missing
  claims.begin(run)
  run.accepted = true
  accept.keep(run)
  local ok, more = pcall(open_workspace, run)
  if not run.history.job or run.history.edited then write_job(run) end
  if not ok then error(more) end
  log_accepted(run, more)
  workspace_access.warn(run)
  if run.job.constraints.report_changes or run.environment.SBA_REPORT_CHANGES == "1" then
    run.lazy.workspace_changes().begin(run)
  end
  if run.history.changes then run.lazy.undo().recover(run) end
  if next(run.history.unfinished) then run.lazy.undo().sweep(run) end
  run.context = run:step_context()
  return true
end

return accept
