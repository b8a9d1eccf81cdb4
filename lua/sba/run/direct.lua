-- SPDX-License-Identifier: Apache-2.0
-- A direct job: its steps in their order, until one fails; the others are skipped.

local entries = require "sba.result.entry"
local interrupt = require "native.interrupt"
local steps = require "sba.run.step"

local direct = {}

---Until one fails.
---@param run run
---@return failure? of the job
function direct.run_rest(run)
  for index = run.record.count + 1, #run.job.steps do
    local step = run.job.steps[index]
    local entry, failure = steps.run(run, step)
    if not entry then return failure end
    run.job.steps[index] = { id = step.id } -- its arguments may be megabytes
    -- After the last the job's end writes everything.
    if index < #run.job.steps or run.record.acceptance then run.context.tick() end
    if failure then return steps.failure_of(step, index, failure) end
  end
end

---@param run run
function direct.skip_rest(run)
  local first, at, texts = run.record.count + 1, interrupt.timestamp(), {}
  for index = first, #run.job.steps do
    local step = run.job.steps[index]
    texts[#texts + 1] = entries.encode {
      index = index - 1, id = step.id, type = step.type, status = "skipped", started_at = at, duration_ms = 0,
    }
  end
  if #texts > 0 then run:emit("steps.skipped", { first = first, last = #run.job.steps, texts = texts }) end
end

return direct
