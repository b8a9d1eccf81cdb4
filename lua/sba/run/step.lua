-- SPDX-License-Identifier: Apache-2.0
-- Runs a step: a direct job's, a model's, or a check. What an earlier run had of a step is looked for here alone.

local confinement = require "sba.run.confinement"
local entries = require "sba.result.entry"
local failures = require "sba.result.failure"
local interrupt = require "native.interrupt"
local network = require "sba.result.network"
local rules = require "sba.gateway.rules"
local secret = require "sba.util.secret"

local steps = {}

--- Other failures are answers to a model.
local function ends_job(failure)
  local code = failure and failure.code
  return code == "internal_error" or (code == "timeout" or code == "cancelled") and interrupt.reason() ~= nil
end

-- What a job is not to do, and the runner's own failures.
local intolerable <const> = { constraint_violation = true, internal_error = true, cancelled = true }

local function is_tolerated(step, failure)
  if step.on_failure ~= "continue" or intolerable[failure.code] then return false end
  return not ends_job(failure)
end

---@param step { id: string, type: string }
---@param index integer
---@param failure failure
---@return failure of the job
function steps.failure_of(step, index, failure)
  local message = ("step %d (%s, %s): %s"):format(index, step.id, step.type, failure.message)
  return { code = failure.code, message = message, traceback = failure.traceback }
end

local function stamp(entry, index, step)
  entry.index, entry.id, entry.type, entry.check = index - 1, step.id, step.type, step.check
end

local function require_network(entry, failure, message)
  entry.error, entry.error_code, failure.code = message, "ext_net_required", "ext_net_required"
end

local function judge_command(run, step, entry, failure)
  local allowed = run.job.constraints.ext_net_allowed
  local wanted = network.wanted(entry.result, step.arguments, run.context.environment)
  if not wanted or allowed and not wanted.policy then return end
  local why = allowed and "a proxy forbids it" or "the job's ext_net_allowed is false"
  local what = wanted.host and "the host " .. wanted.host or "the outside"
  require_network(entry, failure, ("%s; it wanted %s, and %s: %s"):format(entry.error, what, why, wanted.line))
end

--- Lack of the external network has a failure code of its own. With ext_net_allowed only a policy's denial counts.
local function judge(run, step, entry, failure)
  local tool = entry.error_code == "tool_denied" and step.arguments.tool
  if tool and (rules.is_outside(tool) or entry.error:find("ext_net", 1, true)) then
    require_network(entry, failure, ("%s; the tool %s needs the external network"):format(entry.error, tool))
  end
  if entry.error_code == "step_failed" and step.type == "run_command" then judge_command(run, step, entry, failure) end
end

--- For a file step the workspace itself: the paths of its error are those in it.
local function denied(run, step, entry)
  if step.type == "run_command" then
    return entry.error_code == "step_failed" and confinement.explain(run, entry.output or "")
  elseif entry.error_code == "permission_denied" then
    local _, problem = run.workspace:stat "."
    return problem and problem.code == "permission_denied"
      and ("the workspace %s cannot be entered: Permission denied"):format(secret.redact(run.workspace:path()))
  end
end

local function execute(run, index, step, module)
  local wall, begun = interrupt.wall(), interrupt.now()
  local limit = entries.most_text(step, run.context)
  local entry, failure = entries.make(module, limit, xpcall(module.run, failures.traced, step.arguments, run.context))
  if failure then
    judge(run, step, entry, failure)
    local left, denial = run.history.undo_failed, denied(run, step, entry)
    if denial then entry.error = entry.error .. "; " .. denial end
    if left and left.index == index then
      entry.error = ("%s; an earlier run was ended during this step: %s"):format(entry.error, left.message)
    end
    failure.message = entry.error
    entry.tolerated = is_tolerated(step, failure) or nil
  end
  stamp(entry, index, step)
  entry.started_at = interrupt.timestamp(wall)
  entry.duration_ms = math.floor((interrupt.now() - begun) * 1000 + 0.5)
  return entry, failure
end

--- A result that cannot be encoded becomes an error.
local function encode(entry, module, failure)
  local ok, text = xpcall(entries.encode, failures.traced, entry, module)
  if ok then return text, failure end
  local problem = failures.caught(text, true)
  entry.result, entry.status, entry.tolerated = nil, "failure", nil
  entry.error, entry.error_code = problem.message, problem.code
  failure = failures.of_step(problem.code, problem.message)
  failure.traceback = problem.traceback
  return entries.encode(entry), failure
end

---Undoes the changes of a step that failed after them.
---@param run run
function steps.revert(run)
  local kept = run.pending_undo
  if not kept then return end
  run.pending_undo = nil
  local ok, failure = kept:revert()
  kept:close()
  if not ok then run.log:event("error", "step.not_undone", { error = failure.message }) end
end

---Ends a step that did not run.
---@param run run
---@param event run.step_event
---@param entry table
---@param name? "step.kept" see listeners.lua
---@return table entry
function steps.keep(run, event, entry, name)
  stamp(entry, event.index, event.step)
  entry.started_at, entry.duration_ms = entry.started_at or interrupt.timestamp(), entry.duration_ms or 0
  event.entry, event.text = entry, entries.encode(entry, entry.result and run.catalogue.get(entry.type))
  run:emit(name or "step.finished", event)
  return entry
end

--- A model's step does not run again: the model sees what it may have done.
local function interrupted(run, event, begun)
  local prompts = run.context.prompts
  run.history.unfinished[event.index] = nil
  return steps.keep(run, event, {
    status = "failure", error_code = "interrupted", started_at = begun.at, output = begun.output,
    error = prompts.interrupted:format(run.history.undone or prompts.maybe_done),
  })
end

local function replayed(run, event)
  local old = event.index <= run.recording.count and run.recording:entry(event.index)
  if not old then
    return nil, { code = "internal_error", message = ("the recording has no gateway answer for %s"):format(event.step.id) }
  end
  run:emit("step.started", event)
  local entry = steps.keep(run, event, old)
  return entry, entry.error_code and failures.of_step(entry.error_code, entry.error)
end

local function perform(run, event)
  local index, step, module = event.index, event.step, run.catalogue.get(event.step.type)
  local failure
  run:emit("step.started", event)
  event.entry, failure = execute(run, index, step, module)
  event.text, failure = encode(event.entry, module, failure)
  event.ends_job = ends_job(failure)
  if failure then steps.revert(run) end
  run:emit("step.finished", event)
  return event.entry, failure, event.ends_job
end

--- What an earlier run has of a step; nil where somebody changed what the model said.
local function earlier(run, index, step)
  local history = run.history
  local entry, failure = history:entry(index)
  if not entry then error(failure, 0) end
  if entry.type == step.type and entry.check == step.check then return entry end
  history:forget_from(index)
end

---Runs the next step, unless an earlier run or a recording has it.
---@param run run
---@param step { id: string, type: string, arguments: table, check?: integer, shown?: table } shown: arguments in the journal
---@return table? entry nil: the job must end before the step
---@return failure? failure of the step, or of the job
---@return boolean? ends_job
function steps.run(run, step)
  local index, history, is_models = run.record.count + 1, run.history, run.context.agent and not step.check
  local old = index <= history.count and earlier(run, index, step) or nil
  local begun = history.unfinished[index]
  local event = {
    index = index, step = step, arguments = is_models and step.arguments or step.shown,
    before = begun and "interrupted" or index == history.failed and "failed" or nil,
  }
  if old then
    event.entry = old
    run:emit("step.adopted", event)
    return old
  end
  local stopped = interrupt.reason()
  if stopped then return nil, stopped end
  if begun and is_models then return interrupted(run, event, begun) end
  if run.recording and step.type == "call_tool" then return replayed(run, event) end
  return perform(run, event)
end

---@param run run
function steps.adopt(run)
  local history = run.history
  for index = run.record.count + 1, history.count do
    local entry = { status = history.statuses[index], check = history.checks[index] }
    if entry.status ~= "success" then entry = assert(history:head(index)) end -- the todo list says why
    run:emit("step.adopted", { index = index, step = entry, entry = entry })
  end
end

return steps
