-- SPDX-License-Identifier: Apache-2.0
-- Connects a run to models, counts their use for the result, and asks one question for a step of a direct job.

local agents_md = require "sba.agent.agents_md"
local budget = require "sba.run.budget"
local fetch_skills = require "sba.run.skills"
local inference = require "sba.model"
local interrupt = require "native.interrupt"
local phrases = require "sba.agent.words"
local prompt = require "sba.agent.prompt"
local redact = require "native.secret".redact
local words = require "sba.util.words"

local ask = {}

local NO_CONTEXT <const> = { requirements = {}, acceptance_criteria = {}, checks = {}, skill_ids = {}, skills = {} }

---Finds a model.
---@param run run
---@param allowed_models string[]
---@return inference.session?, table? failure
function ask.connect(run, allowed_models)
  local http, failure = run.outside:client()
  if not http then return nil, { code = "inference_unavailable", message = failure.message } end
  return inference.connect {
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
  if model and not words.has(wanted.allowed_models, model) then
    return nil, { code = "invalid", message = ("the model %s is not among the job's allowed_models"):format(model) }
  end
  return ask.connect(run, model and { model } or wanted.allowed_models)
end

---Adds a reply to the inference figures of the result, and logs it.
---@param run run
---@param model string
---@param reply table
function ask.count(run, model, reply)
  budget.count(run, model, reply)
  run.log:event("info", "model.response", {
    model = model, calls = reply.tool_calls and #reply.tool_calls or 0, prompt_tokens = reply.prompt_tokens,
    completion_tokens = reply.completion_tokens, duration_ms = reply.duration_ms,
  })
end

--- The job's context, with its skills; they are fetched once.
local function context_of(run)
  local context = run.job.context or NO_CONTEXT
  if #context.skill_ids > 0 and not run.missing_skills then fetch_skills(run) end
  return context
end

--- What the workspace's AGENTS.md says, where the job takes it. The log says why it cannot be shown.
---@param run run
---@param session inference.session
---@return string?
function ask.agents_md(run, session)
  if not agents_md.is_wanted(run.job) then return nil end
  local shown, problem = agents_md.of(run.workspace, session.context_length)
  if problem then run.log:event("warning", "agents_md.left_out", { error = problem }) end
  return shown
end

local function messages_of(run, session, request)
  local status = prompt.status(interrupt.remaining(), run.todo.items, budget.scarce(run))
  local context = context_of(run)
  local more = { agents_md = ask.agents_md(run, session), missing_skills = run.missing_skills }
  local system = prompt.question(run.job, context, more, request.system, status)
  local messages = { { role = "system", content = redact(system) }, { role = "user", content = redact(request.prompt) } }
  if request.earlier then
    messages[3] = { role = "assistant", content = request.earlier.answer }
    messages[4] = { role = "user", content = phrases.answer_again:format(redact(request.earlier.mistake)) }
  end
  return messages
end

---@class run.question
---@field prompt string
---@field system? string instructions of the step
---@field model? string one of the allowed
---@field json_schema? table
---@field earlier? { answer: string, mistake: string } an answer that cannot be used, and why

---The function that steps ask with. The model is told the job's context too.
---@param run run
---@return fun(question: run.question): table?, table? reply with `model`; or a failure
function ask.new(run)
  local sessions = {}
  return function(request)
    local failure = budget.exceeded(run)
    if failure then return nil, failure end
    local key = request.model or ""
    if not sessions[key] then sessions[key], failure = connect_for(run, request.model) end
    local session = sessions[key]
    if not session then return nil, failure end
    local messages = messages_of(run, session, request)
    local reply
    run.log:event("info", "model.request", {
      model = session.model, provider = session.dialect.provider, messages = #messages,
    })
    reply, failure = session:chat { messages = messages, json_schema = request.json_schema, on_text = run.context.tick }
    if not reply then
      if failure.used then budget.count(run, session.model, failure.used) end
      return nil, failure
    end
    ask.count(run, session.model, reply)
    reply.model = session.model
    return reply
  end
end

return ask
