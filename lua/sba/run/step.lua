-- SPDX-License-Identifier: Apache-2.0
-- Runs a step: a direct job's, a model's, or a check. What an earlier run had of a step is looked for here alone.

local confinement = require "sba.run.confinement"
local entries = require "sba.result.entry"
local failures = require "sba.result.failure"
local interrupt = require "native.interrupt"
local lazy = require "sba.util.lazy"
local secret = require "sba.util.secret"

local network = lazy "sba.result.network"
local rules = lazy "sba.gateway.rules"

local steps = {}

--- Other failures are answers to a model. A step may have a timeout of its own.
local function ends_job(failure)
  local code = failure and failure.code
  if code == "internal_error" then return true end
  return (code == "timeout" or code == "cancelled") and interrupt.reason() ~= nil
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

--- What a command failed for that wanted the outside.
local function lack_of_command(run, step, entry)
  local is_allowed = run.job.constraints.ext_net_allowed
  local wanted = network.wanted(entry.result, step.arguments, run.context.environment)
  if not wanted or is_allowed and not wanted.policy then return nil end
  local why = is_allowed and "a proxy forbids it" or "the job's ext_net_allowed is false"
  local what = wanted.host and "the host " .. wanted.host or "the outside"
  return ("it wanted %s, and %s: %s"):format(what, why, wanted.line)
end

--- What of the external network a step lacked. With ext_net_allowed only a policy's denial counts.
local function lack_of_network(run, step, entry)
  local code, tool = entry.error_code, step.arguments.tool
  if code == "tool_denied" and tool then
    local is_outside = rules.is_outside(tool) or entry.error:find("ext_net", 1, true)
    return is_outside and ("the tool %s needs the external network"):format(tool)
  end
  return code == "step_failed" and step.type == "run_command" and lack_of_command(run, step, entry)
end

--- For a file step the workspace itself: the paths of its error are those in it.
local function denied(run, step, entry)
  if step.type == "run_command" then
    return entry.error_code == "step_failed" and confinement.explain(run, entry.output or "")
  end
  if entry.error_code ~= "permission_denied" then return nil end
  local _, problem = run.workspace:stat "."
  if not problem or problem.code ~= "permission_denied" then return nil end
  local path = secret.redact(run.workspace:path())
  return ("the workspace %s cannot be entered: Permission denied"):format(path)
end

--- Says in an entry what else is known of its failure.
local function explain(run, event, entry, failure)
  local step, undo_failed = event.step, run.history.undo_failed
  local function add(more) entry.error = entry.error .. "; " .. more end
  local lack = lack_of_network(run, step, entry)
  if lack then
    add(lack)
    entry.error_code, failure.code = "ext_net_required", "ext_net_required"
  end
  local denial = denied(run, step, entry)
  if denial then add(denial) end
  if undo_failed and undo_failed.index == event.index then
    add("an earlier run was ended during this step: " .. undo_failed.message)
  end
  failure.message = entry.error
  entry.tolerated = is_tolerated(step, failure) or nil
end

local function stamp(entry, event)
  local step = event.step
  entry.index = event.index - 1
  entry.id, entry.type, entry.check = step.id, step.type, step.check
end

local function execute(run, event)
  local wall, begun = interrupt.wall(), interrupt.now()
  local step, module, context = event.step, event.module, run.context
  local entry, failure = entries.make(module, entries.most_text(step, context),
    xpcall(module.run, failures.traced, step.arguments, context))
  if failure then explain(run, event, entry, failure) end
  stamp(entry, event)
  entry.started_at = interrupt.timestamp(wall)
  entry.duration_ms = interrupt.elapsed_ms(begun)
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
  local change = run.pending_undo
  if not change then return end
  run.pending_undo = nil
  local ok, failure = change:revert()
  change:close()
  if not ok then run.log:event("error", "step.not_undone", { error = failure.message }) end
end

--- Some types can tell from the result what a step did.
local function tell_end(run, event, name)
  local module, entry = event.module or {}, event.entry
  if module.what and entry.status == "success" then
    event.what = run.catalogue.what(event.step, entry.result)
  end
  run:emit(name, event)
end

---Ends a step that did not run.
---@param run run
---@param event run.step_event
---@param entry table
---@param name? "step.kept" see listeners.lua
---@return table entry
function steps.keep(run, event, entry, name)
  stamp(entry, event)
  entry.started_at = entry.started_at or interrupt.timestamp()
  entry.duration_ms = entry.duration_ms or 0
  event.entry = entry
  event.text = entries.encode(entry, entry.result and run.catalogue.get(entry.type))
  tell_end(run, event, name or "step.finished")
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

--- A gateway's answer cannot be had again.
local function replay(run, event)
  local old = event.index <= run.recording.count and run.recording:entry(event.index)
  if not old then
    return nil, { code = "internal_error", message = "the recording has no gateway answer for " .. event.step.id }
  end
  run:emit("step.started", event)
  local entry = steps.keep(run, event, old)
  return entry, entry.error_code and failures.of_step(entry.error_code, entry.error)
end

local function perform(run, event)
  run:emit("step.started", event)
  local entry, failure = execute(run, event)
  event.text, failure = encode(entry, event.module, failure)
  event.entry, event.ends_job = entry, ends_job(failure)
  if failure then steps.revert(run) end
  tell_end(run, event, "step.finished")
  return entry, failure, event.ends_job
end

--- What an earlier run has of a step; nil where somebody changed what the model said.
local function earlier(run, index, step)
  local history = run.history
  if index > history.count then return nil end
  local entry, failure = history:entry(index)
  if not entry then error(failure, 0) end
  if entry.type == step.type and entry.check == step.check then return entry end
  history:forget_from(index)
end

---Runs the next step, unless an earlier run or a recording has it.
---@param run run
---@param step { id: string, type: string, arguments: table, check?: integer, shown?: table } shown:
---what the journal has of the arguments, which it has of a model's step whole
---@return table? entry nil: the job must end before the step
---@return failure? failure of the step, or of the job
---@return boolean? ends_job
function steps.run(run, step)
  local index, history = run.record.count + 1, run.history
  local is_models = run.context.agent and not step.check
  local old = earlier(run, index, step)
  if old then
    run:emit("step.adopted", { index = index, step = step, entry = old })
    return old
  end
  local stopped = interrupt.reason()
  if stopped then return nil, stopped end
  local begun, before = history.unfinished[index], nil
  if begun then before = "interrupted" elseif index == history.failed then before = "failed" end
  local module = run.catalogue.get(step.type)
  local event = {
    index = index, step = step, module = module, before = before,
    arguments = is_models and step.arguments or step.shown,
    what = step.what or run.catalogue.what(step), limit = entries.limit(step, run.context),
    is_short = module.ticks or module.brief,
  }
  if begun and is_models then return interrupted(run, event, begun) end
  if run.recording and step.type == "call_tool" then return replay(run, event) end
  return perform(run, event)
end

---Takes over all steps that an earlier run had.
---@param run run
function steps.adopt(run)
  local history = run.history
  for index = run.record.count + 1, history.count do
    local entry = { status = history.statuses[index], check = history.checks[index] }
    -- The todo list says why it failed.
    if entry.status ~= "success" then entry = assert(history:head(index)) end
    run:emit("step.adopted", { index = index, step = entry, entry = entry })
  end
end

return steps
