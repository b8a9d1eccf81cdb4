-- SPDX-License-Identifier: Apache-2.0
-- The agent: a model calls tools until it says with evidence that the job is done, or cannot. A turn: exchange sends the conversation,
-- calls does what the reply says; stuck notices circles, finish judges the end.

local calls = require "sba.agent.calls"
local conversation = require "sba.agent.conversation"
local exchange = require "sba.agent.exchange"
local facts = require "sba.agent.facts"
local finish = require "sba.agent.finish"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local lpeg = require "lpeg"
local outputs = require "sba.agent.outputs"
local phrases = require "sba.agent.words"
local process = require "native.process"
local prompt = require "sba.agent.prompt"
local stuck = require "sba.agent.stuck"
local tools = require "sba.agent.tools"
local words = require "sba.util.words"

local agent = {}

local ROOMY <const> = 32768 -- tokens of context, from which the model may begin a todo list
local LEAST_SHOWN <const> = 64 -- tokens of an answer
local RECORDED_CONTEXT <const> = 32768 -- tokens, where a recording does not say

---@class agent.state what the turns of a job share
---@field run run
---@field session inference.session in a replay, what the recording says of it
---@field tools table<string, agent.tool> all that are accepted, by name
---@field accepted agent.tool[] the same
---@field offered agent.tool[] those that the model is shown
---@field has_todo boolean the model keeps the todo list
---@field conversation agent.conversation
---@field number integer exchanges so far; set by exchange
---@field outputs table sba.agent.outputs
---@field stuck table sba.agent.stuck; new at a resume
---@field ending agent.ending set by finish; new at a resume
---@field unreached? table entry of the last command or gateway call, if it lacked the network; set by finish
---@field status_of table<string, string> of steps and checks, by id; set by finish
---@field has_acted? boolean a step was run; set by calls
---@field has_failed_calls? boolean a call could not be carried out
---@field without_call? boolean the last reply held no call
---@field status_tokens integer of the last request's end; set by exchange
---@field as_text? boolean the last request told the tools as text; set by exchange

local function agent_stuck(why, gave_up)
  return { code = "agent_stuck", message = "the model repeats itself without progress: " .. why, gave_up = gave_up }
end

local function tell(state, content) state.conversation:add { role = "user", content = content } end

local function nudge_or_end(state, is_over, why, told)
  if is_over then return agent_stuck(why) end
  tell(state, told)
end

local P, S = lpeg.P, lpeg.S
local unseen <const> = P "\u{A0}" + "\u{AD}" + "\u{200B}" + "\u{200C}" + "\u{200D}"
  + "\u{2060}" + "\u{3000}" + "\u{FEFF}"
local nothing <const> = (S " \t\n\v\f\r" + unseen) ^ 0 * -1
local usual_ends <const> = { stop = true, length = true, tool_calls = true }

--- Whether nobody would see anything of a text.
local function is_empty(content) return lpeg.match(nothing, content or "") ~= nil end

--- What the model is told of a reply without content, and what else is known of it.
local function silence(reply)
  local reason = reply.done_reason or "stop"
  if not usual_ends[reason] then
    local shown = words.quoted(reason)
    return phrases.ended_early:format(shown), ("; the server ended the last one with %s"):format(shown)
  end
  if (reply.content or ""):find "%S" then return phrases.invisible, "; the last one had invisible characters only" end
  if is_empty(reply.thinking) then return phrases.empty, "" end
  return phrases.only_thought, "; the last one was thinking only"
end

--- Whether a reply that had to be a call as text is not even a misspelled one.
local function is_prose(content) return content and content:find "%S" and not content:find '{%s*["\']' end

--- What the model is told of a reply that cannot be read, or nil; why it was stopped.
local function mistake_in(state, reply)
  local unreadable = reply.unreadable
  if reply.done_reason == "repetition" then
    state.run.log:event("warning", "model.repetition", { model = state.session.model, error = "the reply was stopped: " .. unreadable })
    return phrases.repeated:format(unreadable), "; the last one was stopped, because " .. unreadable
  end
  local is_call = unreadable and (reply.is_like_a_call or not is_prose(reply.content))
  return is_call and phrases.unreadable:format(unreadable) or reply.done_reason == "length" and phrases.cut_off or nil, ""
end

local function without_calls(state, reply)
  local mistake, why = mistake_in(state, reply)
  state.has_failed_calls = state.has_failed_calls or reply.is_like_a_call
  if mistake then
    return nudge_or_end(state, state.stuck:could_not_read(), "three replies in a row could not be read" .. why, mistake)
  end
  if is_empty(reply.content) then
    local told, more = silence(reply)
    return nudge_or_end(state, state.stuck:said_nothing(), "three replies in a row said nothing" .. more, told)
  end
  state.stuck:was_read()
  local told, failure = finish.answered(state, reply.content, reply.unreadable ~= nil)
  if told then tell(state, told) end
  return failure
end

local function answer(state, call, text, step)
  state.conversation:add { role = "tool", tool_call_id = call.id, tool_name = call.name, content = text, step = step }
end

--- Servers refuse an empty reply in the history, and a call of a tool that was not offered to them: words take the
--- place of these.
local function remember(state, reply)
  local known, other, content = json.array {}, {}, reply.content
  for _, call in ipairs(reply.tool_calls or {}) do
    local list = state.tools[call.name] and known or other
    list[#list + 1] = call
  end
  if #known == 0 and is_empty(content) then
    content = other[1] and phrases.called_unknown:format(other[1].name) or phrases.said_nothing
  end
  table.insert(state.conversation.messages, {
    role = "assistant", content = content, tool_calls = known, thinking = reply.thinking, said = reply.said,
  })
end

--- Returns the job's failure, and whether the call had a mistake.
local function answer_call(state, call, apart)
  local result, failure = calls.perform(state, call)
  if not result then return failure end
  local verdict = state.stuck:answered(call.name, result.arguments or call.arguments, result.answer or result.text, result)
  local told = result.text .. (verdict == "warn" and phrases.in_circles or "")
  if state.tools[call.name] then answer(state, call, told, result.step) else apart[#apart + 1] = told end
  if verdict == "end" then
    return agent_stuck(("the same call of %s gave the same result again and again"):format(call.name), true)
  end
  return nil, result.mistaken
end

local function with_calls(state, reply)
  local all_mistaken, apart = true, {} -- apart: answers to calls that are not in the history
  state.ending.prose = 0
  for _, call in ipairs(reply.tool_calls) do
    local failure, is_mistaken = answer_call(state, call, apart)
    if failure then return failure end
    all_mistaken = all_mistaken and is_mistaken
    state.has_failed_calls = state.has_failed_calls or is_mistaken
    if state.ending.is_over then return nil end
  end
  if #apart > 0 then tell(state, table.concat(apart, "\n")) end
  if not all_mistaken then
    state.stuck:was_read()
  elseif state.stuck:mistaken() then
    return agent_stuck "too many replies in a row had nothing but mistaken calls"
  end
end

local function turn(state)
  local talk = state.conversation
  local fresh = talk.fresh
  talk.fresh = {}
  local reply, failure = exchange.next(state, fresh)
  if not reply then return failure end
  local run, model = state.run, state.session.model
  local is_of_earlier_run = not run.recording and run.history.exchanges[state.number] -- which logged it
  if is_of_earlier_run then run.record:count_request(model, reply) else exchange.replied(run, model, reply) end
  remember(state, reply)
  state.without_call = not (reply.tool_calls and #reply.tool_calls > 0 and reply.done_reason ~= "length")
  return (state.without_call and without_calls or with_calls)(state, reply)
end

--- Counters begin anew. Each call must have an answer, also those after the one with which the job had ended.
local function resume(state, why)
  local messages, at = state.conversation.messages, state.conversation:last_exchange()
  local answered = #messages - at
  for i, call in ipairs(messages[at].tool_calls or {}) do
    if i > answered then answer(state, call, phrases.not_done) end
  end
  state.stuck, state.ending = stuck.new(), finish.new()
  local last, told = messages[#messages], phrases.resumed:format(why)
  if last.role == "assistant" then
    tell(state, told)
  else
    last.content = last.content .. "\n\n" .. told
  end
end

--- What had ended an earlier run ends this one no more.
local function next_turn(state)
  local why, number = exchange.resumed(state), state.number
  if why then resume(state, why) end
  local failure = interrupt.reason() or turn(state)
  local is_past = failure and not interrupt.reason() and state.number > number and exchange.resumed(state)
  return not is_past and failure or nil
end

--- Bytes and tokens of an answer: two must fit beside the system text and the task.
local function shown_limits(state)
  local room = exchange.room(state) - state.conversation:total()
  return math.min(facts.MOST_SHOWN, state.run.job.constraints.max_output_bytes), math.max(LEAST_SHOWN, room // 3)
end

local function begin(run, session, gateway_tools, extras)
  local offered, by_name, accepted = tools.list(run.catalogue, gateway_tools, run.job, extras.has_todo)
  ---@type agent.state
  local state = {
    run = run, session = session, tools = by_name, accepted = accepted, offered = offered, has_todo = extras.has_todo,
    conversation = conversation.new(tools.cost(offered)), stuck = stuck.new(), ending = finish.new(), number = 0,
    status_of = {}, status_tokens = 0,
  }
  state.conversation:add { role = "system", content = prompt.system(run.job, extras) }
  tell(state, prompt.opening(run.job, extras))
  state.outputs = outputs.new(run.result_directory, shown_limits(state))
  return state
end

---What the model is told besides the job. A replay and a resumed run take it from the journal.
---@param run run
---@param session { context_length: integer }
---@param instructions? string the gateway's
---@param has_todo boolean
---@return sba.prompt.extras
function agent.extras(run, session, instructions, has_todo)
  local told = (run.recording or run.history).session
  if not (told and told.facts) then
    told = { facts = facts.of(run, session.context_length), agents_md = prompt.agents_md(run, session.context_length) }
  end
  return {
    facts = told.facts, agents_md = told.agents_md,
    missing_skills = run.missing_skills, instructions = instructions, answer_schema = run.job.inference and run.job.inference.answer_schema,
    has_todo = has_todo,
  }
end

local function connect(run)
  if run.recording then return run.recording.session or { model = "recorded", context_length = RECORDED_CONTEXT } end
  if not run.job.inference then
    return nil, { code = "inference_unavailable", message = "the job asks for an agent, but has no inference.allowed_models" }
  end
  return exchange.connect(run, run.job.inference.allowed_models)
end

---@param run run
---@return failure?
function agent.run(run)
  local session, failure = connect(run)
  if not session then return failure end
  local has_todo = #run.todo.items > 0 or session.context_length >= ROOMY
  local gateway_tools, instructions = tools.of_gateway(run, session.context_length - exchange.reserve(session), has_todo)
  local extras = agent.extras(run, session, instructions, has_todo)
  run.context.words = phrases
  run.context.shell = process.find("bash", run.environment.PATH)
  run:emit("model.session", {
    model = session.model, context_length = session.context_length, tools = #gateway_tools > 0 and json.array(gateway_tools) or nil,
    instructions = extras.instructions, facts = extras.facts, agents_md = extras.agents_md,
  })
  local state = begin(run, session, gateway_tools, extras)
  repeat failure = next_turn(state) until failure or state.ending.is_over
  run.record.final_answer = state.ending.answer
  return failure and finish.failure(state, failure)
end

return agent
