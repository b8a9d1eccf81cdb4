-- SPDX-License-Identifier: Apache-2.0
-- The exchanges of an agent, which the journal has: a replay stops at the first request that
-- differs from its recording, a resume takes them as far as they go. Then the model is asked.

local client = require "sba.agent.client"
local fail = require "sba.util.fail"
local json = require "sba.util.json"
local loop_detector = require "sba.agent.loop_detector"
local tools = require "sba.agent.tools"
local window = require "sba.agent.window"

local transcript = {}

---@param state agent.state
---@return string? why an earlier run ended after the last exchange
function transcript.resumed(state)
  if state.number == 0 then return nil end
  local why
  for _, one in ipairs((state.run.recording or state.run.history).resumes) do
    if one.after == state.number then why = one.why end
  end
  return why
end

local LONGEST_SHOWN <const> = 200 -- bytes of a line

--- The line's number, and both lines.
local function first_difference(recorded, actual)
  local next_left, next_right = recorded:gmatch "[^\n]*", actual:gmatch "[^\n]*"
  local number, left, right = 0
  repeat
    number, left, right = number + 1, next_left(), next_right()
  until left ~= right or not left
  return number, (left or "the end"):sub(1, LONGEST_SHOWN), (right or "the end"):sub(1, LONGEST_SHOWN)
end

local function kind_of(message) return message.role and "one of " .. message.role or "none" end

local ENDED <const> = "the recording ends after %d replies, but this run needs another"
local OTHER_ROLE <const> = "%s: the recording has %s, this run has %s"
local OTHER_LINE <const> = '%s (%s), line %d: the recording has "%s", this run has "%s"'

local function difference(number, before, fresh)
  if not before then return nil end
  for i = 1, math.max(#before, #fresh) do
    local was, is = before[i] or {}, fresh[i] or {}
    local where = ("exchange %d, message %d"):format(number, i)
    if was.role ~= is.role then return OTHER_ROLE:format(where, kind_of(was), kind_of(is)) end
    local a, b = was.content or "", is.content or ""
    if a ~= b then a, b = loop_detector.without_times(a), loop_detector.without_times(b) end
    if a ~= b then return OTHER_LINE:format(where, is.role, first_difference(a, b)) end
  end
end

--- Raises the first difference of a replay.
local function compare(recording, number, recorded, fresh)
  if not recorded then fail.raise("internal_error", ENDED, number - 1) end
  local found = difference(number, recorded.messages, fresh)
  local version = (recording.job or {}).version
  local of_version = version and " of version " .. version or ""
  if found then fail.raise("internal_error", "the replay differs from the recording%s: %s", of_version, found) end
end

--- After its last exchange an earlier run has only the checks of its end, which run again at this
--- one's.
local function forget_checks(run)
  local history, done = run.history, run.record.count
  if history.count > done then history:forget_entries(done + 1) end
  for index, step in pairs(history.unfinished) do
    if index > done and step.check then history.unfinished[index] = nil end
  end
end

--- The gateway's tools from this exchange on, where they are others: as the journal has it, else as
--- the gateway says now.
local function renew_tools(state, from, number, is_live)
  local run = state.run
  local function renew(list, is_new)
    if is_new then run:emit("model.tools", { tools = json.array(list) }) end
    tools.renew(state, list)
  end
  if from.tool_lists[number] then
    local recorded, failure = from:tools(number)
    if failure then error(failure, 0) end
    renew(recorded.tools, run.recording)
  end
  local listed = is_live and run.gateway and tools.changed(state, window.space(state.session))
  if listed then renew(listed, true) end
end

---Raises what ends the job.
---@param state agent.state
---@param fresh table[] the messages since the last exchange
---@return model.reply
function transcript.next(state, fresh)
  local run, session, number = state.run, state.session, state.number + 1
  local from, recorded, failure = run.recording or run.history, nil, nil
  if number <= #from.exchanges then recorded, failure = from:exchange(number) end
  if failure then error(failure, 0) end
  renew_tools(state, from, number, not recorded and not run.recording)
  local reply = recorded and recorded.reply
  if run.recording then
    compare(run.recording, number, recorded, fresh)
    client.replied(run, session.model, reply)
  elseif recorded then
    -- The earlier run logged it.
    run.record:count_request(session.model, reply)
    for _, call in ipairs(reply.tool_calls or {}) do
      -- New calls have other ids.
      if call.id then session.ids[call.id] = true end
    end
  else
    forget_checks(run)
    reply = window.ask(state)
  end
  state.number = number
  if run.recording or not recorded then
    run:emit("model.exchange", { number = number, messages = json.array(fresh), reply = reply })
  end
  return reply
end

return transcript
