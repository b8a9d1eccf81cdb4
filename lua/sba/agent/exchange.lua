-- SPDX-License-Identifier: Apache-2.0
-- One request to the model and its reply: live and written to the journal, or taken from a recording. A replay holds each
-- request against the recorded one and stops at the first difference; a resume takes the journal as far as it goes.

local changing = require "sba.agent.changing"
local json = require "sba.util.json"
local lines = require "sba.util.lines"

local exchange = {}
exchange.__index = exchange

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

local function first_difference(expected, actual)
  local next_line, at_left, at_right, left, right = lines(""), 1, 1
  local number = 0
  repeat
    at_left, left = next_line(expected, at_left)
    at_right, right = next_line(actual, at_right)
    number = number + 1
  until left ~= right or not left
  return number, left or "the end", right or "the end"
end

local function compare_message(number, index, expected, actual)
  if not actual or expected.role ~= actual.role then
    return ("exchange %d, message %d: the recording has a message of %s, this run has %s"):format(
      number, index, expected.role, actual and "one of " .. actual.role or "none")
  end
  local a, b = expected.content or "", actual.content or ""
  if a == b then return nil end
  a, b = changing.without_times(a), changing.without_times(b)
  if a == b then return nil end
  local line, was, is = first_difference(a, b)
  return ("exchange %d, message %d (%s), line %d: the recording has \"%s\", this run has \"%s\""):format(
    number, index, actual.role, line, was:sub(1, 200), is:sub(1, 200))
end

--- Why a request is not the recorded one, or nil.
local function difference(number, recorded, fresh)
  if not recorded.messages then return nil end
  for i = 1, math.max(#recorded.messages, #fresh) do
    if not recorded.messages[i] then
      return ("exchange %d: this run has a message of %s more than the recording"):format(number, fresh[i].role)
    end
    local found = compare_message(number, i, recorded.messages[i], fresh[i])
    if found then return found end
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
