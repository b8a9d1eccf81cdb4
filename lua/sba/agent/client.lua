-- SPDX-License-Identifier: Apache-2.0
-- Requests to models, of an agent or of a step: bounded by the job, counted for the result, and
-- in the log.

local models = require "sba.model.connect"

local client = {}

local SCARCE <const> = 5 -- a fifth is left
local REACHED <const> = "the job's inference.%s is reached: %d of %d %s are used, and another request is needed"
local NOTHING <const> = { requests = 0, prompt_tokens = 0, completion_tokens = 0 }

--- The job's time was up while an endpoint had not answered since the last reply: it may be back
--- later.
local function unanswered(failure)
  if failure.unanswered and failure.code == "timeout" then
    failure.code = "inference_unavailable"
    failure.message = "no answer from a model: " .. failure.message
  end
  return failure
end

--- `most` is nil where the job has no bound.
local function bounds(run)
  local wanted, used = run.job.inference or {}, run.record.inference or NOTHING
  local tokens = used.prompt_tokens + used.completion_tokens
  return {
    { name = "requests", field = "max_requests", most = wanted.max_requests, used = used.requests },
    { name = "tokens", field = "max_total_tokens", most = wanted.max_total_tokens, used = tokens },
  }
end

--- Why no further request may be sent; nil: it may.
local function exceeded(run)
  for _, bound in ipairs(bounds(run)) do
    if bound.most and bound.used >= bound.most then
      local message = REACHED:format(bound.field, bound.used, bound.most, bound.name)
      return { code = "constraint_violation", message = message }
    end
  end
end

---@param run run
---@param allowed_models string[]
---@return model.session?, failure?
function client.connect(run, allowed_models)
  local bound_reached = exceeded(run)
  if bound_reached then return nil, bound_reached end
  local http, failure = run:client()
  if not http then return nil, { code = "inference_unavailable", message = failure.message } end
  local session
  session, failure = models.connect {
    environment = run.environment, http = http,
    allowed_models = allowed_models, source = run.job.inference.source,
    on_text = run.context.tick,
    on_wait = function(problem, seconds) run:warn("model.retry", problem.message, { seconds = seconds }) end,
    on_move = function(move, problem)
      local what = move.field or move.tool or move.most
      run:warn("model.adapted", problem.message, { change = move.act, what = what })
    end,
  }
  return session, failure and unanswered(failure)
end

---@param run run
---@return "time"|"requests"|"tokens"|nil what is nearly used up
function client.scarce(run)
  local left = run:seconds_left()
  if left and left <= run.job.constraints.max_runtime_seconds / SCARCE then return "time" end
  for _, bound in ipairs(bounds(run)) do
    local most = bound.most
    if most and most - bound.used <= math.max(1, most / SCARCE) then return bound.name end
  end
end

---Counts a reply for the result, and logs it.
---@param run run
---@param model string
---@param reply model.reply
function client.replied(run, model, reply)
  run.record:count_request(model, reply)
  run.log:event("info", "model.response", {
    model = model, response_model = reply.response_model, calls = #(reply.tool_calls or {}),
    prompt_tokens = reply.prompt_tokens, completion_tokens = reply.completion_tokens,
    duration_ms = reply.duration_ms,
  })
end

---Asks, if the job's bounds allow it, and counts what was used, also where the job's time or a
---signal ended it.
---@param run run
---@param session model.session
---@param request model.request
---@return model.reply?, failure?
function client.ask(run, session, request)
  local bound_reached = exceeded(run)
  if bound_reached then return nil, bound_reached end
  run.log:event("info", "model.request", {
    model = session.model, provider = session.dialect.provider, messages = #request.messages,
  })
  local reply, failure = session:chat(request)
  local thrown_away, used = (reply or failure).thrown_away, not reply and failure.used
  if thrown_away then run.record:count_request(session.model, thrown_away) end
  if used then run.record:count_request(session.model, used) end
  if not reply then return nil, unanswered(failure) end
  reply.thrown_away = nil
  client.replied(run, session.model, reply)
  return reply
end

return client
