-- SPDX-License-Identifier: Apache-2.0
-- The models that a job may ask, and what it has used of them: its requests and tokens are counted for the result, and bounded by
-- inference.max_requests and inference.max_total_tokens.

local inference = require "sba.model"
local interrupt = require "native.interrupt"
local prompt = require "sba.agent.prompt"

local models = {}

local LAST_PART <const> = 5 -- a fifth

--- What the job bounds.
local function bounds(run)
  local wanted, used = run.job.inference or {}, run.record.inference or {}
  return {
    { name = "requests", field = "max_requests", used = used.requests or 0, most = wanted.max_requests },
    { name = "tokens", field = "max_total_tokens", most = wanted.max_total_tokens,
      used = (used.prompt_tokens or 0) + (used.completion_tokens or 0) },
  }
end

---Finds a model.
---@param run run
---@param allowed_models string[]
---@return inference.session?, table? failure
function models.connect(run, allowed_models)
  local http, failure = run:client()
  if not http then return nil, { code = "inference_unavailable", message = failure.message } end
  return inference.connect {
    environment = run.environment, http = http, allowed_models = allowed_models, source = run.job.inference.source,
    on_wait = function(problem, seconds)
      run.log:event("warning", "model.retry", { error = problem.message, seconds = seconds })
    end,
  }
end

---Why no further request may be sent; nil where one may.
---@param run run
---@return failure?
function models.exceeded(run)
  for _, bound in ipairs(bounds(run)) do
    if bound.most and bound.used >= bound.most then
      return {
        code = "constraint_violation",
        message = ("the job's inference.%s is reached: %d of %d %s are used, and another request is needed"):format(
          bound.field, bound.used, bound.most, bound.name),
      }
    end
  end
end

---Adds what a request used to the inference figures of the result.
---@param run run
---@param model string
---@param used { prompt_tokens?: integer, completion_tokens?: integer, duration_ms?: integer }
function models.count(run, model, used)
  local all = run.record.inference or { model = model, requests = 0, prompt_tokens = 0, completion_tokens = 0, duration_ms = 0 }
  run.record.inference = all
  all.requests = all.requests + 1
  for _, name in ipairs { "prompt_tokens", "completion_tokens", "duration_ms" } do all[name] = all[name] + (used[name] or 0) end
end

---Asks a model. What it used is counted once its reply is taken, or at once where the job's time or a signal ended the request.
---@param run run
---@param session inference.session
---@param request inference.request
---@return inference.reply?, inference.failure?
function models.ask(run, session, request)
  run.log:event("info", "model.request", { model = session.model, provider = session.dialect.provider, messages = #request.messages })
  request.on_text = run.context.tick
  local reply, failure = session:chat(request)
  if failure and failure.used then models.count(run, session.model, failure.used) end
  return reply, failure
end

---Counts a reply, and logs it.
---@param run run
---@param model string
---@param reply table
function models.replied(run, model, reply)
  models.count(run, model, reply)
  run.log:event("info", "model.response", {
    model = model, calls = reply.tool_calls and #reply.tool_calls or 0, prompt_tokens = reply.prompt_tokens,
    completion_tokens = reply.completion_tokens, duration_ms = reply.duration_ms,
  })
end

---What of the job's time, requests or tokens is nearly used up, in a word; nil: nothing is.
---@param run run
---@return string?
function models.scarce(run)
  local remaining, most_seconds = interrupt.remaining(), run.job.constraints.max_runtime_seconds
  if remaining and remaining <= most_seconds / LAST_PART then return "time" end
  for _, bound in ipairs(bounds(run)) do
    local most = bound.most
    if most and most - bound.used <= math.max(1, most / LAST_PART) then return bound.name end
  end
end

---What the workspace's AGENTS.md says, where the job takes it. The log says why it cannot be shown.
---@param run run
---@param session inference.session
---@return string?
function models.agents_md(run, session)
  if not prompt.wants_agents_md(run.job) then return nil end
  local words, problem = prompt.agents_md(run.workspace, session.context_length)
  if problem then run.log:event("warning", "agents_md.left_out", { error = problem }) end
  return words
end

return models
