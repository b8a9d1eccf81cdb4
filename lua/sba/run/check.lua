-- SPDX-License-Identifier: Apache-2.0
-- The checks of acceptance criteria. The runner runs each as a step of its own, after those of the job or of the model; whether
-- the criterion is met is the check's word alone.

local describe = require "sba.run.describe"
local failures = require "sba.result.failure"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local secret = require "sba.util.secret"
local steps = require "sba.run.step"
local words = require "sba.util.words"

local check = {}

local TYPE <const> = "run_command"
local PREFIX <const> = "check-" -- of the ids of checks
local MOST_SHOWN <const> = 64 * 1024 -- bytes of arguments that the journal has

---@class run.verdict an element of the result's acceptance
---@field criterion string
---@field met boolean|lightuserdata json.null: not checked
---@field evidence string names the step; empty where nothing was checked
---@field verified_by "check"|"model"|lightuserdata

---Each criterion as one that was not checked.
---@param criteria string[]
---@return run.verdict[]
function check.unchecked(criteria)
  local list = json.array {}
  for number, criterion in ipairs(criteria) do
    list[number] = { criterion = criterion, met = json.null, evidence = "", verified_by = json.null }
  end
  return list
end

---The numbers of the criteria that have a check, in their order.
---@param context? sba.context
---@return integer[]
function check.numbers(context)
  local numbers = {}
  for number in ipairs(context and context.acceptance_criteria or {}) do
    if context.checks[number] then numbers[#numbers + 1] = number end
  end
  return numbers
end

---A check's command, as people and models are shown it.
---@param arguments table of run_command
---@return string
function check.command(arguments) return describe { type = TYPE, arguments = arguments } end

---The ids of a job's steps that a check might have too; the steps are forgotten once they have run.
---@param given table[] steps
---@return table<string, true>
function check.taken_ids(given)
  local taken = {}
  for _, step in ipairs(given) do
    if step.id:sub(1, #PREFIX) == PREFIX then taken[step.id] = true end
  end
  return taken
end

--- An id that no step of the job has. It says the place among all steps, so it is the same when the job is resumed.
local function free_id(run, index)
  local id = PREFIX .. index
  while run.taken_ids[id] do id = id .. "-1" end
  return id
end

local function verdict(run, step, entry)
  local met = entry.status == "success"
  local command = check.command(step.arguments)
  return {
    criterion = run.job.context.acceptance_criteria[step.check], met = met, verified_by = "check",
    evidence = ("%s: %s"):format(step.id, met and ("`%s` ended with exit code 0"):format(command) or entry.error),
  }
end

local function follow(run, number, status, note)
  local item = run.todo:settle(number, status, note)
  run.log:event("info", "todo.changed", { id = item.id, status = item.status })
end

--- What came of a check; the criterion's todo item says it too.
local function checked(run, step, entry, failure)
  local said = verdict(run, step, entry)
  follow(run, step.check, said.met and "done" or "pending", not said.met and said.evidence or nil)
  return { id = step.id, verdict = said, entry = entry, code = failure and failure.code }
end

--- The arguments for the journal, which no request of a model tells.
local function for_the_journal(arguments)
  local encoded = json.encode(arguments)
  return #encoded <= MOST_SHOWN and secret.clean(json.decode(encoded), {}) or nil
end

local function step_of(run, number)
  local index, arguments = #run.record.steps + 1, run.job.context.checks[number]
  return index, {
    id = free_id(run, index), type = TYPE, arguments = arguments, shown = for_the_journal(arguments), check = number,
  }
end

---@class run.checked
---@field id string of the step
---@field verdict run.verdict
---@field entry table of the step
---@field code? string the failure code that the step would give a direct job

---Takes over the next step from the journal of an earlier run, where that is the finished check of this criterion.
---@param run run
---@param number integer of the criterion, from 1
---@return run.checked?
function check.take_over(run, number)
  local index, step = step_of(run, number)
  local old = run.history and run.history.entries[index]
  if not old then return nil end
  run.record:add_step(old.text, old.entry.status, number)
  return checked(run, step, old.entry, old.entry.error_code and failures.of_step(old.entry.error_code, old.entry.error))
end

---Runs the check of a criterion. One that was interrupted runs again.
---@param run run
---@param number integer of the criterion, from 1
---@return run.checked?
---@return failure? failure the job's: its time is up, or the runner failed
function check.perform(run, number)
  local past = check.take_over(run, number)
  if past then return past end
  local stopped = interrupt.reason()
  if stopped then return nil, stopped end
  local index, step = step_of(run, number)
  follow(run, number, "in_progress")
  steps.begin(run, index, step, run.history and run.history.begun[index])
  local shell = run.context.shell
  run.context.shell, run.context.apart = nil, true -- a check is the job's: it runs in /bin/sh, out of reach of what steps left
  local entry, failure = steps.perform(run, index, step, run.catalogue.get(TYPE))
  run.context.shell, run.context.apart = shell, nil
  local result = checked(run, step, entry, failure)
  run.context.tick()
  if not steps.ends_job(failure) then return result end
  return nil, { code = failure.code, message = steps.named(step, index, failure.message), traceback = failure.traceback }
end

---Runs all checks, so that it is known of each criterion whether it is met.
---@param run run
---@param verdicts run.verdict[] of the criteria; those that have a check are replaced
---@param note? fun(checked: run.checked) is told of each
---@return run.checked[]? failing
---@return failure? failure the job's
function check.perform_all(run, verdicts, note)
  local failing = {}
  for _, number in ipairs(check.numbers(run.job.context)) do
    local one, failure = check.perform(run, number)
    if not one then return nil, failure end
    verdicts[number] = one.verdict
    if note then note(one) end
    if not one.verdict.met then failing[#failing + 1] = one end
  end
  return failing
end

---The job's failure, where checks fail.
---@param failing run.checked[]
---@return failure
function check.unmet(failing)
  local first, more = failing[1].verdict, #failing > 1 and ("; and %d more"):format(#failing - 1) or ""
  local message = ("the criterion %s is not met: %s%s"):format(words.quoted(first.criterion), first.evidence, more)
  return { code = "acceptance_unmet", message = message }
end

return check
