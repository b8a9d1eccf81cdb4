-- SPDX-License-Identifier: Apache-2.0
-- A direct job: its steps in their order, until one fails; then only those that run always, the others are skipped.

local entries = require "sba.result.entry"
local interrupt = require "native.interrupt"
local steps = require "sba.run.step"

local direct = {}

--- One that runs always has the time that is reserved for it, too; the checks have half of that.
local function run_in_time(run, step)
  if not step.always then return steps.run(run, step) end
  -- Not of run.reserved_seconds: past the job's time that is all that is left.
  local for_checks = run:has_checks() and run:reserve() / 2 or 0
  return run:with_reserve(for_checks, steps.run, run, step)
end

--- Returns the job's failure.
local function run_step(run, index)
  local step = run.job.steps[index]
  local entry, failure = run_in_time(run, step)
  if not entry then return failure end
  run.job.steps[index] = { id = step.id } -- its arguments may be megabytes
  -- After the last the job's end writes everything.
  if index < #run.job.steps or run.record.acceptance then run.context.tick() end
  if failure and not entry.tolerated then return steps.failure_of(step, index, failure) end
end

---@param run run
---@return failure? of the job: its first
function direct.run_rest(run)
  local failure
  for index = run.record.count + 1, #run.job.steps do
    if not failure then
      failure = run_step(run, index)
    elseif run.job.steps[index].always then
      direct.skip_rest(run, index - 1)
      run_step(run, index)
    end
  end
  return failure
end

---@param run run
---@param last? integer step; default: the job's
function direct.skip_rest(run, last)
  local first, at, texts = run.record.count + 1, interrupt.timestamp(), {}
  last = last or #run.job.steps
  for index = first, last do
    local step = run.job.steps[index]
    texts[#texts + 1] = entries.encode { index = index - 1, id = step.id, type = step.type,
      status = "skipped", started_at = at, duration_ms = 0 }
  end
  if #texts > 0 then run:emit("steps.skipped", { first = first, last = last, texts = texts }) end
end

return direct
