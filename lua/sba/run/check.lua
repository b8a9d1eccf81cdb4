-- SPDX-License-Identifier: Apache-2.0
-- The runner's own runs of acceptance checks: when an agent calls `finish`, and at every end but a signal's, a
-- refusal's and a crash's, in time that is reserved for them.

local direct = require "sba.run.direct"
local failures = require "sba.result.failure"
local humanize = require "sba.util.humanize"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local secret = require "sba.util.secret"
local steps = require "sba.run.step"
local verdict_of = require "sba.journal.fold".verdict

local checks = {}

-- Bytes of a check's arguments that the journal has.
local MOST_SHOWN <const> = 64 * 1024

local function free_id(run, id)
  for _, step in ipairs(run.steps or {}) do
    if step.id == id then return free_id(run, id .. "-1") end
  end
  return id
end

---@param context? sba.context
---@return integer[] numbers of the criteria that have a check
function checks.numbers(context)
  local numbers = {}
  for number in ipairs(context and context.acceptance_criteria or {}) do
    if context.checks[number] then numbers[#numbers + 1] = number end
  end
  return numbers
end

---@class run.checked
---@field id string of the step
---@field verdict run.verdict
---@field entry table of the step
---@field code? string the failure code that the step would give a direct job

--- nil, the job's failure and what the verdict says of it, where its time is up or the runner
--- failed.
local function check(run, number)
  local context, index = run.context, run.record.count + 1
  local given = run.job.context
  local arguments = given.checks[number]
  local id, encoded = free_id(run, "check-" .. index), json.encode(arguments)
  local step = { id = id, type = "run_command", arguments = arguments, check = number }
  if #encoded <= MOST_SHOWN then step.shown = secret.clean(json.decode(encoded), {}) end
  local shell, secret_of = context.shell, context.secret
  -- A check is the job's: it runs in /bin/sh, out of reach of what steps left, and may have secrets.
  context.shell, context.apart, context.secret = nil, true, secret.of_operator
  local entry, failure, is_end = steps.run(run, step)
  context.shell, context.apart, context.secret = shell, nil, secret_of
  if not entry then return nil, failure end
  context.tick()
  if is_end then
    return nil, steps.failure_of(step, index, failure), id .. ": " .. entry.error
  end
  local code = entry.error_code and failures.of_step(entry.error_code, "").code
  local verdict = verdict_of(given.acceptance_criteria[number], entry, step)
  return { id = id, entry = entry, code = code, verdict = verdict }
end

local function unmet(failing)
  local first = failing[1].verdict
  local quoted = humanize.quoted(first.criterion)
  local message = "the criterion " .. quoted .. " is not met: " .. first.evidence
  if #failing > 1 then message = ("%s; and %d more"):format(message, #failing - 1) end
  return { code = "acceptance_unmet", message = message }
end

local function forget(run, number, why)
  local verdict = run.record.acceptance[number]
  verdict.met, verdict.verified_by, verdict.evidence = json.null, json.null, why
end

local function run_all(run, note)
  local failing, numbers = {}, checks.numbers(run.job.context)
  for at, number in ipairs(numbers) do
    local checked, failure, why = check(run, number)
    if not checked then
      local unchecked = "not checked: " .. (interrupt.reason() or failure).message
      forget(run, number, why or unchecked)
      for i = at + 1, #numbers do forget(run, numbers[i], unchecked) end
      return nil, failure
    end
    run.record.acceptance[number] = checked.verdict
    if note then note(checked) end
    if not checked.verdict.met then failing[#failing + 1] = checked end
  end
  return failing, failing[1] and unmet(failing)
end

---Runs all checks, and sets their verdicts in the record.
---@param run run
---@param note? fun(checked: run.checked)
---@return run.checked[]? failing
---@return failure? failure of the job, also where checks fail
function checks.run_all(run, note)
  local failing, failure = run:with_reserve(0, run_all, run, note)
  run.checked_at = run.record.count
  return failing, failure
end

-- Ends of which no check says anything: a signal's, and the runner's own failure.
local unchecked <const> = { cancelled = true, internal_error = true }
-- What the job may not do kept the check from an answer.
local own_codes <const> = { constraint_violation = true, ext_net_required = true }

---Runs the checks of a job that is over, unless they ran after its last step. What ended the job stays its failure.
---@param run run
---@param failure? failure of the job
---@return failure? of the job
function checks.at_end(run, failure)
  if run.checked_at == run.record.count then return failure end
  if failure and unchecked[failure.code] then
    local why = "not checked: " .. failure.message
    for _, number in ipairs(checks.numbers(run.job.context)) do forget(run, number, why) end
    return failure
  end
  if run.steps then direct.skip_rest(run) else steps.adopt(run) end
  run.reserved_seconds = 0
  local failing, problem = checks.run_all(run)
  if failure then return failure end
  if failing and failing[1] and own_codes[failing[1].code] then problem.code = failing[1].code end
  return problem
end

return checks
