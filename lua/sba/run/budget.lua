-- SPDX-License-Identifier: Apache-2.0
-- What a job may use of models in all, over every request: inference.max_requests and inference.max_total_tokens.

local interrupt = require "native.interrupt"

local budget = {}

local LAST_PART <const> = 5 -- a fifth

--- What is bounded: its name, its field, what is used, the bound.
local function bounds(run)
  local wanted, used = run.job.inference or {}, run.record.inference or {}
  return {
    { "requests", "max_requests", used.requests or 0, wanted.max_requests },
    { "tokens", "max_total_tokens", (used.prompt_tokens or 0) + (used.completion_tokens or 0), wanted.max_total_tokens },
  }
end

---Why no further request may be sent; nil where one may.
---@param run run
---@return failure?
function budget.exceeded(run)
  for _, bound in ipairs(bounds(run)) do
    local name, field, used, most = table.unpack(bound, 1, 4)
    if most and used >= most then
      return {
        code = "constraint_violation",
        message = ("the job's inference.%s is reached: %d of %d %s are used, and another request is needed"):format(
          field, used, most, name),
      }
    end
  end
end

---Adds what a request used to the inference figures of the result.
---@param run run
---@param model string
---@param used { prompt_tokens?: integer, completion_tokens?: integer, duration_ms?: integer }
function budget.count(run, model, used)
  local all = run.record.inference or { model = model, requests = 0, prompt_tokens = 0, completion_tokens = 0, duration_ms = 0 }
  run.record.inference = all
  all.requests = all.requests + 1
  for _, name in ipairs { "prompt_tokens", "completion_tokens", "duration_ms" } do all[name] = all[name] + (used[name] or 0) end
end

---Counts the questions of all steps that earlier runs made. An agent's replies are counted as they are taken over.
---@param run run
function budget.resume(run)
  for _, result in ipairs(run.history.asked) do budget.count(run, result.model, result) end
end

---What of the job's time, requests or tokens is nearly used up, in a word; nil: nothing is.
---@param run run
---@return string?
function budget.scarce(run)
  local remaining, most_seconds = interrupt.remaining(), run.job.constraints.max_runtime_seconds
  if remaining and remaining <= most_seconds / LAST_PART then return "time" end
  for _, bound in ipairs(bounds(run)) do
    local name, _, used, most = table.unpack(bound, 1, 4)
    if most and most - used <= math.max(1, most / LAST_PART) then return name end
  end
end

return budget
