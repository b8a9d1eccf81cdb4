-- SPDX-License-Identifier: Apache-2.0
-- The end of every job, in parts. Whatever one raises, the others still run.

local artifacts = require "sba.run.artifacts"
local ending = require "native.ending"
local exit = require "sba.result.failure".exit
local failures = require "sba.result.failure"
local file = require "native.file"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local process = require "native.process"
local result_schema = require "sba.result.result_schema"
local redact = require "native.secret".redact
local words = require "sba.util.words"

local STDOUT <const>, STDERR <const> = 1, 2
local TIMEOUT <const> = 30 -- seconds without progress: the reader of a stream is gone
local GRACE <const> = 2 -- seconds from SIGTERM to SIGKILL
local OVERRUN <const> = 2.5 -- seconds past the deadline, when the grace ends
local SHORTER <const> = { 65536, 1024 } -- bytes of an entry that a full disk may still take
local LARGEST_READ <const> = 16 << 20 -- bytes of a result that stands
local READING <const> = 2.2 -- seconds past the deadline, or a signal: artifacts are read until then

local function end_processes(run)
  local grace = run.deadline and math.min(GRACE, run.deadline + OVERRUN - interrupt.now()) or GRACE
  local _, left, first = process.finish(math.max(0, grace))
  if left == 0 then return end
  local message = "%d child processes are still alive, including process %d: they belong to another user or hang in the kernel"
  run:warn("processes.left", message:format(left, first), { count = left, pid = first })
end

local function reading_seconds(run)
  local left = run.deadline and run.deadline + READING - interrupt.now() or READING
  return math.max(0, interrupt.signal() and math.min(left, READING) or left)
end

local function compare_workspace(run)
  if run.snapshot then run.on_demand.workspace_changes().finish(run, reading_seconds(run)) end
end

local function list_artifacts(run) artifacts.list(run, reading_seconds(run)) end

local function upload_artifacts(run)
  if #run.record.artifacts == 0 or run.settings.replay or not run:has_gateway() then return end
  run.on_demand.orchestrator().upload(run)
end

local function write_without_largest(run, problem)
  for _, most in ipairs(SHORTER) do
    run.record:shorten(most)
    run.parts = run.record:parts(run.fields)
    local how = file.replace(run.settings.result, run.parts)
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
    how, failure = file.replace(path, parts)
    if not how and failure.code == "no_space" then how, failure = write_without_largest(run, failure) end
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
  if is_resumable then run.log.view:note("to go on: " .. words.resume(run.settings)) end
  if not run.settings.is_answered then run.log.view:answer(fields.final_answer) end
  run.log:event(code and "error" or "info", "job.finished", {
    status = fields.status, failure_code = code, failure_message = message, duration_ms = fields.duration_ms,
    done = run.record.succeeded, steps = run.steps and #run.steps, outcomes = run.record.outcomes,
    resource_usage = fields.resource_usage, result = redact(run.settings.result), error = run.failure and run.failure.traceback,
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

local function take_over_steps(run)
  if #run.history.entries > run.record.count then run.on_demand.step().take_over(run) end
end

local function skip_rest(run)
  if run.accepted and run.steps and #run.steps > 0 then run.on_demand.direct().skip_rest(run) end
end

local function revert(run)
  if run.pending_undo then run.on_demand.step().revert(run) end
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

local function leave_outside(run)
  if run.journal_file then run.journal_file:close() end
  artifacts.close(run)
  run:disconnect()
end

local function status_of(run) return run.written and failures.exit_status(code_of(run.fields)) or exit.UNWRITABLE end

local function ids_differ(run, result)
  local id = run.record.job_id
  return not run.settings.resume and id ~= "" and id ~= result.job_id
end

--- What stands there and knows more: a run that goes on with a job, or crashed, may have ended before it had read the journal.
local function standing_result(run)
  if run.has_result or not (run.settings.resume or run.crashed) or run.settings.result == "-" then return nil end
  local bytes, failure = file.read(run.settings.result, LARGEST_READ, { regular = true })
  if not bytes then return failure.code == "too_large" and "" or nil end
  local result = json.decode_own(bytes)
  local steps = json.is_object(result) and result.steps
  if type(steps) ~= "table" or #steps <= run.record.count or ids_differ(run, result) then return nil end
  return bytes
end

local function keep_standing(run, bytes)
  run.parts, run.written = bytes ~= "" and { bytes } or nil, true
  ending.written(status_of(run))
  run:warn("result.kept", "the result that stands knows more than this run, which had not read the journal yet: it stays as it is")
end

--- A stream counts as written before it is: nothing may add a second result.
local function write_result(run)
  local earlier = run.history.result
  run.fields = earlier or run.record:fields(run.failure)
  local standing = standing_result(run)
  if standing then return keep_standing(run, standing) end
  run.parts = run.record:parts(run.fields)
  if run.has_job_line and not earlier then
    attempt(run, run.emit, "job.finished", { result = json.verbatim(json.encode(run.fields, result_schema)) })
  end
  run.written = run.settings.result == "-"
  if run.written then ending.written(status_of(run)) end
  run.written = write_parts(run, run.parts)
  ending.written(status_of(run))
end

--- Writes the steps done so far if slow parts follow.
local function flush_checkpoint(run)
  if run.live then run.live:finish() end
  if not run.checkpoint or not run.checkpoint.dirty then return end
  local is_short = run.steps and not run.failure and not run.snapshot and not process.any() and not artifacts.any(run)
  if not is_short then run.checkpoint:flush() end
end

local parts_again <const> = { take_over_steps, write_result } -- of a job that had succeeded before
local parts <const> = {
  flush_checkpoint, end_processes, revert, skip_rest, take_over_steps, compare_workspace, list_artifacts, finish_todo, upload_artifacts,
  check_journal, write_result,
}

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
  if run.status_url then attempt(run, run.on_demand.orchestrator().report_end, run.written and run.parts) end
  if run.settings.keep then attempt(run, run.settings.keep) end
  attempt(run, log_outcome)
  if run.trace then attempt(run, function() run.trace:export(interrupt.now() - at) end) end
  attempt(run, leave_outside)
  return status_of(run)
end
