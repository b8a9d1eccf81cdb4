-- SPDX-License-Identifier: Apache-2.0
-- One request to the model and its reply: asked with as much of the conversation as the model's context holds beside the reply, and
-- written to the journal; or taken from a recording. A replay holds each request against the recorded one and stops at the first
-- difference; a resume takes the journal as far as it goes.

local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local lines = require "sba.util.excerpt".lines
local models = require "sba.agent.models"
local prompt = require "sba.agent.prompt"
local stuck = require "sba.agent.stuck"

local exchange = {}
exchange.__index = exchange

local MOST_CUTS <const> = 5 -- times that a prompt is made smaller because its server refused it
local SHORTER <const> = 7 / 8 -- of it, where the server does not say how many tokens it had
local ROOMY <const> = 8192 -- tokens of a reply: as many are left to it where there is room
local LONGEST_REPLY <const> = 32768 -- tokens; models and servers have bounds of their own
local LEAST_REPLY <const> = 256 -- tokens, for which a job goes on where its conversation can be shortened no more
local SMALL_WINDOW <const> = 8192 -- tokens, below which a fifth is left to the reply, else a quarter at least

-- Asking ------------------------------------------------------------------------------------------------------------------

---What is left to the reply while there is something to shorten.
---@param session { context_length: integer }
---@return integer tokens
function exchange.reserve(session)
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
function exchange.room(state)
  return state.session.context_length - exchange.reserve(state.session) - state.conversation.tools - state.status_tokens
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
  local room = exchange.room(state)
  local before, after = talk:fit(math.min(room, most or room))
  if after < before then state.run:emit("model.compacted", { tokens_before = before, tokens_after = after }) end
  local most_room = math.max(room, room + exchange.reserve(state.session) - LEAST_REPLY)
  if after > most_room or most and after == before then return nil, too_large(state) end
  return {
    messages = talk.messages, status = status, tools = state.offered, accepted = state.accepted,
    tool_choice = state.without_call and "required" or nil, temperature = state.stuck:temperature(),
    max_tokens = longest_reply(size, after + talk.tools + state.status_tokens),
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
  run.todo.checkpoint:flush()
  run.checkpoint:hurry()
  run.live:model(session.model)
  local reply, failure = models.ask(run, session, wanted)
  run.live:finish()
  return reply, failure
end

---Asks the model. Where its server says that the prompt did not fit, it is asked again with a shorter conversation.
---@param state agent.state
---@return inference.reply?, table? failure
function exchange.ask(state)
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

-- Recordings --------------------------------------------------------------------------------------------------------------

---@param run run
function exchange.new(run)
  return setmetatable({ past = run.recording or run.past, replay = run.recording ~= nil, run = run, number = 0 }, exchange)
end

---Whether an earlier run ended after this exchange, and the next one went on.
---@return string? why it had ended
function exchange:resumed()
  local why
  for _, one in ipairs(self.number > 0 and self.past.resumes or {}) do
    if one.after == self.number then why = one.why end
  end
  return why
end

--- The number of the first line in which two texts differ, and these lines.
local function first_difference(expected, actual)
  local next_line, at_left, at_right, left, right = lines(""), 1, 1
  local number = 0
  repeat
    at_left, left = next_line(expected, at_left)
    at_right, right = next_line(actual, at_right)
    number = number + 1
  until left ~= right or not left
  return number, (left or "the end"):sub(1, 200), (right or "the end"):sub(1, 200)
end

--- Why a request is not the recorded one, or nil.
local function difference(number, recorded, fresh)
  for i = 1, recorded.messages and math.max(#recorded.messages, #fresh) or 0 do
    local was, is = recorded.messages[i] or {}, fresh[i] or {}
    local where = ("exchange %d, message %d"):format(number, i)
    if was.role ~= is.role then
      return ("%s: the recording has %s, this run has %s"):format(
        where, was.role and "one of " .. was.role or "none", is.role and "one of " .. is.role or "none")
    end
    local a, b = was.content or "", is.content or ""
    if a ~= b then a, b = stuck.without_times(a), stuck.without_times(b) end
    if a ~= b then
      return ('%s (%s), line %d: the recording has "%s", this run has "%s"'):format(where, is.role, first_difference(a, b))
    end
  end
end

local function from_recording(self, number, recorded, fresh)
  local found = self.replay and difference(number, recorded, fresh)
  if not found then return recorded.reply end
  local version = (self.past.job or {}).version
  version = version and " of version " .. version or ""
  return nil, { code = "internal_error", message = ("the replay differs from the recording%s: %s"):format(version, found) }
end

---Gives the reply to a request.
---@param fresh table[] the messages that are new since the last exchange
---@param ask fun(): table?, table? asks the model: reply, or nil and a failure
---@return table? reply, native.failure? failure
function exchange:next(fresh, ask)
  local number = self.number + 1
  local reply, failure
  local recorded = self.past.exchanges[number]
  if recorded then
    reply, failure = from_recording(self, number, recorded, fresh)
  elseif self.replay then
    local words = "the recording ends after %d replies, but this run needs another"
    failure = { code = "internal_error", message = words:format(self.number) }
  else
    reply, failure = ask()
  end
  if not reply then return nil, failure end
  self.number = number
  if self.replay or not recorded then
    self.run:emit("model.exchange", { number = number, messages = json.array(fresh), reply = reply })
  end
  return reply
end

return exchange
