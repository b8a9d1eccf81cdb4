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
local LEAST_ASKED <const> = 1024 -- tokens of a reply that is shorter because the server refused the size
local MARGIN <const> = 32 -- tokens by which a prompt that was counted may differ when it is sent again
local SMALL_WINDOW <const> = 8192 -- tokens

-- Any request

--- The job's time was up while an endpoint had not answered since the last reply: it may be back later.
local function unanswered(failure)
  if failure.unanswered and failure.code == "timeout" then
    failure.code, failure.message = "inference_unavailable", "no answer from a model: " .. failure.message
  end
  return failure
end

---@param run run
---@param allowed_models string[]
---@return inference.session?, failure?
function exchange.connect(run, allowed_models)
  local http, failure = run:client()
  if not http then return nil, { code = "inference_unavailable", message = failure.message } end
  local session
  session, failure = inference.connect {
    environment = run.environment, http = http, allowed_models = allowed_models, source = run.job.inference.source,
    on_wait = function(problem, seconds)
      run.log:event("warning", "model.retry", { error = problem.message, seconds = seconds })
    end,
    on_move = function(move, problem)
      local fields = { change = move.act, what = move.field or move.tool or move.most, error = problem.message }
      run.log:event("warning", "model.adapted", fields)
    end,
  }
  return session, failure and unanswered(failure)
end

--- `most` is nil where the job has no bound.
local function bounds(run)
  local wanted, used = run.job.inference or {}, run.record.inference or NOTHING
  return {
    { name = "requests", field = "max_requests", most = wanted.max_requests, used = used.requests },
    {
      name = "tokens", field = "max_total_tokens", most = wanted.max_total_tokens,
      used = used.prompt_tokens + used.completion_tokens,
    },
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
  run.log:event("info", "model.request", {
    model = session.model, provider = session.dialect.provider, messages = #request.messages,
  })
  request.on_text = run.context.tick
  local reply, failure = session:chat(request)
  local before = reply and reply.thrown_away
  if before then
    run.record:count_request(session.model, before)
    reply.thrown_away = nil
  end
  if not failure then return reply end
  if failure.used then run.record:count_request(session.model, failure.used) end
  return nil, unanswered(failure)
end

---@param run run
---@param model string
---@param reply inference.reply
function exchange.replied(run, model, reply)
  run.record:count_request(model, reply)
  run.log:event("info", "model.response", {
    model = model, calls = reply.tool_calls and #reply.tool_calls or 0, prompt_tokens = reply.prompt_tokens,
    completion_tokens = reply.completion_tokens, duration_ms = reply.duration_ms, response_model = reply.response_model,
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

---@class exchange.plan how a request fits: tokens
---@field room integer for the messages
---@field reply? integer at most; nil: what the prompt leaves
---@field cuts integer how often the server refused the size
---@field has_less? boolean a shorter reply was asked for

local fitted

--- The request of a plan, or the failure that there is none. is_cut: the conversation must become shorter.
local function request(state, plan, is_cut)
  local talk, run, session = state.conversation, state.run, state.session
  local status = prompt.status(interrupt.remaining(), state.has_todo and run.todo.items, exchange.scarce(run))
  state.status_tokens = talk:text(status)
  local room = exchange.room(state)
  local before, after = talk:fit(math.min(room, plan.room))
  if after < before then run:emit("model.compacted", { tokens_before = before, tokens_after = after }) end
  local most_room = math.max(room, room + exchange.reserve(session) - LEAST_REPLY)
  if after > most_room or is_cut and after == before then return nil, too_large(state) end
  plan.prompt = after + talk.tools + state.status_tokens
  return {
    messages = talk.messages, status = status, tools = state.offered, accepted = state.accepted,
    on_text = run.context.tick,
    tool_choice = state.without_call and "required" or nil, temperature = state.stuck:temperature(),
    max_tokens = math.min(longest_reply(session.context_length, plan.prompt), plan.reply or math.huge),
    fit = function(sizes, failure) return fitted(state, plan, sizes, failure) end,
  }
end

--- The server has counted the prompt, whether it took it or not.
local function learn(state, count)
  local as_text = state.session.supports_tools == false
  state.conversation:learn(state.status_tokens, count, as_text ~= state.as_text)
  state.as_text = as_text
end

--- Tokens that the reply may have instead, if the server's refusal may be about it: what the window leaves beside the
--- prompt, or, where there are no numbers, a quarter, once.
local function shorter_reply(state, plan, sizes)
  local window = sizes.window and sizes.prompt and math.min(sizes.window, state.session.context_length)
  local left = window and window - sizes.prompt
  if left then return left >= LEAST_REPLY and left - math.min(MARGIN, left - LEAST_REPLY) or nil end
  if plan.has_less or not sizes.is_of_reply or sizes.excess then return nil end
  return math.max(LEAST_ASKED, (plan.reply or longest_reply(state.session.context_length, plan.prompt)) // 4)
end

--- The next request after one whose size was refused: it asks for less, or the conversation is shorter. A window that
--- is smaller than was known is both.
function fitted(state, plan, sizes, failure)
  local session, talk = state.session, state.conversation
  local before, reply = talk:total(), shorter_reply(state, plan, sizes)
  plan.cuts = plan.cuts + 1
  if plan.cuts > MOST_CUTS then return nil, too_large(state) end
  state.run.log:event("warning", "model.context_cut", { model = session.model, error = failure.message })
  local is_new_window = sizes.window ~= nil and sizes.window < session.context_length
  session.context_length = math.min(session.context_length, sizes.window or math.huge)
  learn(state, sizes.prompt)
  if reply then
    plan.reply, plan.has_less = reply, true
    return request(state, plan)
  end
  plan.room = talk:total() - 1
  if sizes.excess then
    plan.room = plan.room - sizes.excess
  elseif not sizes.prompt and not is_new_window then
    plan.room = SHORTER * before // 1 - 1
  end
  return request(state, plan, not is_new_window)
end

local function ask(state)
  local run, session = state.run, state.session
  local exceeded = exchange.exceeded(run)
  if exceeded then return nil, exceeded end
  local wanted, too_long = request(state, { room = math.huge, cuts = 0 })
  if not wanted then return nil, too_long end
  run.todo.checkpoint:flush()
  run.checkpoint:hurry()
  run.live:model(session.model)
  local reply, failure = exchange.send(run, session, wanted)
  run.live:finish()
  if not reply then return nil, failure end
  learn(state, not reply.is_estimated and reply.prompt_tokens or nil)
  return reply
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
  if history.count > done then history:forget_entries(done + 1) end
  for index, step in pairs(history.unfinished) do
    if index > done and step.check then history.unfinished[index] = nil end
  end
end

---@param state agent.state
---@param fresh table[] the messages since the last exchange
---@return inference.reply?, failure?
function exchange.next(state, fresh)
  local run, number = state.run, state.number + 1
  local from, recorded, failure = run.recording or run.history, nil, nil
  if number <= #from.exchanges then recorded, failure = from:exchange(number) end
  if failure then return nil, failure end
  local problem = run.recording and mismatch(run.recording, number, recorded, fresh)
  if problem then return nil, { code = "internal_error", message = problem } end
  local reply = recorded and recorded.reply
  for _, call in ipairs(reply and reply.tool_calls or {}) do
    if state.session.ids and call.id then state.session.ids[call.id] = true end -- new calls have other ids
  end
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
