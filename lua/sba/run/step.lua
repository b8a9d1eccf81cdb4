-- SPDX-License-Identifier: Apache-2.0
-- Runs the steps of a job, of a model, and the checks, one at a time. The journal says that a step begins before it does anything;
-- journal and record have its entry before anything else happens. What an earlier run had of a step is looked for here alone.

local confinement = require "sba.run.confinement"
local describe = require "sba.util.describe"
local entries = require "sba.result.entry"
local failures = require "sba.result.failure"
local interrupt = require "native.interrupt"
local journal = require "sba.run.journal"
local native_text = require "native.text"
local network = require "sba.result.network"
local redact = require "native.secret".redact
local rules = require "sba.gateway.rules"

local steps = {}

local none <const> = {}
local GATEWAY_STEP <const> = "call_tool" -- what a call to a tool of the gateway is among the job's steps

---Whether a step's failure ends a model's job too, and not only its call: the job's time is up, or the runner has a bug.
---@param failure? failure
---@return boolean
function steps.ends_job(failure)
  if not failure then return false end
  return failure.code == "internal_error" or (failure.code == "timeout" or failure.code == "cancelled") and interrupt.reason() ~= nil
end

---Puts a step's number, id and type before a message.
---@param step { id: string, type: string }
---@param index integer from 1
---@param message string
---@return string
function steps.named(step, index, message)
  return ("step %d (%s, %s): %s"):format(index, step.id, step.type, message)
end

--- How many steps a direct job has; a check is none of them.
local function steps_of(run, step) return run.steps and not step.check and #run.steps or nil end

--- The fields of the log about a step; about its end if there is an entry.
local function log_fields(run, index, step, entry)
  entry = entry or none
  return {
    step = index, steps = steps_of(run, step), id = step.id, type = step.type, check = step.check,
    what = describe(step), status = entry.status, duration_ms = entry.duration_ms, exit_code = entry.exit_code, error = entry.error,
    error_code = entry.error_code,
  }
end

--- How grave the end of a step is. A failure that is an answer to a model is none of the job's.
local function level_of(run, entry, failure)
  if entry.status == "success" then return "info" end
  return (run.steps or steps.ends_job(failure)) and "error" or "info"
end

--- How many bytes of an output are there after it was cut.
local function kept_bytes(result, entry)
  if result.stdout then return #result.stdout + #result.stderr end
  return #(result.content or entry.output or "")
end

local function log_finished(run, index, step, entry, failure, left_out)
  local result = entry.result or {}
  if result.truncated or result.stdout_truncated or result.stderr_truncated then
    local kept, limit = kept_bytes(result, entry), entries.limit(step, run.context)
    run.log:event("warning", "step.output_truncated", {
      step = index, id = step.id, kept_bytes = kept, limit_bytes = limit, size_bytes = result.size_bytes,
      error = steps.named(step, index, ("the output was cut to %d bytes%s (limit: %d)"):format(
        kept, result.size_bytes and (" of %d"):format(result.size_bytes) or "", limit)),
    })
  end
  local fields = log_fields(run, index, step, entry)
  if entry.status ~= "success" and entry.output then fields.output_tail = native_text.tail(entry.output, run.log.tail_size) end
  fields.output_left_out_bytes = left_out
  run.log:event(level_of(run, entry, failure), "step.finished", fields)
end

--- Whether a model wants the step.
local function is_models(run, step) return run.context.agent and not step.check end

--- Writes to journal and log that a step begins.
local function begin(run, index, step)
  if run.reporter and not run.reporter.over and index > 1 then run.reporter:began() end
  local module = run.catalogue.get(step.type)
  if not (module.ticks or module.brief) then
    run.checkpoint:hurry()
  end
  run.journal:step_started(index, step, is_models(run, step) and step.arguments or step.shown)
  run.live:step({ index = index - 1, id = step.id, type = step.type, check = step.check }, function()
    return { step = index, steps = steps_of(run, step), id = step.id, type = step.type, check = step.check }
  end, entries.limit(step, run.context))
  local fields = log_fields(run, index, step)
  fields.again = (run.past.begun[index] or index == run.past.failed) and true or nil
  run.log:event("info", "step.started", fields)
end

local function place(entry, index, step)
  entry.index, entry.id, entry.type, entry.check = index - 1, step.id, step.type, step.check
end

local function require_network(entry, failure, message)
  entry.error, entry.error_code = message, "ext_net_required"
  failure.code, failure.message = entry.error_code, entry.error
end

--- Judges a call that the gateway denied: for a network tool, or with an answer about ext_net.
local function judge_call(step, entry, failure)
  if rules.is_outside(step.arguments.tool) or entry.error:find("ext_net", 1, true) then
    require_network(entry, failure, ("%s; the tool %s needs the external network"):format(entry.error, step.arguments.tool))
  end
end

local function judge_command(run, step, entry, failure)
  local allowed = run.job.constraints.ext_net_allowed
  local wanted = network.wanted(entry.result, step.arguments, run.context.environment)
  if not wanted or allowed and not wanted.policy then return end
  local why = allowed and "a proxy forbids it" or "the job's ext_net_allowed is false"
  local what = wanted.host and "the host " .. wanted.host or "the outside"
  require_network(entry, failure, ("%s; it wanted %s, and %s: %s"):format(entry.error, what, why, wanted.line))
end

--- Finds out whether a step failed for lack of the external network, and sets its error code and the job's. With ext_net_allowed,
--- only a policy's denial counts.
local function judge(run, step, entry, failure)
  if entry.error_code == "tool_denied" then return judge_call(step, entry, failure) end
  if entry.error_code == "step_failed" and step.type == "run_command" then judge_command(run, step, entry, failure) end
end

--- Says so if the runner's user cannot enter the workspace: the paths of a step's error are those in it.
local function closed_workspace(run)
  local _, problem = run.workspace:stat "."
  return problem and problem.code == "permission_denied"
    and ("the workspace %s cannot be entered: Permission denied"):format(redact(run.workspace:path()))
end

--- Adds to the error of a step that was denied something what it was: a file step the workspace, a command what confinement keeps it
--- from writing.
local function explain_denial(run, step, entry, failure)
  local words
  if step.type ~= "run_command" then
    words = entry.error_code == "permission_denied" and closed_workspace(run)
  elseif entry.error_code == "step_failed" then
    words = confinement.explain(run.record.confinement, entry.output or "", run.job_directory)
  end
  if not words then return end
  entry.error = entry.error .. "; " .. words
  failure.message = entry.error
end

local function execute(run, index, step, module)
  local wall, begun = interrupt.wall(), interrupt.now()
  local limit = entries.limit(step, run.context)
  local entry, failure = entries.make(module, limit, xpcall(module.run, failures.traced, step.arguments, run.context))
  if failure then
    judge(run, step, entry, failure)
    explain_denial(run, step, entry, failure)
  end
  local left = run.past.left
  if failure and left and left.index == index then
    entry.error = ("%s; an earlier run was ended during this step: %s"):format(entry.error, left.message)
    failure.message = entry.error
  end
  place(entry, index, step)
  entry.started_at = interrupt.timestamp(wall)
  entry.duration_ms = math.floor((interrupt.now() - begun) * 1000 + 0.5)
  return entry, failure
end

--- The entry as JSON. If the step's result cannot be encoded, the entry has an error instead.
local function encode(entry, module, failure)
  local ok, text = xpcall(entries.encode, failures.traced, entry, module)
  if ok then return text, failure end
  local problem = failures.caught(text, true)
  entry.result, entry.status, entry.error, entry.error_code = nil, "failure", problem.message, problem.code
  failure = failures.of_step(problem.code, problem.message)
  failure.traceback = problem.traceback
  return entries.encode(entry), failure
end

--- Adds entries to the journal, and to the record where they are.
---@param texts string[] their JSON
local function add(run, texts, status, check)
  local at = run.journal:steps_finished(texts)
  for _, text in ipairs(texts) do
    run.record:add_step(at or text, at and #text, status, check)
    at = at and at + #text + journal.BETWEEN
  end
end

---Restores the files of a step that changed them and then failed, for example for lack of memory.
---@param run run
function steps.revert(run)
  local kept = run.kept
  if not kept then return end
  run.kept = nil
  local ok, failure = kept:revert()
  kept:close()
  if not ok then run.log:event("error", "step.not_undone", { error = failure.message }) end
end

local function settle(run)
  if not run.kept then return end
  run.kept:close()
  run.kept = nil
end

---Adds an entry of a step that does not run to journal and record.
---@param run run
---@param index integer
---@param step { id: string, type: string }
---@param entry table
---@return table entry
function steps.keep(run, index, step, entry)
  place(entry, index, step)
  entry.started_at, entry.duration_ms = entry.started_at or interrupt.timestamp(), entry.duration_ms or 0
  add(run, { entries.encode(entry, entry.result and run.catalogue.get(step.type)) }, entry.status)
  return entry
end

---Adds the steps that were not reached, from `first` on, to journal and record.
---@param run run
---@param first integer
function steps.skip_from(run, first)
  local at, texts = interrupt.timestamp(), {}
  for index = first, #run.job.steps do
    local step = run.job.steps[index]
    texts[#texts + 1] = entries.encode {
      index = index - 1, id = step.id, type = step.type, status = "skipped", started_at = at, duration_ms = 0,
    }
  end
  add(run, texts, "skipped")
end

local function perform(run, index, step)
  local module = run.catalogue.get(step.type)
  begin(run, index, step)
  local entry, failure = execute(run, index, step, module)
  local text
  text, failure = encode(entry, module, failure)
  if failure then steps.revert(run) end
  add(run, { text }, entry.status, step.check)
  settle(run)
  local left_out = run.live:finish()
  run.checkpoint:changed()
  log_finished(run, index, step, entry, failure, left_out)
  return entry, failure
end

--- A model's step during which an earlier run was ended. It does not run again: the model sees what it may have done.
local function interrupted(run, index, step, begun)
  local phrases = run.context.words
  run.past.begun[index] = nil
  return steps.keep(run, index, step, {
    status = "failure", error_code = "interrupted", started_at = begun.at, output = begun.output,
    error = phrases.interrupted:format(run.past.undone or phrases.maybe_done),
  })
end

--- A call to the gateway in a replay: what the recording says came of it.
local function replayed(run, index, step)
  local old = run.recording.entries[index]
  if not old then
    return nil, { code = "internal_error", message = ("the recording has no gateway answer for %s"):format(step.id) }
  end
  begin(run, index, step)
  run.live:finish()
  local entry = steps.keep(run, index, step, old.entry)
  return entry, entry.error_code and failures.of_step(entry.error_code, entry.error)
end

---Runs the next step, unless an earlier run or a recording has it: then this is what came of it there.
---@param run run
---@param step { id: string, type: string, arguments: table, check?: integer, shown?: table } check: number of the criterion that it
---checks; shown: the arguments of a check, for the journal
---@return table? entry nil: the job must end before the step
---@return failure? failure what the step failed with in this run, or the job's
---@return boolean? ends_job
function steps.run(run, step)
  local index = run.record.count + 1
  local old, begun = run.past.entries[index], run.past.begun[index]
  if old then
    run.record:add_step(old.part, old.size, old.entry.status, step.check)
    return old.entry
  end
  local stopped = interrupt.reason()
  if stopped then return nil, stopped end
  if begun and is_models(run, step) then return interrupted(run, index, step, begun) end
  if run.recording and step.type == GATEWAY_STEP then return replayed(run, index, step) end
  local entry, failure = perform(run, index, step)
  return entry, failure, steps.ends_job(failure)
end

---Takes over the steps that an earlier run finished and that this one has not come to.
---@param run run
function steps.take_over(run)
  for index = run.record.count + 1, #run.past.entries do
    local old = run.past.entries[index]
    run.record:add_step(old.part, old.size, old.entry.status, old.entry.check)
    if run.steps and run.todo then run.todo:follow(index, "done") end
  end
end

return steps
