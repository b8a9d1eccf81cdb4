-- SPDX-License-Identifier: Apache-2.0
-- Direct jobs: the job's steps, one after the other, until one fails.

local steps = require "sba.run.step"

local direct = {}

--- Runs one step with all that goes with it; returns its failure as the job's.
local function perform(run, index, step)
  local entry, failure = steps.run(run, step)
  if not entry then return failure end
  run.job.steps[index] = { id = step.id } -- its arguments may be megabytes, and are not needed again
  -- The end of the job writes all itself.
  if index < #run.job.steps or run.record.acceptance then run.context.tick() end
  return failure and { code = failure.code, message = steps.named(step, index, failure.message), traceback = failure.traceback }
end

---Runs the steps that are left; returns the job's failure, or nil when all went well.
---@param run run
---@return failure?
function direct.run(run)
  for index = run.record.count + 1, #run.job.steps do
    local failure = perform(run, index, run.job.steps[index])
    if failure then return failure end
  end
end

---Reports the steps that were not reached.
---@param run run
function direct.skip_rest(run)
  local first = run.record.count + 1
  if first <= #run.job.steps then steps.skip_from(run, first) end
end

return direct
