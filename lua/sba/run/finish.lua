-- SPDX-License-Identifier: Apache-2.0
-- The end of every job, in parts. Whatever one raises, the others still run.

local artifacts = require "sba.run.artifacts"
local ending = require "native.ending"
local exit = require "sba.result.failure".exit
local failures = require "sba.result.failure"
local file = require "native.file"
local humanize = require "sba.util.humanize"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local json_file = require "sba.util.json_file"
local process = require "native.process"
local redact = require "native.secret".redact
local result_schema = require "sba.result.result_schema"
local text = require "native.text"
local upload_urls = require "sba.util.upload_urls"
local worker_report = require "sba.util.worker_report"

local STDOUT <const>, STDERR <const> = 1, 2
local TIMEOUT <const> = 30 -- seconds without progress: the reader of a stream is gone
local GRACE <const> = 2 -- seconds from SIGTERM to SIGKILL
local KILLING <const> = 0.4 -- seconds from SIGKILL until the result is written, whatever has not ended
local LATEST <const> = 2.6 -- seconds past the deadline or a signal, when it is written
local SYNCING <const> = 3 -- seconds past a signal, after which the result waits for the disk no more
local LONGEST_TERMINATION <const> = 4095 -- bytes, and a newline: the kubelet takes 4 KiB
local LONG_SYNC <const> = 1 -- seconds, from which on the log has what the disk took
local SHORTER <const> = { 65536, 1024 } -- bytes of an entry that a full disk may still take
local SHORT_READING <const> = 0.1 -- seconds for small files in any case
local READING <const> = 2.2 -- seconds past the deadline, or a signal: artifacts are read until then

--- by: when those that do not end are given up, as interrupt.now; nil: when none has ended for a while.
local function end_all(run, grace, by)
  local _, left, first = process.finish(grace, by)
  run.left = left > 0 and { count = left, pid = first } or nil
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
  local failure, left = run.failure, run.left
  if not failure or not left then return failure end
  return { code = failure.code, message = failure.message .. "; " .. left_over(left), traceback = failure.traceback }
end

--- When the result takes its place, though it may not be on the disk yet.
local function replacing(run)
  local _, signalled = interrupt.signal()
  local by = run.deadline or math.huge
  return { until_when = math.max(0, signalled and math.min(by, signalled + SYNCING) or by) }
end

local function reading_seconds(run)
  local left = run.deadline and run.deadline + READING - interrupt.now() or READING
  return math.max(SHORT_READING, interrupt.signal() and math.min(left, READING) or left)
end

local function compare_workspace(run)
  if run.snapshot then run.lazy.workspace_changes().finish(run, reading_seconds(run)) end
end

local function list_artifacts(run) artifacts.list(run, reading_seconds(run)) end

local function upload_artifacts(run)
  if #run.record.artifacts == 0 or run.settings.replay or not (run:has_gateway() or upload_urls.any()) then return end
  run.lazy.uploads().artifacts(run)
end

local function write_without_largest(run, problem)
  for _, most in ipairs(SHORTER) do
    run.record:shorten(most)
    run.parts = run.record:parts(run.fields)
    local how = file.replace(run.settings.result, run.parts, replacing(run))
    if how then
      run:warn("result.shortened", ("steps of more than %d bytes are left out of the result: %s"):format(most, redact(problem.message)))
      return how
    end
  end
  return nil, problem
end

local function write_parts(run, parts)
  local path = run.settings.result
  local how, failure
  if path ~= "-" then
    run.writing_since = interrupt.now()
    how, failure = file.replace(path, parts, replacing(run))
    local has_no_room = not how and (failure.code == "no_space" or failure.code == "file_too_large") -- or RLIMIT_FSIZE
    if has_no_room then how, failure = write_without_largest(run, failure) end
  else
    local taken, size
    how, taken, size = file.write(STDOUT, parts, TIMEOUT)
    failure = { message = ("stdout took only %d of the result's %d bytes"):format(taken, size) }
  end
  if not how then
    local problem = redact(failure.message)
    run.log:event("error", "result.failed", { error = problem })
    file.write(STDERR, { "cynode-sba: the result follows here: ", problem, "\n" }, TIMEOUT)
    file.write(STDERR, parts, TIMEOUT)
  elseif how == "in_place" then
    run:warn("result.in_place", redact(path) .. " was written in place, which is not atomic: no file beside it can take its place")
  end
  return how and true or false
end

local function code_of(fields) return type(fields.failure_code) == "string" and fields.failure_code or nil end

local function log_outcome(run)
  local fields, code = run.fields, code_of(run.fields)
  local message = code and fields.failure_message
  if failures.exit_status(code) == exit.REFUSED then
    run.log:event("error", "job.refused", { failure_code = code, failure_message = message, errors = run.errors })
  end
  local is_resumable = code and run.accepted and run.journal and not run.settings.replay
  if is_resumable then run.log.view:note("to go on: " .. humanize.resume(run.settings)) end
  if not run.settings.is_answered then run.log.view:answer(fields.final_answer) end
  run.log:event(code and "error" or "info", "job.finished", {
    status = fields.status, failure_code = code, failure_message = message, duration_ms = fields.duration_ms,
    done = run.record.succeeded, steps = run.steps and #run.steps, outcomes = run.record.outcomes,
    resource_usage = fields.resource_usage,
    result = run.written and redact(run.settings.result) or nil,
    error = run.failure and run.failure.traceback,
  })
end

local function attempt(run, part, ...)
  local ok, problem = xpcall(part, failures.traced, run, ...)
  interrupt.disarm() -- the part may have set a time for itself
  if ok then return end
  problem = failures.caught(problem)
  run.failure = run.failure or problem
  pcall(function() run.log:event("error", "internal.error", { error = problem.traceback or problem.message }) end)
end

local function adopt_steps(run)
  if run.history.count > run.record.count then run.lazy.step().adopt(run) end
end

local function skip_rest(run)
  if run.accepted and run.steps and #run.steps > 0 then run.lazy.direct().skip_rest(run) end
end

local function revert(run)
  if run.pending_undo then run.lazy.step().revert(run) end
end

local function check_journal(run)
  if not run.journal_file or run.journal_file:is_unchanged() then return end
  run.record:forget()
  run.failure = { code = "internal_error", message = "journal.jsonl was changed by a command, so what the steps gave is lost" }
end

local function finish_todo(run)
  if not run.todo then return end
  local is_over = not run.failure or run.steps and run.failure.code == "acceptance_unmet"
  if run.accepted and is_over then run.todo:close(not run.steps) end
  run.todo.checkpoint:flush()
end

--- Of earlier runs too, which were killed.
local function remove_reports(run)
  local list = run.history.words or {}
  if run.has_reports then list[#list + 1] = run.runner.word end
  for _, word in ipairs(list) do worker_report.remove(word, run.environment) end
end

local function leave_outside(run)
  remove_reports(run)
  if run.journal_file then run.journal_file:close() end
  artifacts.close(run)
  run:disconnect()
end

local function status_of(run) return run.written and failures.exit_status(code_of(run.fields)) or exit.UNWRITABLE end

local function ids_differ(run, result)
  local id = run.record.job_id
  return not run.settings.resume and id ~= "" and id ~= result.job_id
end

--- What stands there and knows more: a run that goes on with a job, or crashed, may have ended before it had read the
--- journal.
local function standing_result(run)
  if run.has_result or not (run.settings.resume or run.crashed) or run.settings.result == "-" then return nil end
  local log = file.open(run.settings.result)
  if not log then return nil end
  local result, place = json_file.outline(log, 0, "steps")
  if not json.is_object(result) or not place.left.steps or ids_differ(run, result) then return nil end
  local parts = { place.offset, place.size, from = log }
  if run.failure and run.failure.keeps_result then return parts end
  local count = 0
  for _ in json_file.elements(log, place.left.steps) do
    count = count + 1
    if count > run.record.count then return parts end
  end
end

local function keep_standing(run, parts)
  run.parts, run.written = parts, true
  ending.written(status_of(run))
  run:warn("result.kept", "the result that stands knows more than this run: it stays as it is")
end

local function note_end(run)
  if not run.has_job_line or run.history.result then return end
  attempt(run, run.emit, "job.finished", { result = json.verbatim(json.encode(run.fields, result_schema)) })
end

--- A stream counts as written before it is: nothing may add a second result. If the program ends meanwhile, it lacks
--- some.
local function write_result(run)
  run.fields = run.history.result or run.record:fields(failure_of(run))
  local standing = standing_result(run)
  if standing then return keep_standing(run, standing) end
  run.parts = run.record:parts(run.fields)
  if not run.left then note_end(run) end
  run.written = run.settings.result == "-"
  if run.written then ending.written(exit.UNWRITABLE) end
  run.written = write_parts(run, run.parts)
  ending.written(status_of(run))
end

--- Waits longer for what did not end before, now that the result stands.
local function end_rest(run)
  local left = run.left
  if not left then return end
  end_all(run, 0)
  if not run.left and run.written and run.settings.result ~= "-" then return write_result(run) end
  run.left = run.left or left
  run:warn("processes.left", left_over(run.left), run.left)
  note_end(run)
end

--- Past the deadline the result took its place before the disk had it.
local function wait_for_disk(run)
  if not run.written or run.settings.result == "-" or not run.writing_since then return end
  local done, failure = file.sync(run.settings.result)
  local seconds = interrupt.now() - run.writing_since
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
  local is_short = run.steps and not run.failure and not run.snapshot and not process.any() and not artifacts.any(run)
  if not is_short then run.checkpoint:flush() end
end

local parts_again <const> = { adopt_steps, write_result } -- of a job that had succeeded before
local parts <const> = {
  flush_checkpoint, end_processes, revert, skip_rest, adopt_steps, compare_workspace, list_artifacts, finish_todo,
  upload_artifacts, check_journal, write_result, end_rest,
}

--- One line for whoever started the container, in a file that Kubernetes shows with the pod.
local function write_termination_log(run)
  local fields, code = run.fields, code_of(run.fields)
  local line = code and ("%s: %s: %s"):format(fields.status, code, fields.failure_message) or fields.status
  line = text.cut(redact(line):gsub("%c", " "), LONGEST_TERMINATION) .. "\n"
  local done, failure = file.replace(run.settings.termination_log, { line }, { durable = false })
  if not done then run:warn("termination_log.failed", redact(failure.message)) end
end

---@param run run
---@return integer exit status
return function(run)
  ending.begun()
  for _, part in ipairs(run.history.result and parts_again or parts) do attempt(run, part) end
  if not run.parts and not run.written then -- memory is out: without the todo list, which todo.json has
    run.todo, run.record.todo = nil, nil
    collectgarbage()
    attempt(run, write_result)
  end
  local at = interrupt.now()
  local is_put = run.written and not run.settings.replay and upload_urls.any()
  if is_put then attempt(run, run.lazy.uploads().result) end
  if run.status_url then attempt(run, run.lazy.reports().finish, run.written and run.parts) end
  attempt(run, wait_for_disk)
  if run.settings.keep then attempt(run, run.settings.keep) end
  if run.settings.termination_log then attempt(run, write_termination_log) end
  attempt(run, log_outcome)
  if run.trace then attempt(run, function() run.trace:export(interrupt.now() - at) end) end
  attempt(run, leave_outside)
  return status_of(run)
end
