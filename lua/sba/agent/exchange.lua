-- SPDX-License-Identifier: Apache-2.0
-- Requests to models and their replies, counted for the result and bounded by the job. The journal has each exchange of an agent: a
-- replay stops at the first request that differs from it, a resume takes it as far as it goes.

local inference = require "sba.model"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local lines = require "sba.util.excerpt".lines
local prompt = require "sba.agent.prompt"
local stuck = require "sba.agent.stuck"

local exchange = {}

local SCARCE <const> = 5 -- a fifth is left
local NOTHING <const> = { requests = 0, prompt_tokens = 0, completion_tokens = 0 }
local MOST_CUTS <const> = 5 -- times that a prompt is shortened because its server refused it
local SHORTER <const> = 7 / 8 -- of it, where the server gives no count
local ROOMY <const> = 8192 -- tokens of a reply where there is room
local LONGEST_REPLY <const> = 32768 -- tokens
local LEAST_REPLY <const> = 256 -- tokens, where the conversation cannot be shortened further
local SMALL_WINDOW <const> = 8192 -- tokens

-- Any request

---@param run run
---@param allowed_models string[]
---@return inference.session?, failure?
function exchange.connect(run, allowed_models)
  local http, failure = run:client()
  if not http then return nil, { code = "inference_unavailable", message = failure.message } end
  return inference.connect {
    environment = run.environment, http = http, allowed_models = allowed_models, source = run.job.inference.source,
    on_wait = function(problem, seconds) run.log:event("warning", "model.retry", { error = problem.message, seconds = seconds }) end,
  }
end

--- `most` is nil where the job has no bound.
local function bounds(run)
  local wanted, used = run.job.inference or {}, run.record.inference or NOTHING
  return {
    { name = "requests", field = "max_requests", most = wanted.max_requests, used = used.requests },
    { name = "tokens", field = "max_total_tokens", most = wanted.max_total_tokens, used = used.prompt_tokens + used.completion_tokens },
  }
end

---@param run run
---@return failure? failure why no further request may be sent
function exchange.exceeded(run)
  for _, bound in ipairs(bounds(run)) do
    if bound.most and bound.used >= bound.most then
      local message = "the job's inference.%s is reached: %d of %d %s are used, and another request is needed"
      return { code = "constraint_violation", message = message:format(bound.field, bound.used, bound.most, bound.name) }
    end
  end
end

---@param run run
---@return "time"|"requests"|"tokens"|nil what is nearly used up
function exchange.scarce(run)
  local remaining = interrupt.remaining()
  if remaining and remaining <= run.job.constraints.max_runtime_seconds / SCARCE then return "time" end
  for _, bound in ipairs(bounds(run)) do
    if bound.most and bound.most - bound.used <= math.max(1, bound.most / SCARCE) then return bound.name end
  end
end

---What it used is counted by replied, or at once where the job's time or a signal ended it.
---@param run run
---@param session inference.session
---@param request inference.request
---@return inference.reply?, inference.failure?
function exchange.send(run, session, request)
  run.log:event("info", "model.request", { model = session.model, provider = session.dialect.provider, messages = #request.messages })
  request.on_text = run.context.tick
  local reply, failure = session:chat(request)
  if failure and failure.used then run.record:count_request(session.model, failure.used) end
  return reply, failure
end

---@param run run
---@param model string
---@param reply inference.reply
function exchange.replied(run, model, reply)
  run.record:count_request(model, reply)
  run.log:event("info", "model.response", {
    model = model, calls = reply.tool_calls and #reply.tool_calls or 0, prompt_tokens = reply.prompt_tokens,
    completion_tokens = reply.completion_tokens, duration_ms = reply.duration_ms,
  })
end

-- An agent's request

---@param session { context_length: integer }
---@return integer tokens for the reply, while there is something to shorten
function exchange.reserve(session)
  local size = session.context_length
  return size < SMALL_WINDOW and size // 5 or math.min(ROOMY, size // 4)
end

--- About half of the window, or what the prompt leaves, less a part: its tokens are an estimate.
local function longest_reply(size, prompt_tokens)
  local room = size - prompt_tokens - prompt_tokens // 32
  return math.max(LEAST_REPLY, math.min(room, math.max(ROOMY, size // 2), LONGEST_REPLY))
end

---@param state agent.state
---@return integer tokens for the messages
function exchange.room(state)
  return state.session.context_length - exchange.reserve(state.session) - state.conversation.tools - state.status_tokens
end

local function too_large(state)
  local message = "the job's text and the last exchange do not fit into the model's context of %d tokens; use a model with a larger one"
  return { code = "agent_stuck", message = message:format(state.session.context_length) }
end

--- most: tokens of the conversation; the server refused more.
local function request(state, most)
  local talk, run, session = state.conversation, state.run, state.session
  local status = prompt.status(interrupt.remaining(), state.has_todo and run.todo.items, exchange.scarce(run))
  state.status_tokens = talk:text(status)
  local room = exchange.room(state)
  local before, after = talk:fit(math.min(room, most or room))
  if after < before then run:emit("model.compacted", { tokens_before = before, tokens_after = after }) end
  local most_room = math.max(room, room + exchange.reserve(session) - LEAST_REPLY)
  if after > most_room or most and after == before then return nil, too_large(state) end
  return {
    messages = talk.messages, status = status, tools = state.offered, accepted = state.accepted,
    tool_choice = state.without_call and "required" or nil, temperature = state.stuck:temperature(),
    max_tokens = longest_reply(session.context_length, after + talk.tools + state.status_tokens),
  }
end

--- The server has counted the prompt, whether it took it or not.
local function learn(state, count)
  local as_text = state.session.supports_tools == false
  state.conversation:learn(state.status_tokens, count, as_text ~= state.as_text)
  state.as_text = as_text
end

--- Where the server says that the prompt did not fit, it is asked again with a shorter conversation.
local function ask(state)
  local run, session, most = state.run, state.session, nil
  local exceeded = exchange.exceeded(run)
  if exceeded then return nil, exceeded end
  for _ = 1, MOST_CUTS do
    local wanted, too_long = request(state, most)
    if not wanted then return nil, too_long end
    run.todo.checkpoint:flush()
    run.checkpoint:hurry()
    run.live:model(session.model)
    local reply, failure = exchange.send(run, session, wanted)
    run.live:finish()
    if reply then
      learn(state, not reply.is_estimated and reply.prompt_tokens or nil)
      return reply
    end
    if failure.code ~= "context_cut" then return nil, failure end
    run.log:event("warning", "model.context_cut", { model = session.model, error = failure.message })
    learn(state, failure.prompt_tokens)
    most = (failure.prompt_tokens and 1 or SHORTER) * state.conversation:total() - 1
  end
  return nil, too_large(state)
end

-- Recordings

---@param state agent.state
---@return string? why an earlier run ended after the last exchange
function exchange.resumed(state)
  local why
  for _, one in ipairs(state.number > 0 and (state.run.recording or state.run.history).resumes or {}) do
    if one.after == state.number then why = one.why end
  end
  return why
end

--- The line's number, and both lines.
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

local function kind_of(message) return message.role and "one of " .. message.role or "none" end

local function difference(number, recorded, fresh)
  for i = 1, recorded.messages and math.max(#recorded.messages, #fresh) or 0 do
    local was, is = recorded.messages[i] or {}, fresh[i] or {}
    local where = ("exchange %d, message %d"):format(number, i)
    if was.role ~= is.role then return ("%s: the recording has %s, this run has %s"):format(where, kind_of(was), kind_of(is)) end
    local a, b = was.content or "", is.content or ""
    if a ~= b then a, b = stuck.without_times(a), stuck.without_times(b) end
    if a ~= b then
      return ('%s (%s), line %d: the recording has "%s", this run has "%s"'):format(where, is.role, first_difference(a, b))
    end
  end
end

local function mismatch(recording, number, recorded, fresh)
  if not recorded then return ("the recording ends after %d replies, but this run needs another"):format(number - 1) end
  local found, version = difference(number, recorded, fresh), (recording.job or {}).version
  return found and ("the replay differs from the recording%s: %s"):format(version and " of version " .. version or "", found)
end

--- After its last exchange an earlier run has only the checks of its end, which run again at this one's.
local function forget_checks(run)
  local history, done = run.history, run.record.count
  for index = #history.entries, done + 1, -1 do history.entries[index] = nil end
  for index, step in pairs(history.unfinished) do
    if index > done and step.check then history.unfinished[index] = nil end
  end
end

---@param state agent.state
---@param fresh table[] the messages since the last exchange
---@return inference.reply?, failure?
function exchange.next(state, fresh)
  local run, number = state.run, state.number + 1
  local recorded = (run.recording or run.history).exchanges[number]
  local problem = run.recording and mismatch(run.recording, number, recorded, fresh)
  if problem then return nil, { code = "internal_error", message = problem } end
  local reply, failure = recorded and recorded.reply, nil
  if not recorded then
    forget_checks(run)
    reply, failure = ask(state)
  end
  if not reply then return nil, failure end
  state.number = number
  if run.recording or not recorded then
    run:emit("model.exchange", { number = number, messages = json.array(fresh), reply = reply })
  end
  return reply
end

return exchange
