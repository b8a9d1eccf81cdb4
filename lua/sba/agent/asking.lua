-- SPDX-License-Identifier: Apache-2.0
-- Asks the model for its next reply, with as much of the conversation as its context holds beside the reply.

local interrupt = require "native.interrupt"
local models = require "sba.agent.models"
local prompt = require "sba.agent.prompt"

local asking = {}

local MOST_CUTS <const> = 5 -- times that a prompt is made smaller because its server refused it
local SHORTER <const> = 7 / 8 -- of it, where the server does not say how many tokens it had
local ROOMY <const> = 8192 -- tokens of a reply: as many are left to it where there is room
local LONGEST_REPLY <const> = 32768 -- tokens; models and servers have bounds of their own
local LEAST_REPLY <const> = 256 -- tokens, for which a job goes on where its conversation can be shortened no more
local SMALL_WINDOW <const> = 8192 -- tokens, below which a fifth is left to the reply, else a quarter at least

---What is left to the reply while there is something to shorten.
---@param session { context_length: integer }
---@return integer tokens
function asking.reserve(session)
  local size = session.context_length
  return size < SMALL_WINDOW and size // 5 or math.min(ROOMY, size // 4)
end

--- About half of the window, or what the prompt leaves of it. Part of that stays free, for the prompt's tokens are an estimate.
local function longest_reply(size, prompt_tokens)
  local room = size - prompt_tokens - prompt_tokens // 32
  return math.max(LEAST_REPLY, math.min(room, math.max(ROOMY, size // 2), LONGEST_REPLY))
end

---What is left to the messages.
---@param state agent.state
---@return integer tokens
function asking.room(state)
  return state.session.context_length - asking.reserve(state.session) - state.conversation.tools - state.status_tokens
end

local function too_large(state)
  return {
    code = "agent_stuck",
    message = ("the job's text and the last exchange do not fit into the model's context of %d tokens; use a model with a larger one")
      :format(state.session.context_length),
  }
end

--- @param most? number tokens that the conversation is to have at most; fewer than it has: the server refused it
local function request(state, most)
  local talk, size = state.conversation, state.session.context_length
  local status = prompt.status(interrupt.remaining(), state.has_todo and state.run.todo.items, models.scarce(state.run))
  state.status_tokens = talk:text(status)
  local room = asking.room(state)
  local before, after = talk:fit(math.min(room, most or room))
  if after < before then state.run:emit("model.compacted", { tokens_before = before, tokens_after = after }) end
  local most_room = math.max(room, room + asking.reserve(state.session) - LEAST_REPLY)
  if after > most_room or most and after == before then return nil, too_large(state) end
  return {
    messages = talk.messages, status = status, tools = state.shown, accepted = state.accepted,
    tool_choice = state.without_call and "required" or nil, temperature = state.stuck:temperature(),
    max_tokens = longest_reply(size, after + talk.tools + state.status_tokens), on_text = state.run.context.tick,
  }
end

--- The server has counted the prompt, whether it took it or not.
local function learn(state, count)
  local as_text = state.session.supports_tools == false
  state.conversation:learn(state.status_tokens, count, as_text ~= state.as_text)
  state.as_text = as_text
end

local function send(state, wanted)
  local run, session = state.run, state.session
  run.log:event("info", "model.request", { model = session.model, provider = session.dialect.provider, messages = #wanted.messages })
  run.todo:flush()
  run.checkpoint:hurry()
  run.live:model(session.model)
  local reply, failure = session:chat(wanted)
  run.live:finish()
  if failure and failure.used then models.count(run, session.model, failure.used) end
  return reply, failure
end

---Asks the model. Where its server says that the prompt did not fit, it is asked again with a shorter conversation.
---@param state agent.state
---@return inference.reply?, table? failure
function asking.ask(state)
  local exceeded = models.exceeded(state.run)
  if exceeded then return nil, exceeded end
  local most
  for _ = 1, MOST_CUTS do
    local wanted, too_long = request(state, most)
    if not wanted then return nil, too_long end
    local reply, failure = send(state, wanted)
    if reply then
      learn(state, not reply.is_estimated and reply.prompt_tokens or nil)
      return reply
    end
    if failure.code ~= "context_cut" then return nil, failure end
    state.run.log:event("warning", "model.context_cut", { model = state.session.model, error = failure.message })
    learn(state, failure.prompt_tokens)
    most = (failure.prompt_tokens and 1 or SHORTER) * state.conversation:total() - 1
  end
  return nil, too_large(state)
end

return asking
