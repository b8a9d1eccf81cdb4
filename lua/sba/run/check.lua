-- SPDX-License-Identifier: Apache-2.0
-- The checks of acceptance criteria. The runner runs each as a step of its own, after those of the job or of the model; whether
-- the criterion is met is the check's word alone.

local acceptance = require "sba.agent.acceptance"
local describe = require "sba.util.words".step
local failures = require "sba.result.failure"
local json = require "sba.util.json"
local secret = require "sba.util.secret"
local steps = require "sba.run.step"

local check = {}

local TYPE <const> = "run_command"
local MOST_SHOWN <const> = 64 * 1024 -- bytes of arguments that the journal has

---@class run.checked
---@field id string of the step
---@field verdict run.verdict
---@field entry table of the step
---@field code? string the failure code that the step would give a direct job

--- The id of a check, changed where a step of the job has it.
local function free_id(run, id)
  for _, step in ipairs(run.steps or {}) do
    if step.id == id then return free_id(run, id .. "-1") end
  end
  return id
end

--- Runs the check of a criterion; returns nil and the job's failure where its time is up or the runner failed.
---@return run.checked?, failure?
local function perform(run, number)
  local context, index, arguments = run.context, run.record.count + 1, run.job.context.checks[number]
  local encoded = json.encode(arguments)
  local step = {
    id = free_id(run, "check-" .. index), type = TYPE, arguments = arguments, check = number,
    shown = #encoded <= MOST_SHOWN and secret.clean(json.decode(encoded), {}) or nil,
  }
  local shell = context.shell
  context.shell, context.apart = nil, true -- a check is the job's: it runs in /bin/sh, out of reach of what steps left
  local entry, failure, ends_job = steps.run(run, step)
  context.shell, context.apart = shell, nil
  if not entry then return nil, failure end
  context.tick()
  if ends_job then return nil, steps.failed(step, index, failure) end
  local met = entry.status == "success"
  return {
    id = step.id, entry = entry, code = entry.error_code and failures.of_step(entry.error_code, "").code,
    verdict = {
      criterion = run.job.context.acceptance_criteria[number], met = met, verified_by = "check",
      evidence = ("%s: %s"):format(step.id, met and ("`%s` ended with exit code 0"):format(describe(step)) or entry.error),
    },
  }
end

---Runs all checks, so that it is known of each criterion whether it is met.
---@param run run
---@param verdicts run.verdict[] of the criteria; those that have a check are replaced
---@param note? fun(checked: run.checked) is told of each
---@return run.checked[]? failing
---@return failure? failure the job's
function check.perform_all(run, verdicts, note)
  local failing = {}
  for _, number in ipairs(acceptance.numbers(run.job.context)) do
    local one, failure = perform(run, number)
    if not one then return nil, failure end
    verdicts[number] = one.verdict
    if note then note(one) end
    if not one.verdict.met then failing[#failing + 1] = one end
  end
  return failing
end

-- Failures of a check that say more than that the criterion is not met: what the job may not do kept it from an answer.
local own_codes <const> = { constraint_violation = true, ext_net_required = true }

---Runs the checks of a direct job, which decide how it ends.
---@param run run
---@return failure?
function check.decide(run)
  local failing, failure = check.perform_all(run, run.record.acceptance)
  if not failing then return failure end
  if #failing == 0 then return nil end
  failure = acceptance.unmet(failing)
  if own_codes[failing[1].code] then failure.code = failing[1].code end
  return failure
end

return check
