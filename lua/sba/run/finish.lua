-- SPDX-License-Identifier: Apache-2.0
-- The end of every job, in parts. Whatever one raises, the others still run.

local artifacts = require "sba.run.artifacts"
local ending = require "native.ending"
local exit = require "sba.result.failure".exit
local failures = require "sba.result.failure"
local file = require "native.file"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local lazy = require "sba.util.lazy"
local process = require "native.process"
local redact = require "native.secret".redact
local result_schema = require "sba.result.result_schema"
local secret = require "sba.util.secret"
local text = require "native.text"

local direct = lazy "sba.run.direct"
local humanize = lazy "sba.util.humanize"
local json_file = lazy "sba.util.json_file"
local reports = lazy "sba.outside.reports"
local run_step = lazy "sba.run.step"
local uploads = lazy "sba.outside.uploads"
local worker_report = lazy "sba.util.worker_report"
local workspace_changes = lazy "sba.run.workspace_changes"

local STDOUT <const>, STDERR <const> = 1, 2
-- Seconds without progress: the reader of a stream is gone.
local TIMEOUT <const> = 30
local GRACE <const> = 2 -- seconds from SIGTERM to SIGKILL
-- Seconds from SIGKILL until the result is written all the same.
local KILLING <const> = 0.4
-- Seconds past the deadline or a signal, when the result is written in any case.
local LATEST <const> = 2.6
-- Seconds past a signal: then the result waits for the disk no more.
local SYNCING <const> = 3
-- Bytes, and a newline: the kubelet takes 4 KiB.
local LONGEST_TERMINATION <const> = 4095
-- Seconds of a sync from which on the log tells what the disk took.
local LONG_SYNC <const> = 1
-- Bytes of an entry that a full disk may still take.
local SHORTER <const> = { 65536, 1024 }
-- Seconds for small files in any case.
local SHORT_READING <const> = 0.1
-- Seconds past the deadline, or a signal: artifacts are read until then.
local READING <const> = 2.2

--- by: when those that do not end are given up, as interrupt.now; nil: when none has ended for a
--- while.
local function end_all(run, grace, by)
  local _, left, first = process.finish(grace, by)
  run.final.left = left > 0 and { count = left, pid = first } or nil
end

--- The result does not wait for those that hang: write_result and end_rest follow.
local function end_processes(run)
  local now, _, signalled = interrupt.now(), interrupt.signal()
  local began = math.min(run.deadline or math.huge, signalled or math.huge)
  local by = math.min(now + GRACE + KILLING, began + LATEST)
  end_all(run, math.max(0, by - KILLING - now), by)
end

local function left_over(left)
  local which = left.count == 1 and "process %d" or "process %d and %d more"
  local message = which .. " could not be ended: it hangs in the kernel, or belongs to another user"
  return message:format(left.pid, left.count - 1)
end

local function failure_of(run)
  local failure, left = run.failure, run.final.left
  if not failure or not left then return failure end
  local message = failure.message .. "; " .. left_over(left)
  return { code = failure.code, message = message, traceback = failure.traceback }
end

local function reading_seconds(run)
  local left = READING
  if run.deadline then left = run.deadline + READING - interrupt.now() end
  if interrupt.signal() then left = math.min(left, READING) end
  return math.max(SHORT_READING, left)
end

local function compare_workspace(run)
  if run.snapshot then workspace_changes.finish(run, reading_seconds(run)) end
end

local function list_artifacts(run) artifacts.list(run, reading_seconds(run)) end

local function upload_artifacts(run)
  if #run.record.artifacts == 0 or run.settings.replay then return end
  if run:has_gateway() or secret.has_upload_urls() then uploads.artifacts(run) end
end

--- The result takes its place when time is up, though it may not be on the disk yet.
local function replace(run, parts)
  local by, _, signalled = run.deadline or math.huge, interrupt.signal()
  if signalled then by = math.min(by, signalled + SYNCING) end
  return file.replace(run.settings.result, parts, { until_when = math.max(0, by) })
end

local function replace_without_largest(run, problem)
  for _, most in ipairs(SHORTER) do
    run.record:shorten(most)
    run.final.parts = run.record:parts(run.final.fields)
    local how = replace(run, run.final.parts)
    if how then
      local message = "steps of more than %d bytes are left out of the result: %s"
      run:warn("result.shortened", message:format(most, redact(problem.message)))
      return how
    end
  end
  return nil, problem
end

-- A disk that is full, or RLIMIT_FSIZE.
local no_room <const> = { no_space = true, file_too_large = true }

--- Returns how, or nil and the failure.
local function write_parts(run, parts)
  if run.settings.result == "-" then
    local how, taken, size = file.write(STDOUT, parts, TIMEOUT)
    return how, { message = ("stdout took only %d of the result's %d bytes"):format(taken, size) }
  end
  local began = interrupt.now()
  local how, failure = replace(run, parts)
  run.final.disk_seconds = interrupt.now() - began
  if not how and no_room[failure.code] then return replace_without_largest(run, failure) end
  return how, failure
end

--- Also says what went wrong: then the result goes to stderr. Returns whether it is written.
local function deliver_parts(run, parts)
  local how, failure = write_parts(run, parts)
  -- The program begins anew, with more room.
  if not how and failure.code == "out_of_memory" then ending.memory() end
  if not how then
    local problem = redact(failure.message)
    run.log:event("error", "result.failed", { error = problem })
    file.write(STDERR, { "cynode-sba: the result follows here: ", problem, "\n" }, TIMEOUT)
    file.write(STDERR, parts, TIMEOUT)
  elseif how == "in_place" then
    local message = "%s was written in place, which is not atomic: no file beside it can take its place"
    run:warn("result.in_place", message:format(redact(run.settings.result)))
  end
  return how and true or false
end

local function log_outcome(run)
  local settings, log, record = run.settings, run.log, run.record
  local final, failure = run.final, run.failure or {}
  local fields, code = final.fields, json.given(final.fields.failure_code)
  local message = code and fields.failure_message
  if failures.exit_status(code) == exit.REFUSED then
    local refusal = { failure_code = code, failure_message = message, errors = failure.lines }
    log:event("error", "job.refused", refusal)
  end
  local may_resume = run.accepted and run.journal and not settings.replay
  local is_resumable = code and may_resume and not final.journal_changed
  if is_resumable then log.view:note("to go on: " .. humanize.resume(settings)) end
  if not settings.is_answered then log.view:answer(fields.final_answer) end
  log:event(code and "error" or "info", "job.finished", {
    status = fields.status, failure_code = code, failure_message = message,
    done = record.succeeded, steps = run.steps and #run.steps,
    outcomes = record.outcomes, tolerated = record.tolerated,
    duration_ms = fields.duration_ms, resource_usage = fields.resource_usage,
    result = final.is_written and redact(settings.result) or nil,
    error = failure.traceback,
  })
end

--- Returns whether the part was refused memory.
local function attempt(run, part, ...)
  local ok, problem = xpcall(part, failures.traced, run, ...)
  -- The part may have set a time for itself.
  interrupt.disarm()
  if ok then return false end
  local is_refused = type(problem) == "table" and problem.code == "out_of_memory"
  problem = failures.caught(problem)
  run.failure = run.failure or problem
  local fields = { error = problem.traceback or problem.message }
  pcall(function() run.log:event("error", "internal.error", fields) end)
  return is_refused
end

local function adopt_steps(run)
  if run.history.count > run.record.count then run_step.adopt(run) end
end

local function skip_rest(run)
  if run.accepted and run.steps and #run.steps > 0 then direct.skip_rest(run) end
end

local function revert(run)
  if run.pending_undo then run_step.revert(run) end
end

local function check_journal(run)
  if not run.journal_file or run.journal_file:is_unchanged() then return end
  run.record:forget()
  run.final.journal_changed = true
  local message = "journal.jsonl was changed by a command, so what the steps gave is lost"
  run.failure = { code = "internal_error", message = message }
end

local function finish_todo(run)
  if not run.todo then return end
  local is_over = not run.failure or run.steps and run.failure.code == "acceptance_unmet"
  if run.accepted and is_over then run.todo:close(not run.steps) end
  run.todo.checkpoint:flush()
end

local function leave_outside(run)
  for _, runner in ipairs(run.history.runs) do
    worker_report.remove(runner.word, run.environment)
  end
  if run.journal_file then run.journal_file:close() end
  artifacts.close(run)
  run:disconnect()
end

local function status_of(run)
  if not run.final.is_written then return exit.UNWRITABLE end
  return failures.exit_status(json.given(run.final.fields.failure_code))
end

local function has_more_steps(log, span, count)
  for _ in json_file.elements(log, span) do
    if count == 0 then return true end
    count = count - 1
  end
  return false
end

--- What stands there and knows more: a run that goes on with a job, or crashed, may have ended before
--- it had read the journal.
local function standing_result(run)
  local settings, id = run.settings, run.record.job_id
  local knows_less = not run.has_result and (settings.resume or run.crashed)
  local log = knows_less and settings.result ~= "-" and file.open(settings.result)
  if not log then return nil end
  local result, extent = json_file.outline(log, 0, "steps")
  if not json.is_object(result) or not extent.left.steps then return nil end
  local is_other_job = not settings.resume and id ~= "" and id ~= result.job_id
  if is_other_job then return nil end
  local keeps = run.failure and run.failure.keeps_result
  if keeps or has_more_steps(log, extent.left.steps, run.record.count) then
    return { extent.offset, extent.size, from = log }
  end
end

local function keep_standing(run, parts)
  run.final.parts, run.final.is_written = parts, true
  ending.written(status_of(run))
  run:warn("result.kept", "the result that stands knows more than this run: it stays as it is")
end

local function note_end(run)
  local has_begun = run.journal and run.journal.size > 0
  if not has_begun or run.history.result then return end
  attempt(run, function()
    run:emit("job.finished", { result = json.verbatim(json.encode(run.final.fields, result_schema)) })
  end)
end

--- A stream counts as written before it is: nothing may add a second result. If the program ends
--- meanwhile, it lacks some.
local function write_result(run)
  local final = run.final
  final.fields = run.history.result or run.record:fields(failure_of(run))
  local standing = standing_result(run)
  if standing then return keep_standing(run, standing) end
  final.parts = run.record:parts(final.fields)
  if not final.left then note_end(run) end
  final.is_written = run.settings.result == "-"
  if final.is_written then ending.written(exit.UNWRITABLE) end
  final.is_written = deliver_parts(run, final.parts)
  ending.written(status_of(run))
end

--- Waits longer for what did not end before, now that the result stands.
local function end_rest(run)
  local final, left = run.final, run.final.left
  if not left then return end
  end_all(run, 0)
  if not final.left and final.is_written and run.settings.result ~= "-" then return write_result(run) end
  final.left = final.left or left
  run:warn("processes.left", left_over(final.left), final.left)
  note_end(run)
end

--- Past the deadline the result took its place before the disk had it.
local function wait_for_disk(run)
  local before, path, began = run.final.disk_seconds, run.settings.result, interrupt.now()
  if not run.final.is_written or path == "-" or not before then return end
  local done, failure = file.sync(path)
  -- Not the time of reports and uploads in between.
  local seconds = before + interrupt.now() - began
  if not done then
    run.log:event("error", "result.not_durable", { error = redact(failure.message) })
  elseif seconds > LONG_SYNC then
    local message = ("the disk took %.1f s for the result"):format(seconds)
    run:warn("result.slow", message, { duration_ms = math.floor(seconds * 1000) })
  end
end

--- Writes the steps done so far if slow parts follow.
local function flush_checkpoint(run)
  if run.progress then run.progress:finish() end
  if not run.checkpoint or not run.checkpoint.dirty then return end
  local is_plain = run.steps and not run.failure and not run.snapshot
  if is_plain and not process.any() and not artifacts.any(run) then return end
  run.checkpoint:flush()
end

-- The parts for a job that had succeeded before.
local parts_again <const> = { adopt_steps, write_result }
local parts <const> = {
  flush_checkpoint, end_processes, revert, skip_rest, adopt_steps, compare_workspace,
  list_artifacts, finish_todo, upload_artifacts, check_journal, write_result, end_rest,
}

--- One line for whoever started the container, in a file that Kubernetes shows with the pod.
local function write_termination_log(run)
  local fields, path = run.final.fields, run.settings.termination_log
  local line, code = fields.status, json.given(fields.failure_code)
  if code then line = line .. ": " .. code .. ": " .. fields.failure_message end
  line = text.cut(redact(line):gsub("%c", " "), LONGEST_TERMINATION) .. "\n"
  local done, failure = file.replace(path, { line }, { durable = false })
  if not done then run:warn("termination_log.failed", redact(failure.message)) end
end

---@param run run
---@return integer exit status
return function(run)
  ending.begun()
  local final, settings = run.final, run.settings
  for _, part in ipairs(run.history.result and parts_again or parts) do attempt(run, part) end
  -- Where a part failed, it is written as an internal error.
  local is_missing = not final.parts and not final.is_written
  local is_refused = is_missing and attempt(run, write_result)
  if is_refused and not final.parts then ending.memory() end
  local at, written = interrupt.now(), final.is_written and final.parts
  local is_put = written and not settings.replay and secret.has_upload_urls()
  if is_put then attempt(run, uploads.result) end
  if run.status_url then attempt(run, reports.finish, written) end
  attempt(run, wait_for_disk)
  if settings.keep then attempt(run, settings.keep) end
  if settings.termination_log then attempt(run, write_termination_log) end
  attempt(run, log_outcome)
  if run.trace then attempt(run, function() run.trace:export(interrupt.now() - at) end) end
  attempt(run, leave_outside)
  return status_of(run)
end
