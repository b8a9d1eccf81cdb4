-- SPDX-License-Identifier: Apache-2.0
-- Direct jobs: the job's steps, one after the other, until one fails; then the checks of its criteria, all of them.

local check = require "sba.run.check"
local interrupt = require "native.interrupt"
local steps = require "sba.run.step"

local direct = {}

--- Runs one step with all that goes with it; returns its failure as the job's.
--- @param before? string how it ended in an earlier run
local function perform(run, index, step, before)
  local module = run.catalogue.get(step.type)
  run.todo:follow(index, "in_progress", before and before .. ", run again" or nil)
  steps.begin(run, index, step, before and true)
  local entry, failure = steps.perform(run, index, step, module)
  run.todo:follow(index, failure and "dropped" or "done", entry.error)
  run.job.steps[index] = { id = step.id } -- its arguments may be megabytes, and are not needed again
  -- The end of the job writes all itself.
  if index < #run.job.steps or run.record.acceptance then run.context.tick() end
  return failure and { code = failure.code, message = steps.named(step, index, failure.message), traceback = failure.traceback }
end

---Takes over the steps that succeeded in an earlier run.
---@param run run
function direct.take_over(run)
  for index, old in ipairs(run.history.entries) do
    run.record:add_step(old.text, old.entry.status)
    run.todo:follow(index, "done")
  end
end

-- Failures of a check that say more than that the criterion is not met: what the job may not do kept it from an answer.
local own_codes <const> = { constraint_violation = true, ext_net_required = true }

--- Runs the checks; returns the job's failure.
local function run_checks(run)
  local failing, failure = check.perform_all(run, run.record.acceptance)
  if not failing then return failure end
  if #failing == 0 then return nil end
  failure = check.unmet(failing)
  if own_codes[failing[1].code] then failure.code = failing[1].code end
  return failure
end

--- Runs the steps that are left, then the checks; returns the job's failure, or nil when all went well.
---@param run run
---@return failure?
function direct.run(run)
  local history = run.history or { begun = {} }
  for index = #run.record.steps + 1, #run.job.steps do
    local before = history.begun[index] and "interrupted" or index == history.failed and "failed" or nil
    local failure = interrupt.reason() or perform(run, index, run.job.steps[index], before)
    if failure then return failure end
  end
  return run.record.acceptance and run_checks(run)
end

---Reports the steps that were not reached. There may be very many, and the time is up: they share one line of the log.
---@param run run
function direct.skip_rest(run)
  local first = #run.record.steps + 1
  if first > #run.job.steps then return end
  steps.skip_from(run, first)
  for index = first, #run.job.steps do run.todo:follow(index, "dropped") end
  run.log:event("info", "steps.skipped", { step = first, steps = #run.job.steps })
end

return direct
