-- SPDX-License-Identifier: Apache-2.0
-- Direct jobs: the job's steps, one after the other, until one fails; then the checks of its criteria, all of them.

local check = require "sba.run.check"
local failures = require "sba.result.failure"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local steps = require "sba.run.step"

local direct = {}

--- Runs one step with all that goes with it; returns its failure as the job's.
local function perform(run, index, step, again)
  local module = run.catalogue.get(step.type)
  run.todo:follow(index, "in_progress", again and "interrupted, run again" or nil)
  steps.begin(run, index, step, again and true)
  local entry, failure = steps.perform(run, index, step, module)
  run.todo:follow(index, failure and "dropped" or "done", entry.error)
  run.job.steps[index] = { id = step.id } -- its arguments may be megabytes, and are not needed again
  -- The end of the job writes all itself.
  if index < #run.job.steps or run.record.acceptance then run.context.tick() end
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
  return run.record.acceptance and run_checks(run)
end

--- Takes over the checks that an earlier run finished, where this one did not come to them.
local function take_over_checks(run)
  for _, number in ipairs(run.record.acceptance and check.numbers(run.job.context) or {}) do
    local is_new = run.record.acceptance[number].met == json.null
    local checked = is_new and check.take_over(run, number)
    if checked then run.record.acceptance[number] = checked.verdict end
  end
end

---Reports the steps that were not reached. There may be very many, and the time is up: they share one line of the log.
---@param run run
function direct.skip_rest(run)
  local entries = run.history and run.history.entries or {}
  for index = #run.record.steps + 1, math.min(#entries, #run.job.steps) do take_over(run, index, entries[index]) end
  local first = #run.record.steps + 1
  if first > #run.job.steps then return take_over_checks(run) end
  steps.skip_from(run, first)
  for index = first, #run.job.steps do run.todo:follow(index, "dropped") end
  run.log:event("info", "steps.skipped", { step = first, steps = #run.job.steps })
end

return direct
