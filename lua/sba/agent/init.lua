-- SPDX-License-Identifier: Apache-2.0
-- The agent: a model calls tools until it says with evidence that the job is done, or cannot.
-- Here its job begins; the turns are in loop.lua.

local client = require "sba.agent.client"
local conversation = require "sba.agent.conversation"
local environment_summary = require "sba.agent.environment_summary"
local finish = require "sba.agent.finish"
local json = require "sba.util.json"
local loop = require "sba.agent.loop"
local loop_detector = require "sba.agent.loop_detector"
local outputs = require "sba.agent.outputs"
local process = require "native.process"
local prompt = require "sba.agent.prompt"
local prompts = require "sba.agent.prompts"
local tools = require "sba.agent.tools"
local window = require "sba.agent.window"

local agent = {}

-- Tokens of context from which the model may begin a todo list, and has tools for comfort.
local ROOMY <const> = 32768
local LEAST_SHOWN <const> = 64 -- tokens of an answer
-- Where a recording does not say.
local RECORDED <const> = { model = "recorded", context_length = 32768 }

local function begin(run, session, gateway_tools, extras)
  local job = run.job
  local shown, by_name, accepted = tools.list(run.catalogue, gateway_tools, job, extras)
  local talk = conversation.new(tools.cost(shown))
  talk:add { role = "system", content = prompt.system(job, extras) }
  talk:add { role = "user", content = prompt.opening(job, extras) }
  ---@type agent.state
  local state = {
    run = run, session = session, conversation = talk, has_todo = extras.has_todo,
    tools = by_name, accepted = accepted, offered = shown,
    detector = loop_detector.new(), ending = finish.new(),
    number = 0, status_tokens = 0, status_of = {}, step_arguments = {},
  }
  -- For two answers and a reply beside the system text and the task.
  local tokens = (window.room(state) - talk:total()) // 3
  local bytes = environment_summary.shown_bytes(job)
  state.outputs = outputs.new(run.result_directory, bytes, math.max(LEAST_SHOWN, tokens))
  return state
end

---What the model is told besides the job: the facts as the journal has them, in a replay and a
---resumed run. A small model errs more with many tools, so it is shown fewer.
---@param run run
---@param session { context_length: integer }
---@return sba.prompt.extras
function agent.extras(run, session)
  local size, known = session.context_length, (run.recording or run.history).session
  if not (known and known.facts) then
    known = { facts = environment_summary.of(run, size), agents_md = prompt.agents_md(run, size) }
  end
  return {
    facts = known.facts, agents_md = known.agents_md, missing_skills = run.missing_skills,
    is_roomy = size >= ROOMY, has_todo = size >= ROOMY or #run.todo.items > 0,
    answer_schema = (run.job.inference or {}).answer_schema,
  }
end

local NO_MODELS <const> = "the job asks for an agent, but has no inference.allowed_models"

local function connect(run)
  if run.recording then return run.recording.session or RECORDED end
  local inference = run.job.inference
  if inference then return client.connect(run, inference.allowed_models) end
  return nil, { code = "inference_unavailable", message = NO_MODELS }
end

---@param run run
---@return failure?
function agent.run(run)
  local session, failure = connect(run)
  if not session then return failure end
  local extras = agent.extras(run, session)
  local found, instructions = tools.of_gateway(run, window.space(session), extras)
  extras.instructions = instructions
  run.context.prompts = prompts
  run.context.shell = process.find("bash", run.environment.PATH)
  run:emit("model.session", {
    model = session.model, context_length = session.context_length,
    tools = #found > 0 and json.array(found) or nil, instructions = instructions,
    facts = extras.facts, agents_md = extras.agents_md,
  })
  local state = begin(run, session, found, extras)
  failure = loop.run(state)
  run.record.final_answer = state.ending.answer
  return failure
end

return agent
