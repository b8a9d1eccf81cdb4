-- SPDX-License-Identifier: Apache-2.0
-- Asks a model one question, for a step.

local client = require "sba.agent.client"
local fail = require "sba.util.fail"
local json = require "sba.util.json"
local json_mended = require "sba.util.json_mended"
local skills = require "sba.outside.skills"
local prompt = require "sba.agent.prompt"
local prompts = require "sba.agent.prompts"
local redact = require "native.secret".redact

local function connect_for(run, model)
  local allowed = run.job.inference and run.job.inference.allowed_models
  if not allowed then
    fail.raise("inference_unavailable", "the job asks a model, but has no inference.allowed_models")
  elseif model and not json.contains(allowed, model) then
    fail.raise("invalid", "the model %s is not among the job's allowed_models", model)
  end
  return fail.check(client.connect(run, model and { model } or allowed))
end

local function messages_of(run, session, request)
  local status = prompt.status(run:seconds_left(), run.todo.items, client.scarce(run))
  local context, earlier = run.job.context, request.earlier
  -- The first question fetches them.
  if context and #context.skill_ids > 0 and not run.missing_skills then skills.fetch(run) end
  local agents_md = prompt.agents_md(run, session.context_length)
  local more = { agents_md = agents_md, missing_skills = run.missing_skills }
  local system = prompt.question(run.job, more, request.system, status)
  local messages = {
    { role = "system", content = redact(system) },
    { role = "user", content = redact(request.prompt) },
  }
  if earlier then
    messages[3] = { role = "assistant", content = earlier.answer }
    messages[4] = { role = "user", content = prompts.answer_again:format(redact(earlier.mistake)) }
  end
  return messages
end

---@class run.question
---@field prompt string
---@field system? string
---@field model? string one of the job's; nil: any
---@field json_schema? table of the answer
---@field earlier? { answer: string, mistake: string } an answer that cannot be used

--- Raises failures.
local function ask(run, sessions, request)
  local key = request.model or ""
  sessions[key] = sessions[key] or connect_for(run, request.model)
  local session = sessions[key]
  local messages, schema = messages_of(run, session, request), request.json_schema
  local question = { messages = messages, json_schema = schema }
  local reply = fail.check(client.ask(run, session, question))
  reply.model = session.model
  -- Such as a fence around it.
  if schema then reply.content = json_mended.mended(reply.content) or reply.content end
  return reply
end

---@param run run
---@return fun(question: run.question): model.reply?, failure? asks; the reply has `model`
return function(run)
  local sessions = {} -- by the model that was asked for
  return function(request) return fail.caught(ask, run, sessions, request) end
end
