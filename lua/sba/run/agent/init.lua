-- SPDX-License-Identifier: Apache-2.0
-- The agent: a model calls tools in the workspace until it says with evidence that the job is done, or cannot.

local agents_md = require "sba.run.agents_md"
local call_runner = require "sba.run.agent.call_runner"
local exchange = require "sba.run.agent.exchange"
local facts = require "sba.run.agent.facts"
local finishing = require "sba.run.agent.finishing"
local interrupt = require "native.interrupt"
local missed = require "sba.run.agent.missed"
local models = require "sba.run.ask"
local offered = require "sba.run.agent.offered"
local outputs = require "sba.run.agent.outputs"
local prompt = require "sba.run.agent.prompt"
local stuck = require "sba.run.agent.stuck"
local tools = require "sba.run.agent.tools"
local window = require "sba.run.agent.window"

local agent = {}

local KEPT_MESSAGES <const> = 2 -- system text and task
local MOST_SHOWN <const> = 16 * 1024 -- bytes of one tool result
local LEAST_SHOWN <const> = 256
local LONGEST_REPLY <const> = 4096 -- tokens
local MOST_CALLS <const> = 64 -- of one reply
local MOST_CUTS <const> = 5 -- times that a prompt is made smaller because its server cut it
local RECORDED_CONTEXT <const> = 32768 -- tokens; of a recording that does not say
local GARBAGE <const> = 120 -- per cent of what is in use, beyond which memory is collected again

--- Adds a message to the conversation; it is new to the model until the next exchange.
local function say(state, message)
  table.insert(state.conversation.messages, message)
  table.insert(state.fresh, message)
end

local function reply_budget(session)
  return math.min(LONGEST_REPLY, session.context_length // 4)
end

local function message_budget(state)
  return state.session.context_length - reply_budget(state.session) - state.fixed_tokens - state.status_tokens
end

local function too_large(state)
  return {
    code = "agent_stuck",
    message = ("the job's text and the last exchange do not fit into the model's context of %d tokens; use a model with a larger one")
      :format(state.session.context_length),
  }
end

--- @param most? integer tokens that the conversation may have at most
local function request(state, most)
  local status = prompt.status(interrupt.remaining(), state.run.todo.items, state.run.job.constraints.max_runtime_seconds)
  state.status_tokens = window.estimate { content = status }
  local messages = state.conversation.messages
  local before = window.total(messages)
  local fits = window.fit(state.conversation, KEPT_MESSAGES, math.min(message_budget(state), most or math.huge))
  local after = window.total(messages)
  if after < before then state.run.journal:compacted(before, after) end
  if not fits then return nil, too_large(state) end
  return {
    messages = state.conversation.messages, status = status, tools = state.shown, max_tokens = reply_budget(state.session),
    temperature = state.stuck:temperature(), on_text = state.run.context.tick,
  }
end

--- Asks the model. Where its server says, or shows, that the prompt did not fit, it is asked again with a shorter conversation. A reply
--- that came all the same is taken where there is nothing to shorten.
local function ask(state)
  local most, given
  for _ = 1, MOST_CUTS do
    local wanted, failure = request(state, most)
    if not wanted then return given, not given and failure or nil end
    state.run.log:event("info", "model.request", { model = state.session.model, messages = #wanted.messages })
    state.run.todo:flush()
    state.run.checkpoint:hurry()
    local reply
    reply, failure = state.session:chat(wanted)
    if reply then return reply end
    if failure.code ~= "context_cut" then return nil, failure end
    state.run.log:event("warning", "model.context_cut", { model = state.session.model, error = failure.message })
    given, most = failure.reply, window.total(state.conversation.messages) - 1
  end
  if given then return given end
  return nil, too_large(state)
end

local function agent_stuck(why, gave_up)
  return { code = "agent_stuck", message = "the model repeats itself without progress: " .. why, gave_up = gave_up }
end

local function nudge(state, over, why, words)
  if over then return agent_stuck(why) end
  say(state, { role = "user", content = words })
end

--- A reply without a call.
local function without_calls(state, reply)
  if reply.unreadable then
    return nudge(state, state.stuck:could_not_read(), "three replies in a row could not be read",
      "Your reply could not be read: " .. reply.unreadable)
  end
  if reply.done_reason == "length" then
    return nudge(state, state.stuck:could_not_read(), "three replies in a row could not be read",
      "Your reply was cut off because it was too long. Say it in fewer words, or in several calls.")
  end
  if (reply.content or ""):match("^%s*$") then
    return nudge(state, state.stuck:said_nothing(), "three replies in a row said nothing",
      "Your reply was empty. Call a tool, or call finish when the job is done.")
  end
  local answer, failure = finishing.answered(state, reply.content)
  if answer then say(state, { role = "user", content = answer.text }) end
  return failure
end

local function warn_of_repetition(answer)
  answer.text = answer.text .. "\n[This is the third time that this very call gave this very result. Do something else: once more "
    .. "and the job ends.]"
end

--- One call and its answer. Returns the job's failure, and whether the call could not be read.
local function answer_call(state, call)
  local answer, failure = call_runner.perform(state, call)
  if not answer then return failure end
  local verdict = state.stuck:answered(call.name, call.arguments or {}, answer.answer or answer.text, answer.changed)
  if verdict == "warn" then warn_of_repetition(answer) end
  say(state, { role = "tool", tool_call_id = call.id, tool_name = call.name, content = answer.text, step = answer.step })
  if verdict == "end" then
    return agent_stuck(("the same call of %s gave the same result four times"):format(call.name), true)
  end
  return nil, answer.unreadable
end

local function with_calls(state, reply)
  local unreadable = 0
  state.asked_to_finish = false
  for i, call in ipairs(reply.tool_calls) do
    if i > MOST_CALLS then
      say(state, { role = "tool", tool_call_id = call.id, tool_name = call.name,
        content = ("not done: a reply may hold %d calls at most"):format(MOST_CALLS) })
    else
      local failure, broken = answer_call(state, call)
      if failure then return failure end
      unreadable = unreadable + (broken and 1 or 0)
    end
    if state.finished then return nil end
  end
  if unreadable < #reply.tool_calls then
    state.stuck:was_read()
  elseif state.stuck:could_not_read() then
    return agent_stuck("three replies in a row could not be read")
  end
end

--- One exchange with the model and what follows from it; returns the job's failure.
local function turn(state)
  local fresh = state.fresh
  state.fresh = {}
  local reply, failure = state.exchange:next(fresh, function() return ask(state) end)
  if not reply then return failure end
  models.count(state.run, state.session.model, reply)
  table.insert(state.conversation.messages, {
    role = "assistant", content = reply.content, tool_calls = reply.tool_calls, thinking = reply.thinking,
    said = reply.said,
  })
  if reply.tool_calls and #reply.tool_calls > 0 and reply.done_reason ~= "length" then return with_calls(state, reply) end
  return without_calls(state, reply)
end

local function names(list)
  local words = {}
  for i, tool in ipairs(list) do words[i] = tool.name end
  return table.concat(words, ", ")
end

--- The bytes of an answer that the model sees: two answers must fit beside the system text and the task.
local function shown_limit(state)
  local room = message_budget(state) - window.total(state.conversation.messages)
  local most = math.min(MOST_SHOWN, state.run.job.constraints.max_output_bytes)
  return math.max(LEAST_SHOWN, math.min(most, window.bytes(room // 3)))
end

--- Everything the turns share.
local function begin(run, session, gateway_tools, told)
  local list, by_name = tools.list(run.catalogue, gateway_tools)
  local state = {
    run = run, session = session, context = run.job.context, tools = by_name, tool_names = names(list), shown = list,
    fixed_tokens = tools.cost(list), status_tokens = 0, status_of = {}, stuck = stuck.new(), fresh = {},
    missed = missed.new(),
    conversation = { messages = {} },
    exchange = exchange.new {
      recorded = (run.recording or run.history or {}).exchanges, replay = run.recording ~= nil, journal = run.journal,
    },
  }
  say(state, { role = "system", content = prompt.system(run.job, run.job.context, told) })
  say(state, { role = "user", content = prompt.opening(run.job.context) })
  state.outputs = outputs.new(run.result_directory, shown_limit(state))
  return state
end

--- What the model is told besides the job: as the journal has it, so that a replay elsewhere and a resumed run say the same.
local function told_of(run, session, instructions)
  local past = (run.recording or run.history or {}).session or {}
  return {
    facts = past.facts or facts.of {
      workspace = run.workspace, artifacts = run.artifacts ~= nil, constraints = run.job.constraints, environment = run.environment,
      agents_md = agents_md.is_wanted(run.job), context_length = session.context_length,
    },
    agents_md = past.facts and past.agents_md or not past.facts and models.agents_md(run, session) or nil,
    missing_skills = run.missing_skills, instructions = instructions,
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
  local gateway_tools, instructions = offered.tools(run, session.context_length - reply_budget(session))
  local told = told_of(run, session, instructions)
  run.journal:session(session, gateway_tools, told)
  local state = begin(run, session, gateway_tools, told)
  repeat
    failure = interrupt.reason() or turn(state)
  until failure or state.finished
  run.record.final_answer, run.record.acceptance = state.answer, state.acceptance
  return failure and state.missed:rename(failure, state.acceptance)
end

return agent
