-- SPDX-License-Identifier: Apache-2.0
-- Failures: from what a step or Lua itself said to the job's failure code, and to the exit status.

local exit = require "sba.util.exit"
local redact = require "native.secret".redact

local failures = {}

-- Codes of steps that are the job's too; every other one is step_failed.
local kept = {
  timeout = true, cancelled = true, constraint_violation = true, internal_error = true, ext_net_required = true,
  inference_unavailable = true,
}

local exits = {
  schema_validation = exit.REFUSED, runs_as_root = exit.REFUSED, environment_invalid = exit.REFUSED, timeout = exit.TIMEOUT,
}

local NO_MEMORY <const> = "not enough memory" -- as Lua says it, and the end of what our bindings say
-- Created beforehand, because there is no memory when they are needed.
local starved <const> = {
  code = "out_of_memory",
  message = "the runner ran out of memory; give it more, or let the step read or return less (max_output_bytes, max_bytes)",
}
local starved_job <const> = { code = "internal_error", message = "the runner ran out of memory; a job of this size needs more" }

local function is_starved(problem)
  return type(problem) == "string" and problem:find(NO_MEMORY, -#NO_MEMORY, true) ~= nil
end

--- The job's failure for a step's.
---@param code string
---@param message string
---@return failure
function failures.of_step(code, message)
  return { code = kept[code] and code or "step_failed", message = message }
end

--- Message handler for xpcall: a failure that was raised (an interrupt) passes through, anything else is a bug of ours.
---@param problem any
---@return failure
function failures.traced(problem)
  if type(problem) == "table" and problem.code or is_starved(problem) then return problem end
  local message = redact(tostring(problem))
  return {
    code = "internal_error", message = "internal error: " .. message, traceback = debug.traceback(message, 2),
  }
end

--- Makes a failure of whatever pcall gave (when memory was out, no handler ran).
---@param problem any
---@param in_step? boolean it is a step's, else the job's
---@return failure
function failures.caught(problem, in_step)
  if type(problem) == "table" and problem.code then return problem end
  if is_starved(problem) then return in_step and starved or starved_job end
  return { code = "internal_error", message = "internal error: " .. redact(tostring(problem)) }
end

--- The exit status for how a job ended.
---@param code? string the job's failure code
---@return integer
function failures.exit_status(code)
  if not code then return exit.OK end
  return code == "cancelled" and exit.signalled() or exits[code] or exit.FAILED
end

return failures
