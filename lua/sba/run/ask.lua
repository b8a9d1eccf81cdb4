-- SPDX-License-Identifier: Apache-2.0
-- Asks a model one question, for a step.

local client = require "sba.agent.client"
local humanize = require "sba.util.humanize"
local skills = require "sba.outside.skills"
local prompt = require "sba.agent.prompt"
local prompts = require "sba.agent.prompts"
local redact = require "native.secret".redact
local values = require "sba.model.text_calls.values"

local function connect_for(run, model)
  local wanted = run.job.inference
  if not wanted then
    return nil, { code = "inference_unavailable", message = "the job asks a model, but has no inference.allowed_models" }
  end
  if model and not humanize.has(wanted.allowed_models, model) then
    return nil, { code = "invalid", message = ("the model %s is not among the job's allowed_models"):format(model) }
  end
  return client.connect(run, model and { model } or wanted.allowed_models)
end

local function messages_of(run, session, request)
  local status, context = prompt.status(run:seconds_left(), run.todo.items, client.scarce(run)), run.job.context
  if context and #context.skill_ids > 0 and not run.missing_skills then skills.fetch(run) end -- once
  local more = { agents_md = prompt.agents_md(run, session.context_length), missing_skills = run.missing_skills }
  local system = prompt.question(run.job, more, request.system, status)
  local messages = { { role = "system", content = redact(system) }, { role = "user", content = redact(request.prompt) } }
  if request.earlier then
    messages[3] = { role = "assistant", content = request.earlier.answer }
    messages[4] = { role = "user", content = prompts.answer_again:format(redact(request.earlier.mistake)) }
  end
  return messages
end

---@param run run
---@return fun(question: { prompt: string, system?: string, model?: string, json_schema?: table, earlier?: table }): table?, table? asks;
---earlier: an answer that cannot be used, and the mistake in it. The reply has `model`
return function(run)
  local sessions = {}
  return function(request)
    local failure = client.exceeded(run)
    if failure then return nil, failure end
    local key = request.model or ""
    if not sessions[key] then sessions[key], failure = connect_for(run, request.model) end
    local session = sessions[key]
    if not session then return nil, failure end
    local messages = messages_of(run, session, request)
    local reply
    reply, failure = client.ask(run, session, { messages = messages, json_schema = request.json_schema })
    if not reply then return nil, failure end
    reply.model = session.model
    if request.json_schema then reply.content = values.mended(reply.content) or reply.content end -- such as a fence around it
    return reply
  end
end
