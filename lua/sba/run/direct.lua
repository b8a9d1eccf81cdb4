-- SPDX-License-Identifier: Apache-2.0
-- Direct jobs: the job's steps, one after the other, until one fails.

local failures = require "sba.result.failure"
local interrupt = require "native.interrupt"
local steps = require "sba.run.step"

local direct = {}

--- The todo list follows the step.
local function follow(run, index, status, note)
  local item = run.todo:follow(index, status, note)
  run.log:event("info", "todo.changed", { id = item.id, status = item.status })
end

--- Runs one step with all that goes with it; returns its failure as the job's.
local function perform(run, index, step, again)
  local module = run.catalogue.get(step.type)
  follow(run, index, "in_progress", again and "interrupted, run again" or nil)
  steps.begin(run, index, step, again and true)
  local entry, failure = steps.perform(run, index, step, module)
  follow(run, index, failure and "dropped" or "done", entry.error)
  step.arguments = nil -- which may be megabytes, and is not needed again
  run.context.tick()
  return failure and { code = failure.code, message = steps.named(step, index, failure.message), traceback = failure.traceback }
end

--- Takes over a step that an earlier run finished.
local function take_over(run, index, old)
  local entry = old.entry
  run.record:add_step(old.text, entry.status)
  run.todo:follow(index, entry.status == "success" and "done" or "dropped", entry.error)
  if entry.status == "success" or entry.status == "skipped" then return nil end
  local failure = failures.of_step(entry.error_code, entry.error)
  steps.judge(run, run.job.steps[index], entry, failure)
  return { code = failure.code, message = steps.named(run.job.steps[index], index, failure.message) }
end

--- Runs the steps that are left; returns the job's failure, or nil when all went well.
---@param run run
---@return failure?
function direct.run(run)
  local history = run.history or { entries = {}, begun = {} }
  for index, step in ipairs(run.job.steps) do
    local failure
    local old = history.entries[index]
    if old then
      failure = take_over(run, index, old)
    else
      failure = interrupt.reason() or perform(run, index, step, history.begun[index])
    end
    if failure then return failure end
  end
end

---Reports the steps that were not reached. There may be very many, and the time is up: they share one line of the log.
---@param run run
function direct.skip_rest(run)
  local entries = run.history and run.history.entries or {}
  for index = #run.record.steps + 1, #entries do take_over(run, index, entries[index]) end
  local first = #run.record.steps + 1
  if first > #run.job.steps then return end
  steps.skip_from(run, first)
  for index = first, #run.job.steps do run.todo:follow(index, "dropped") end
  run.log:event("info", "steps.skipped", { step = first, steps = #run.job.steps })
end

return direct
