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
  local offered, by_name, accepted = tools.list(run.catalogue, gateway_tools, run.job, extras)
  ---@type agent.state
  local state = {
    run = run, session = session, number = 0, status_of = {}, status_tokens = 0,
    tools = by_name, accepted = accepted, offered = offered, has_todo = extras.has_todo,
    conversation = conversation.new(tools.cost(offered)), step_arguments = {},
    detector = loop_detector.new(), ending = finish.new(),
  }
  state.conversation:add { role = "system", content = prompt.system(run.job, extras) }
  state.conversation:add { role = "user", content = prompt.opening(run.job, extras) }
  local bytes = math.min(environment_summary.MOST_SHOWN, run.job.constraints.max_output_bytes)
  -- For two answers and a reply beside the system text and the task.
  local room = window.room(state) - state.conversation:total()
  state.outputs = outputs.new(run.result_directory, bytes, math.max(LEAST_SHOWN, room // 3))
  return state
end

---What the model is told besides the job: the facts as the journal has them, in a replay and a
---resumed run. A small model errs more with many tools, so it is shown fewer.
---@param run run
---@param session { context_length: integer }
---@return sba.prompt.extras
function agent.extras(run, session)
  local size, told = session.context_length, (run.recording or run.history).session
  if not (told and told.facts) then
    told = { facts = environment_summary.of(run, size), agents_md = prompt.agents_md(run, size) }
  end
  return {
    facts = told.facts, agents_md = told.agents_md, missing_skills = run.missing_skills,
    is_roomy = size >= ROOMY, has_todo = size >= ROOMY or #run.todo.items > 0,
    answer_schema = (run.job.inference or {}).answer_schema,
  }
end

local function connect(run)
  if run.recording then return run.recording.session or RECORDED end
  if not run.job.inference then
    local message = "the job asks for an agent, but has no inference.allowed_models"
    return nil, { code = "inference_unavailable", message = message }
  end
  return client.connect(run, run.job.inference.allowed_models)
end

---@param run run
---@return failure?
function agent.run(run)
  local session, failure = connect(run)
  if not session then return failure end
  local space, extras = session.context_length - window.reserve(session), agent.extras(run, session)
  local gateway_tools
  gateway_tools, extras.instructions = tools.of_gateway(run, space, extras)
  run.context.prompts = prompts
  run.context.shell = process.find("bash", run.environment.PATH)
  run:emit("model.session", {
    model = session.model, context_length = session.context_length,
    tools = #gateway_tools > 0 and json.array(gateway_tools) or nil,
    instructions = extras.instructions, facts = extras.facts, agents_md = extras.agents_md,
  })
  local state = begin(run, session, gateway_tools, extras)
  failure = loop.run(state)
  run.record.final_answer = state.ending.answer
  return failure
end

return agent
