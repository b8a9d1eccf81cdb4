-- SPDX-License-Identifier: Apache-2.0
-- A run's way to models: the connection, what the result says of it, and one question, for the steps of a direct job.

local ask = {}

---Finds a model.
---@param run table
---@param allowed_models string[]
---@return inference.session?, table? failure
function ask.connect(run, allowed_models)
  local http, failure = run.outside:client()
  if not http then return nil, { code = "inference_unavailable", message = failure.message } end
  return require "sba.inference".connect {
    environment = run.environment, http = http, allowed_models = allowed_models, source = run.job.inference.source,
    on_wait = function(problem, seconds)
      run.log:event("warning", "model.retry", { error = problem.message, seconds = seconds })
    end,
  }
end

local function connect_for(run, model)
  local wanted = run.job.inference
  if not wanted then
    return nil, { code = "inference_unavailable", message = "the job asks a model, but has no inference.allowed_models" }
  end
  local allowed = false
  for _, name in ipairs(wanted.allowed_models) do allowed = allowed or name == model end
  if model and not allowed then
    return nil, { code = "invalid", message = ("the model %s is not among the job's allowed_models"):format(model) }
  end
  return ask.connect(run, model and { model } or wanted.allowed_models)
end

---Adds a reply to what the result says of inference, and logs it.
---@param run table
---@param model string
---@param reply table
function ask.count(run, model, reply)
  local used = run.record.inference or { model = model, requests = 0, prompt_tokens = 0, completion_tokens = 0, duration_ms = 0 }
  run.record.inference = used
  used.requests = used.requests + 1
  for _, name in ipairs { "prompt_tokens", "completion_tokens", "duration_ms" } do used[name] = used[name] + (reply[name] or 0) end
  run.log:event("info", "model.response", {
    model = model, calls = reply.tool_calls and #reply.tool_calls or 0, prompt_tokens = reply.prompt_tokens,
    completion_tokens = reply.completion_tokens, duration_ms = reply.duration_ms,
  })
end

---The function that steps ask with: request as sba.inference has it, and `model` of the allowed ones.
---@param run table
---@return fun(request: table): table?, table? reply with `model`; or a failure
function ask.new(run)
  local sessions = {}
  return function(request)
    local key, failure = request.model or "", nil
    if not sessions[key] then sessions[key], failure = connect_for(run, request.model) end
    local session = sessions[key]
    if not session then return nil, failure end
    run.log:event("info", "model.request", { model = session.model, messages = #request.messages })
    local reply
    reply, failure = session:chat { messages = request.messages, json_schema = request.json_schema, on_text = run.context.tick }
    if not reply then return nil, failure end
    ask.count(run, session.model, reply)
    reply.model = session.model
    return reply
  end
end

return ask
