-- SPDX-License-Identifier: Apache-2.0
-- The one way to try again after transient failures: waits grow, are jittered, follow Retry-After,
-- and never pass the deadline.

local interrupt = require "native.interrupt"
local text = require "native.text"
local utc = require "sba.util.humanize".utc

local retry = {}

---@class retry.policy
---@field tries number including the first
---@field first number seconds of the first wait, doubled each time
---@field longest number seconds of our own waits
---@field longest_asked number seconds that a server may ask for
---@field may_repeat? fun(failure: table): boolean of transient failures; default: all
---@field until_when? number on the monotonic clock; default: the job's deadline

---@param changes? table<string, any>
---@return retry.policy
function retry.policy(changes)
  local policy = { tries = 8, first = 1, longest = 30, longest_asked = 300 }
  for name, value in pairs(changes or {}) do policy[name] = value end
  return policy
end

-- Bytes of a Retry-After that are read.
local LONGEST_ASKED <const> = 100
local MONTHS <const> = "JanFebMarAprMayJunJulAugSepOctNovDec"
local DATE <const> = "^%a+, (%d%d) (%a%a%a) (%d%d%d%d) (%d%d):(%d%d):(%d%d) GMT$"

local function seconds_of(value)
  if not value or #value > LONGEST_ASKED then return nil end
  return tonumber(value:match "^%d+%.?%d*$") -- bounded: it is short
end

---Reads a Retry-After header: seconds, or a date as "Sun, 06 Nov 1994 08:49:37 GMT".
---@param value? string
---@param milliseconds? string of a Retry-After-Ms header, which is more exact
---@param now? integer milliseconds of the wall clock
---@return number? seconds from now, never negative
function retry.after(value, milliseconds, now)
  local exact = seconds_of(milliseconds)
  if exact then return exact / 1000 end
  value = text.trim(value or "")
  if #value > LONGEST_ASKED then return nil end
  local seconds = seconds_of(value)
  if seconds then return seconds end
  -- Day, name of the month, year, hour, minute, second.
  local date = { value:match(DATE) }
  local at = date[2] and MONTHS:find(date[2], 1, true)
  -- A month begins at 1, 4, 7 and so on: "anF" is none.
  if not at or at % 3 ~= 1 then return nil end
  local when = utc(date[3], at // 3 + 1, date[1], table.unpack(date, 4))
  return math.max(0, when - (now or interrupt.wall())) / 1000
end

---The jitter is small enough that each of our own waits is longer than the one before.
---@param policy retry.policy
---@param number integer of the try, from 1
---@param asked? number seconds of Retry-After
---@return number seconds
function retry.wait(policy, number, asked)
  local longer = policy.first * 2.0 ^ (number - 1)
  local own = math.min(longer * (0.75 + math.random() / 2), policy.longest)
  if not asked then return own end
  return math.min(asked, policy.longest_asked) + math.min(own, 1) * math.random()
end

-- Seconds that must be left for a last try.
local LEAST_LEFT <const> = 2

local function may_try_again(policy, number, failure)
  if not failure.transient or number >= policy.tries then return false end
  return not policy.may_repeat or policy.may_repeat(failure)
end

-- Own waits become shorter near the end, so that a last try fits in. One that was asked for is kept
-- or not begun.
local function wait_within(wait, left, is_asked)
  if not left or wait < left then return wait end
  if is_asked or left <= LEAST_LEFT then return nil end
  return left / 2
end

---Waits before another try.
---@param policy retry.policy
---@param number integer of the try that failed
---@param failure table
---@param on_wait? fun(failure: table, seconds: number, number: integer)
---@return true?, table? failure why there is no other try
function retry.pause(policy, number, failure, on_wait)
  failure.tries = number
  if not may_try_again(policy, number, failure) then return nil, failure end
  local wait = retry.wait(policy, number, failure.retry_after)
  local left = policy.until_when and math.max(0, policy.until_when - interrupt.now()) or interrupt.remaining()
  local shorter = wait_within(wait, left, failure.retry_after ~= nil)
  if not shorter then
    local message = "%s; the next try would be in %.0f s, and the time is up in %.0f s"
    failure.message = message:format(failure.message, wait, left)
    return nil, failure
  end
  if on_wait then on_wait(failure, shorter, number) end
  local ok, interrupted = interrupt.sleep(shorter)
  return ok, not ok and interrupted or nil
end

---Tries again failures with `transient`, after the seconds of `retry_after`.
---@generic T
---@param policy retry.policy
---@param attempt fun(number: integer): T?, table?
---@param on_wait? fun(failure: table, seconds: number, number: integer)
---@return T?, table? failure with `tries`
function retry.run(policy, attempt, on_wait)
  local number = 1
  while true do
    local value, failure = attempt(number)
    if not failure then return value end
    local ok, ended = retry.pause(policy, number, failure, on_wait)
    if not ok then return nil, ended end
    number = number + 1
  end
end

---The same until the time is up, past the job's deadline too.
---@generic T
---@param duration number seconds
---@param attempt fun(until_when: number, number: integer): T?, table? on the monotonic clock
---@param on_wait? fun(failure: table, seconds: number)
---@return T?, table? failure
function retry.within(duration, attempt, on_wait)
  local until_when = interrupt.now() + duration
  local policy = retry.policy { tries = math.huge, first = 0.5, longest = 4, until_when = until_when }
  local function try(number) return attempt(until_when, number) end
  interrupt.rearm(duration)
  local value, failure = retry.run(policy, try, on_wait)
  interrupt.disarm()
  return value, failure
end

return retry
