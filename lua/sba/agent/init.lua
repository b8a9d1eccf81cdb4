-- SPDX-License-Identifier: Apache-2.0
-- The agent: a model calls tools in the workspace until it says with evidence that the job is done, or cannot.

local agents_md = require "sba.agent.agents_md"
local asking = require "sba.agent.asking"
local call_runner = require "sba.agent.call_runner"
local exchange = require "sba.agent.exchange"
local facts = require "sba.agent.facts"
local finishing = require "sba.agent.finishing"
local interrupt = require "native.interrupt"
local meter = require "sba.agent.meter"
local missed = require "sba.agent.missed"
local models = require "sba.agent.models"
local offered = require "sba.agent.offered"
local outputs = require "sba.agent.outputs"
local phrases = require "sba.agent.words"
local process = require "native.process"
local prompt = require "sba.agent.prompt"
local stuck = require "sba.agent.stuck"
local tools = require "sba.agent.tools"

local agent = {}

local ROOMY <const> = 32768 -- tokens of context, from which on the model keeps a todo list of its own
local LEAST_SHOWN <const> = 64 -- tokens
local MOST_CALLS <const> = 64 -- of one reply
local RECORDED_CONTEXT <const> = 32768 -- tokens; of a recording that does not say
local GARBAGE <const> = 120 -- per cent of what is in use, beyond which memory is collected again

--- Adds a message to the conversation; it is new to the model until the next exchange. A shorter one may take its place there, so that
--- it fits; a replay, which asks nobody, compares the whole.
local function say(state, message)
  table.insert(state.messages, message)
  table.insert(state.fresh, message)
end

local function agent_stuck(why, gave_up)
  return { code = "agent_stuck", message = "the model repeats itself without progress: " .. why, gave_up = gave_up }
end

local function nudge(state, over, why, words)
  if over then return agent_stuck(why) end
  say(state, { role = "user", content = words })
end

local THREE_UNREAD <const> = "three replies in a row could not be read"

--- Whether a reply that had to be a call as text is none, and not one that is misspelled.
local function is_prose(content)
  return content and content:find "%S" and not content:find '{%s*["\']'
end

--- A reply without a call.
local function without_calls(state, reply)
  if reply.done_reason == "repetition" then
    local why = "the reply was stopped: " .. reply.unreadable
    state.run.log:event("warning", "model.repetition", { model = state.session.model, error = why })
    return nudge(state, state.stuck:could_not_read(), THREE_UNREAD .. "; the last one was stopped, because " .. reply.unreadable,
      phrases.repeated:format(reply.unreadable))
  end
  if reply.unreadable and (reply.is_like_a_call or not is_prose(reply.content)) then
    return nudge(state, state.stuck:could_not_read(), THREE_UNREAD, phrases.unreadable:format(reply.unreadable))
  end
  if reply.done_reason == "length" then return nudge(state, state.stuck:could_not_read(), THREE_UNREAD, phrases.cut_off) end
  if (reply.content or ""):match("^%s*$") then
    return nudge(state, state.stuck:said_nothing(), "three replies in a row said nothing", phrases.empty)
  end
  state.stuck.unreadable, state.stuck.silent = 0, 0
  local answer, failure = finishing.answered(state, reply.content, reply.unreadable ~= nil)
  if answer then say(state, { role = "user", content = answer.text }) end
  return failure
end

--- One call and its answer. Returns the job's failure, and whether the call had a mistake.
local function answer_call(state, call)
  local answer, failure = call_runner.perform(state, call)
  if not answer then return failure end
  local verdict = state.stuck:answered(call.name, answer.arguments or call.arguments, answer.answer or answer.text, answer)
  if verdict == "warn" then answer.text = answer.text .. phrases.in_circles end
  say(state, { role = "tool", tool_call_id = call.id, tool_name = call.name, content = answer.text, step = answer.step })
  if verdict == "end" then
    return agent_stuck(("the same call of %s gave the same result again and again"):format(call.name), true)
  end
  return nil, answer.mistaken
end

local function with_calls(state, reply)
  local mistaken = 0
  state.prose = 0
  for i, call in ipairs(reply.tool_calls) do
    if i > MOST_CALLS then
      say(state, { role = "tool", tool_call_id = call.id, tool_name = call.name,
        content = phrases.too_many_calls:format(MOST_CALLS) })
    else
      local failure, has_mistake = answer_call(state, call)
      if failure then return failure end
      mistaken = mistaken + (has_mistake and 1 or 0)
    end
    if state.finished then return nil end
  end
  if mistaken < #reply.tool_calls then
    state.stuck:was_read()
  elseif state.stuck:mistaken() then
    return agent_stuck "too many replies in a row had nothing but mistaken calls"
  end
end

--- One exchange with the model and what follows from it; returns the job's failure.
local function turn(state)
  local fresh = state.fresh
  state.fresh = {}
  local reply, failure = state.exchange:next(fresh, function() return asking.ask(state) end)
  if not reply then return failure end
  models.replied(state.run, state.session.model, reply)
  table.insert(state.messages, {
    role = "assistant", content = reply.content, tool_calls = reply.tool_calls, thinking = reply.thinking,
    said = reply.said,
  })
  state.without_call = not (reply.tool_calls and #reply.tool_calls > 0 and reply.done_reason ~= "length")
  return (state.without_call and without_calls or with_calls)(state, reply)
end

--- Each call must have an answer, also those after the one with which the job had ended.
local function answer_rest(state)
  local count = #state.messages
  local at = count
  while state.messages[at].role ~= "assistant" do at = at - 1 end
  local calls = state.messages[at].tool_calls or {}
  for i = count - at + 1, #calls do
    say(state, { role = "tool", tool_call_id = calls[i].id, tool_name = calls[i].name, content = phrases.not_done })
  end
end

--- A run had ended after the last exchange, and the next one goes on: with a clean slate, and the model is told.
local function resume(state, why)
  answer_rest(state)
  state.stuck, state.prose, state.refused, state.failed_checks, state.asked_to_begin = stuck.new(), 0, nil, nil, nil
  state.answer, state.acceptance, state.misfits = nil, nil, nil
  local last, words = state.messages[#state.messages], phrases.resumed:format(why)
  if last.role == "assistant" then
    say(state, { role = "user", content = words })
  else
    last.content = last.content .. "\n\n" .. words
  end
end

--- One turn. What had ended an earlier run ends this one no more.
local function next_turn(state)
  local why, number = state.exchange:resumed(), state.exchange.number
  if why then resume(state, why) end
  local failure = interrupt.reason() or turn(state)
  local is_past = failure and not interrupt.reason() and state.exchange.number > number and state.exchange:resumed()
  return not is_past and failure or nil
end

local function names(list)
  local words = {}
  for i, tool in ipairs(list) do words[i] = tool.name end
  return table.concat(words, ", ")
end

--- Bytes and tokens of an answer that the model sees: two answers must fit beside the system text and the task.
local function shown_limits(state)
  local room = asking.room(state) - state.meter:total(state.messages)
  return math.min(facts.MOST_SHOWN, state.run.job.constraints.max_output_bytes), math.max(LEAST_SHOWN, room // 3)
end

--- Everything the turns share.
local function begin(run, session, gateway_tools, told)
  local list, by_name, accepted = tools.list(run.catalogue, gateway_tools, run.job, told.has_todo)
  local state = {
    run = run, session = session, context = run.job.context, tools = by_name, tool_names = names(list), shown = list,
    accepted = accepted, has_todo = told.has_todo,
    meter = meter.new(tools.cost(list)), status_tokens = 0, status_of = {}, stuck = stuck.new(), fresh = {},
    missed = missed.new(), messages = {}, prose = 0,
    exchange = exchange.new(run),
  }
  say(state, { role = "system", content = prompt.system(run.job, run.job.context, told) })
  say(state, { role = "user", content = prompt.opening(run.job.context, told) })
  state.outputs = outputs.new(run.result_directory, shown_limits(state))
  return state
end

--- What the model is told besides the job: as the journal has it, so that a replay elsewhere and a resumed run say the same.
local function told_of(run, session, instructions, has_todo)
  local past = (run.recording or run.past).session or {}
  return {
    facts = past.facts or facts.of {
      workspace = run.workspace, artifacts = run.artifacts ~= nil, constraints = run.job.constraints, environment = run.environment,
      agents_md = agents_md.is_wanted(run.job), context_length = session.context_length,
    },
    agents_md = past.facts and past.agents_md or not past.facts and models.agents_md(run, session) or nil,
    missing_skills = run.missing_skills, instructions = instructions, answer_schema = run.job.inference and run.job.inference.answer_schema,
    has_todo = has_todo,
  }
end

--- The source of replies: an inference server, or the recording.
local function connect(run)
  local recorded = run.recording and (run.recording.session or { model = "recorded", context_length = RECORDED_CONTEXT })
  if recorded then return recorded end
  return models.connect(run, run.job.inference.allowed_models)
end

---Works until the job is over; returns the job's failure, or nil when it ended well.
---@param run run
---@return failure?
function agent.run(run)
  if not run.job.inference and not run.recording then
    return { code = "inference_unavailable", message = "the job asks for an agent, but has no inference.allowed_models" }
  end
  -- A turn makes large strings and few objects: going over them often costs little. The host's credit ends here.
  collectgarbage("incremental", GARBAGE)
  collectgarbage "step"
  local session, failure = connect(run)
  if not session then return failure end
  local has_todo = #run.todo.items > 0 or session.context_length >= ROOMY
  local gateway_tools, instructions = offered.tools(run, session.context_length - asking.reserve(session), has_todo)
  local told = told_of(run, session, instructions, has_todo)
  run.context.words = phrases
  run.context.shell = process.find("bash", run.environment.PATH)
  run.journal:session(session, gateway_tools, told)
  local state = begin(run, session, gateway_tools, told)
  repeat
    failure = next_turn(state)
  until failure or state.finished
  run.record.final_answer, run.record.acceptance = state.answer, state.acceptance or run.record.acceptance
  return failure and state.missed:rename(failure, state.acceptance)
end

return agent
