-- SPDX-License-Identifier: Apache-2.0
-- The one way to try again what failed for a transient cause: waits grow and are jittered, follow Retry-After, and never go past
-- the deadline.

local interrupt = require "native.interrupt"
local lpeg = require "lpeg"
local utc = require "sba.util.utc"

local retry = {}

---@class retry.policy
---@field tries number how often at most, the first time included
---@field first number seconds of the first wait; each further one is twice as long
---@field longest number seconds no wait of our own exceeds
---@field longest_asked number seconds a server may ask for at most
---@field may_repeat? fun(failure: table): boolean which transient failures are tried again; default: all
---@field until_when? number on the monotonic clock; default: the job's deadline

---@return retry.policy
function retry.policy()
  return { tries = 8, first = 1, longest = 30, longest_asked = 300 }
end

local months = {
  Jan = 1, Feb = 2, Mar = 3, Apr = 4, May = 5, Jun = 6, Jul = 7, Aug = 8, Sep = 9, Oct = 10, Nov = 11, Dec = 12,
}

local blank <const>, digit <const> = lpeg.S " \t" ^ 0, lpeg.R "09"
local two <const> = digit * digit / tonumber
local seconds <const> = digit ^ 1 * ("." * digit ^ 0) ^ -1 / tonumber

local function from_now(day, month, year, hour, minute, second, now)
  return math.max(0, utc(year, month, day, hour, minute, second) - now / 1000)
end

-- As HTTP writes it: "Sun, 06 Nov 1994 08:49:37 GMT". The extra argument of the match is the time now.
local month <const> = lpeg.Cmt(lpeg.C(3), function(_, at, name) return months[name] and at, months[name] end)
local year <const> = digit * digit * digit * digit / tonumber
local time <const> = two * ":" * two * ":" * two
local date <const> = lpeg.R("az", "AZ") ^ 1 * ", " * (two * " " * month * " " * year * " " * time * " GMT" * lpeg.Carg(1) / from_now)
local retry_after <const> = blank * (seconds + date) * blank * -1

---What a Retry-After header asks for.
---@param value? string seconds, or a date as HTTP writes it
---@param now? integer milliseconds of the wall clock; default: now
---@return number? seconds from now, never negative; nil where it says nothing that can be read
function retry.after(value, now)
  return value and lpeg.match(retry_after, value, 1, now or interrupt.wall())
end

---The wait after the try of that number. Shares of chance are small enough that each of our own waits is longer than the one before.
---@param policy retry.policy
---@param number integer from 1
---@param asked? number seconds, of Retry-After
---@return number seconds
function retry.wait(policy, number, asked)
  local own = math.min(policy.first * 2.0 ^ (number - 1) * (0.75 + math.random() / 2), policy.longest)
  if not asked then return own end
  return math.min(asked, policy.longest_asked) + math.min(own, 1) * math.random()
end

local function time_left(policy)
  if not policy.until_when then return interrupt.remaining() end
  return math.max(0, policy.until_when - interrupt.now())
end

local function may_try_again(policy, number, failure)
  return failure.transient and number < policy.tries and not (failure.once and number > 1)
    and (not policy.may_repeat or policy.may_repeat(failure))
end

---Does something until it succeeds, fails for good, or was tried often enough. It tries again what fails with transient set; once more
---only if once is set. retry_after is what the server asks for, in seconds.
---@generic T
---@param policy retry.policy
---@param attempt fun(number: integer): T?, table?
---@param on_wait? fun(failure: table, seconds: number, number: integer) before each wait
---@return T?, table? failure with tries, how often it was tried
function retry.run(policy, attempt, on_wait)
  local number = 1
  while true do
    local value, failure = attempt(number)
    if not failure then return value end
    failure.tries = number
    if not may_try_again(policy, number, failure) then return nil, failure end
    local wait, left = retry.wait(policy, number, failure.retry_after), time_left(policy)
    if left and wait >= left then
      failure.message = ("%s; the next try would be in %.0f s, and the time is up in %.0f s"):format(failure.message, wait, left)
      return nil, failure
    end
    if on_wait then on_wait(failure, wait, number) end
    local ok, interrupted = interrupt.sleep(wait)
    if not ok then return nil, interrupted end
    number = number + 1
  end
end

---Does something until it succeeds, fails for good, or the time is up; past the job's deadline too.
---@generic T
---@param duration number seconds
---@param attempt fun(until_when: number, number: integer): T?, table? until_when: on the monotonic clock, when the time is up
---@param on_wait? fun(failure: table, seconds: number) before each wait
---@return T?, table? failure
function retry.within(duration, attempt, on_wait)
  local policy = retry.policy()
  policy.tries, policy.first, policy.longest, policy.until_when = math.huge, 0.5, 4, interrupt.now() + duration
  interrupt.rearm(duration)
  local value, failure = retry.run(policy, function(number) return attempt(policy.until_when, number) end, on_wait)
  interrupt.disarm()
  return value, failure
end

return retry
