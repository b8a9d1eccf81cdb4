-- SPDX-License-Identifier: Apache-2.0
-- Which way a job runs: the environment says it, else the job, else what the job holds.

local text = require "native.text"
local words = require "sba.util.words"

local mode = { AGENT = "agent_inference" }

local DIRECT <const>, AGENT <const> = "direct_steps", mode.AGENT
local switches = { ["1"] = true, ["true"] = true, ["0"] = false, ["false"] = false }

local function invalid(name, value, expected)
  return nil, ("the environment variable %s must be %s, not %s"):format(name, expected, words.quoted(value))
end

---What the environment asks for.
---@param environment table<string, string>
---@return "direct_steps"|"agent_inference"|nil mode
---@return string? mistake one line, where a variable's value means nothing
function mode.from_environment(environment)
  local named = text.trim(environment.SBA_EXECUTION_MODE or "")
  if named == DIRECT or named == AGENT then return named end
  if named ~= "" then return invalid("SBA_EXECUTION_MODE", named, DIRECT .. " or " .. AGENT) end
  local switch = text.trim(environment.SBA_DIRECT_STEPS or ""):lower()
  if switch ~= "" and switches[switch] == nil then return invalid("SBA_DIRECT_STEPS", switch, "1 or 0") end
  return switches[switch] and DIRECT or nil
end

---@param job table a valid job
---@return "direct_steps"|"agent_inference"
function mode.of_job(job)
  if job.execution_mode then return job.execution_mode end
  return #job.steps == 0 and job.inference and AGENT or DIRECT
end

return mode
