-- SPDX-License-Identifier: Apache-2.0
-- From what a step or Lua said to the job's failure and the exit status.

local interrupt = require "native.interrupt"
local redact = require "native.secret".redact
local result_schema = require "sba.result.result_schema"

local failures = {}

-- TRY_AGAIN: EX_TEMPFAIL of sysexits.h. What is wanting outside may be back later.
local exit = { OK = 0, FAILED = 1, REFUSED = 2, UNWRITABLE = 3, TRY_AGAIN = 75, TIMEOUT = 124 }
failures.exit = exit

-- Codes of steps that are the job's too; every other one is step_failed.
local shared <const> = {
  timeout = true, cancelled = true, constraint_violation = true,
  internal_error = true, ext_net_required = true, inference_unavailable = true,
}

local exits <const> = {
  schema_validation = exit.REFUSED, runs_as_root = exit.REFUSED, environment_invalid = exit.REFUSED,
  inference_unavailable = exit.TRY_AGAIN, timeout = exit.TIMEOUT,
}

local of_job <const> = { locked = true } -- a second runner writes no result
for _, code in ipairs(result_schema.properties.failure_code.enum) do of_job[code] = true end

-- Not the job's fault: the same job may succeed later.
local retryable <const> = { inference_unavailable = true, interrupted = true, cancelled = true }

-- As our bindings say it; where Lua itself gets none, the program begins anew (crash_exit).
local NO_MEMORY <const> = "not enough memory"

---@param code string
---@param message string
---@return failure
function failures.of_step(code, message)
  return { code = shared[code] and code or "step_failed", message = message }
end

---Message handler for xpcall: a failure that was raised passes through, anything else is a bug of
---ours.
---@param problem any
---@return failure
function failures.traced(problem)
  if type(problem) == "table" and problem.code then return problem end
  local message = redact(tostring(problem))
  local is_memory = message:sub(-#NO_MEMORY) == NO_MEMORY
  return {
    code = is_memory and "out_of_memory" or "internal_error",
    message = "internal error: " .. message, traceback = debug.traceback(message, 2),
  }
end

---What has no code of its own in a result, such as a journal that a disk does not give back, is an
---internal error.
---@param failure? failure
---@return failure?
function failures.of_job(failure)
  if not failure or failure.leaves_result then return failure end
  if not of_job[failure.code] then failure.code = "internal_error" end
  return failure
end

---Makes a failure of whatever xpcall gave: where the handler failed too, it is text.
---@param problem any
---@param in_step? boolean it is a step's, else the job's
---@return failure
function failures.caught(problem, in_step)
  if type(problem) ~= "table" or not problem.code then problem = failures.traced(problem) end
  return in_step and problem or failures.of_job(problem)
end

---@return integer? status nil: no signal came
function exit.signalled()
  local number = interrupt.signal()
  return number and 128 + number
end

---Says on stderr why the program ends.
---@param message string
---@param status integer
---@return integer status that, or the signal's
function exit.because(message, status)
  io.stderr:write("cynode-sba: ", redact(message), "\n")
  return exit.signalled() or status
end

---@param code string the job's failure code
---@return boolean
function failures.is_retryable(code) return retryable[code] == true end

---@param code? string the job's failure code
---@return integer
function failures.exit_status(code)
  if not code then return exit.OK end
  local of_signal = code == "cancelled" and exit.signalled()
  return of_signal or exits[code] or exit.FAILED
end

return failures
