-- SPDX-License-Identifier: Apache-2.0
-- The turns of an agent: transcript has the next reply, of the model or of an earlier run; calls
-- does what it says; loop_detector notices circles, finish judges the end.

local calls = require "sba.agent.calls"
local failures = require "sba.result.failure"
local finish = require "sba.agent.finish"
local quoted = require "sba.util.humanize".quoted
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local loop_detector = require "sba.agent.loop_detector"
local lpeg = require "lpeg"
local prompts = require "sba.agent.prompts"
local transcript = require "sba.agent.transcript"

local loop = {}

---@class agent.state what the turns of a job share
---@field run run
---@field session model.session in a replay, what the recording says of it
---@field tools table<string, agent.tool> all that are accepted, by name
---@field accepted agent.tool[] the same
---@field offered agent.tool[] those that the model is shown
---@field has_todo boolean the model keeps the todo list
---@field conversation agent.conversation
---@field number integer exchanges so far; set by transcript
---@field outputs table sba.agent.outputs
---@field detector table sba.agent.loop_detector; new at a resume
---@field ending agent.ending set by finish; new at a resume
---@field unreached? table entry of the last command or gateway call, if it lacked the network; set by finish
---@field status_of table<string, string> of steps and checks, by id; set by finish
---@field has_acted? boolean a step was run; set by calls
---@field step_arguments string[] JSON of each step's, or of its path; set by calls
---@field has_failed_calls? boolean a call could not be carried out
---@field failed_now? string tool of the last call of this reply that failed
---@field failed_last? string tool of the last call of all, if it failed; finish is none
---@field status_tokens integer of the last request's end; set by window

local function end_stuck(why, gave_up)
  local message = "the model repeats itself without progress: " .. why
  error({ code = "agent_stuck", message = message, gave_up = gave_up }, 0)
end

local function tell(state, content) state.conversation:add { role = "user", content = content } end

-- Blanks, and characters that nobody sees: soft hyphen, zero width.
local unseen = lpeg.S " \t\n\v\f\r" + "\u{A0}" + "\u{AD}" + "\u{200B}" + "\u{200C}"
  + "\u{200D}" + "\u{2060}" + "\u{3000}" + "\u{FEFF}"
local nothing = unseen ^ 0 * -1
local usual_ends <const> = { stop = true, length = true, tool_calls = true }

--- Whether nobody would see anything of a text.
local function is_empty(content) return lpeg.match(nothing, content or "") ~= nil end

--- What is wrong with a reply without a call, and what the model is told of it; nil: nothing is.
local function flaw_of(state, reply)
  local unreadable, reason, content = reply.unreadable, reply.done_reason or "stop", reply.content
  if reason == "repetition" then
    state.run:warn("model.repetition", "the reply was stopped: " .. unreadable, { model = state.session.model })
    return "unreadable", prompts.repeated:format(unreadable)
  end
  -- Prose is an answer, also where the reply had to be a call as text.
  local is_meant = reply.is_like_a_call or content:find '{%s*["\']'
  if unreadable and is_meant then return "unreadable", prompts.unreadable:format(unreadable) end
  if reason == "length" then return "unreadable", prompts.cut_off end
  if not is_empty(content) then return nil end
  if not usual_ends[reason] then return "silent", prompts.ended_early:format(quoted(reason)) end
  if content:find "%S" then return "silent", prompts.invisible end
  return "silent", is_empty(reply.thinking) and prompts.empty or prompts.only_thought
end

local FLAWS <const> = { unreadable = "could not be read", silent = "said nothing" }
local IN_A_ROW <const> = "three replies in a row %s; it would have been told: %s"

local function without_calls(state, reply)
  local flaw, told = flaw_of(state, reply)
  state.has_failed_calls = state.has_failed_calls or reply.is_like_a_call
  if state.detector:replied(flaw) then end_stuck(IN_A_ROW:format(FLAWS[flaw], told)) end
  local as_text = reply.unreadable ~= nil
  if flaw == "silent" then told = told .. " " .. finish.go_on(state, as_text) end
  if not flaw then told = finish.answered(state, reply.content, as_text) end
  tell(state, told)
end

local function answer(state, call, text, step)
  local id, name = call.id, call.name
  state.conversation:add { role = "tool", tool_call_id = id, tool_name = name, content = text, step = step }
end

--- Servers refuse an empty reply in the history, and a call of a tool that was not offered to
--- them: words take the place of these, for example "(a call of web_search)".
local function remember(state, reply)
  local known, content, words = json.array {}, reply.content, prompts.said_nothing
  for _, call in ipairs(reply.tool_calls or {}) do
    words = prompts.called_unknown:format(call.name)
    if state.tools[call.name] then known[#known + 1] = call end
  end
  if is_empty(content) then content = #known == 0 and words or "" end
  state.conversation:add {
    role = "assistant", content = content, tool_calls = known, thinking = reply.thinking,
    thinking_parts = reply.thinking_parts, said = reply.said,
  }
end

--- apart: answers to calls that are not in the history.
local function answer_call(state, call, apart)
  local result, name = calls.perform(state, call), call.name
  local given, told = result.arguments or call.arguments, result.text
  local verdict = state.detector:answered(name, given, result.answer or told, result)
  if verdict == "warn" then told = told .. prompts.in_circles end
  if state.tools[name] then
    answer(state, call, told, result.step)
  else
    apart[#apart + 1] = told
  end
  if verdict == "end" then
    end_stuck("the same call of " .. name .. " gave the same result again and again", true)
  end
  return result
end

local function with_calls(state, reply)
  local all_mistaken, apart = true, {}
  state.ending.refused.prose, state.failed_now = 0, nil
  for _, call in ipairs(reply.tool_calls) do
    local result = answer_call(state, call, apart)
    if result.failed then state.failed_now = call.name end
    if call.name ~= "finish" then state.failed_last = result.failed and call.name or nil end
    all_mistaken = all_mistaken and result.mistaken
    state.has_failed_calls = state.has_failed_calls or result.mistaken
    if state.ending.is_over then return end
  end
  if #apart > 0 then tell(state, table.concat(apart, "\n")) end
  if state.detector:replied(all_mistaken and "mistaken" or nil) then
    end_stuck "too many replies in a row had nothing but mistaken calls"
  end
end

local function turn(state)
  local reply = transcript.next(state, state.conversation:fresh())
  -- A model may take up what stands for an empty reply in its history.
  if reply.content == prompts.said_nothing then reply.content = "" end
  remember(state, reply)
  if #(reply.tool_calls or {}) > 0 then with_calls(state, reply) else without_calls(state, reply) end
end

--- Counters begin anew. Each call must have an answer, also those after the one with which the
--- job had ended.
local function resume(state, why)
  local messages, at = state.conversation.messages, state.conversation:last_exchange()
  local answered = #messages - at
  for i, call in ipairs(messages[at].tool_calls or {}) do
    if i > answered then answer(state, call, prompts.not_done) end
  end
  state.detector, state.ending = loop_detector.new(), finish.new()
  tell(state, prompts.resumed:format(why))
end

--- Returns the failure that ends the job; nil: it goes on, or ended well. The failure that had ended
--- an earlier run, before it was resumed, ends this one no more: its turn is only taken again. But
--- nothing comes after a signal, the deadline, or a turn without a reply.
local function next_turn(state)
  local why, number = transcript.resumed(state), state.number
  if why then resume(state, why) end
  local failure, is_done = interrupt.reason(), nil
  if not failure then is_done, failure = xpcall(turn, failures.traced, state) end
  if is_done or interrupt.reason() or state.number == number then return failure end
  return not transcript.resumed(state) and failure or nil
end

---@param state agent.state
---@return failure? failure nil: the job ended well
function loop.run(state)
  local failure
  repeat failure = next_turn(state) until failure or state.ending.is_over
  return failure and finish.failure(state, failure)
end

return loop
