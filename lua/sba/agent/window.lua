-- SPDX-License-Identifier: Apache-2.0
-- How a request fits the model's window: the conversation is shortened until prompt and reply
-- have room. Where the server refuses the size all the same, the next one asks for a shorter
-- reply, or the conversation becomes shorter; or there is none.

local client = require "sba.agent.client"
local fail = require "sba.util.fail"
local prompt = require "sba.agent.prompt"
local tools = require "sba.agent.tools"

local window = {}

-- Times that a prompt is shortened because its server refused it.
local MOST_CUTS <const> = 5
local SHORTER <const> = 7 / 8 -- of the prompt, where the server gives no count
local TOO_LARGE <const> = "the job's text and the last exchange do not fit into the model's context "
  .. "of %d tokens; use a model with a larger one"

-- Tokens
local ROOMY <const> = 8192 -- of a reply where there is room
local LONGEST_REPLY <const> = 32768
-- Where the conversation cannot be shortened further.
local LEAST_REPLY <const> = 256
-- Of a reply that is shorter because the server refused the size.
local LEAST_ASKED <const> = 1024
-- By so much a prompt that was counted may differ when it is sent again.
local MARGIN <const> = 32
local SMALL_WINDOW <const> = 8192

---@param session { context_length: integer }
---@return integer tokens for the reply, while there is something to shorten
function window.reserve(session)
  local size = session.context_length
  return size < SMALL_WINDOW and size // 5 or math.min(ROOMY, size // 4)
end

---@param session { context_length: integer }
---@return integer tokens for tools and conversation
function window.space(session) return session.context_length - window.reserve(session) end

--- About half of the window, or what the prompt leaves, less a part: its tokens are an estimate.
--- For example, 16,384 of a window of 32,768 after a prompt of 8,000; after one of 24,000 it is 8,018
--- (32,768 - 24,000 - 750).
local function longest_reply(size, prompt_tokens)
  local room = size - prompt_tokens - prompt_tokens // 32
  return math.max(LEAST_REPLY, math.min(room, math.max(ROOMY, size // 2), LONGEST_REPLY))
end

---@param state agent.state
---@return integer tokens for the messages
function window.room(state)
  local session = state.session
  local beside = state.conversation.tools + state.status_tokens
  return window.space(session) - beside
end

local function too_large(session)
  return { code = "agent_stuck", message = TOO_LARGE:format(session.context_length) }
end

---@class window.plan how a request fits: tokens
---@field room integer for the messages
---@field prompt? integer of the last request, an estimate
---@field longest? integer of the last request's reply: what the prompt leaves
---@field reply? integer at most, where a shorter one is asked for
---@field cuts integer how often the server refused the size

local function asked_reply(plan) return math.min(plan.longest, plan.reply or math.huge) end

local fitted

--- The request of a plan, or the failure that there is none. is_cut: the conversation must become
--- shorter.
local function request(state, plan, is_cut)
  local talk, run, session = state.conversation, state.run, state.session
  local scarce, items = client.scarce(run), state.has_todo and run.todo.items
  local status
  -- Without one the server has the whole beginning of the next prompt in its cache, the last reply too.
  if items or scarce then status = prompt.status(run:seconds_left(), items, scarce) end
  state.status_tokens = talk:text(status or "")
  local room = window.room(state)
  local before, after = talk:fit(math.min(room, plan.room))
  local is_cut_now = after < before
  if is_cut_now then run:emit("model.compacted", { tokens_before = before, tokens_after = after }) end
  if is_cut_now or state.outputs.has_cut then tools.offer(state, "read_output") end
  -- What cannot be shortened further takes from the reply's room, down to the least.
  local most_room = math.max(room, room + window.reserve(session) - LEAST_REPLY)
  if after > most_room or is_cut and after == before then return nil, too_large(session) end
  plan.prompt = after + talk.tools + state.status_tokens
  plan.longest = longest_reply(session.context_length, plan.prompt)
  return {
    messages = talk.messages, status = status, tools = state.offered, accepted = state.accepted,
    temperature = state.detector:temperature(), max_tokens = asked_reply(plan),
    fit = function(sizes, failure) return fitted(state, plan, sizes, failure) end,
  }
end

--- Tokens that the reply may have instead, if the server's refusal may be about it: what the
--- window leaves beside the prompt, or, where there are no numbers, a quarter, once. For example, a
--- window of 8,192 leaves 1,160 beside a prompt of 7,000 (32 are a margin); beside one of 8,000 the
--- conversation must become shorter.
local function shorter_reply(state, plan, sizes)
  if sizes.window and sizes.prompt then
    local left = math.min(sizes.window, state.session.context_length) - sizes.prompt
    return left >= LEAST_REPLY and math.max(LEAST_REPLY, left - MARGIN) or nil
  end
  if plan.reply or not sizes.is_of_reply or sizes.excess then return nil end
  return math.max(LEAST_ASKED, plan.longest // 4)
end

--- Some servers count the prompt with the reply that was asked for: what is nearer to the estimate.
local function without_reply(plan, sizes)
  local count = sizes.prompt
  if not sizes.may_be_sum then return count end
  local rest, guess = count - asked_reply(plan), plan.prompt
  return math.abs(rest - guess) < math.abs(count - guess) and rest or count
end

--- The next request after one whose size was refused: it asks for less, or the conversation is
--- shorter. A window that is smaller than was known is both.
function fitted(state, plan, sizes, failure)
  local session = state.session
  sizes.prompt = without_reply(plan, sizes)
  local reply = shorter_reply(state, plan, sizes)
  plan.cuts = plan.cuts + 1
  if plan.cuts > MOST_CUTS then return nil, too_large(session) end
  state.run:warn("model.context_cut", failure.message, { model = session.model })
  local is_new_window = sizes.window and sizes.window < session.context_length
  if is_new_window then session.context_length = sizes.window end
  local talk = state.conversation
  talk:learn(state.status_tokens, sizes.prompt, session.supports_tools == false)
  plan.reply = reply or plan.reply
  if reply then return request(state, plan) end
  local has_no_count = not (sizes.excess or sizes.prompt or is_new_window)
  local room = talk:total() - (sizes.excess or 0)
  if has_no_count then room = room * SHORTER // 1 end
  plan.room = room - 1
  return request(state, plan, not is_new_window)
end

---Asks the model for its next reply. Raises the failure that there is none.
---@param state agent.state
---@return model.reply
function window.ask(state)
  local run, session = state.run, state.session
  local wanted = fail.check(request(state, { room = math.huge, cuts = 0 }))
  run.todo.checkpoint:flush()
  run.checkpoint:hurry()
  run.progress:model(session.model)
  local reply, failure = client.ask(run, session, wanted)
  run.progress:finish()
  fail.check(reply, failure)
  local count = not reply.is_estimated and reply.prompt_tokens or nil
  state.conversation:learn(state.status_tokens, count, session.supports_tools == false)
  return reply
end

return window
