-- SPDX-License-Identifier: Apache-2.0
-- Uploads a job's artifacts after its processes have ended and before its result is written.
--
-- Uploads may use the job's remaining time, at most two minutes. Past the deadline or after a signal they get the few seconds within
-- which a job must end, which is enough for small files.

local artifacts = require "sba.orchestrator.artifacts"
local interrupt = require "native.interrupt"

local MOST <const> = 120 -- seconds
local OVERRUN <const> = 2.5 -- seconds past the deadline
local AFTER_SIGNAL <const>, LATEST <const> = 2.5, 4.5 -- seconds for the upload; seconds from the signal to its end

local function seconds(run)
  local now = interrupt.now()
  local most, signal, at = MOST, interrupt.signal()
  if signal then most = math.min(AFTER_SIGNAL, at + LATEST - now) end
  return math.max(0, math.min(run.deadline + OVERRUN - now, most))
end

local function send(run)
  local options = {
    directory = run.artifacts, names = run.artifact_names, log = function(level, event, fields) run.log:event(level, event, fields) end,
  }
  local gateway, failure = run.outside:gateway(true)
  if not gateway then return artifacts.give_up(options, run.record.artifacts, 1, failure) end
  options.gateway = gateway
  run.upload_failed = not artifacts.upload(options, run.record.artifacts)
end

---@param run run its record lists them
return function(run)
  run.checkpoint:write() -- the steps are on disk before the slow upload
  run.upload_failed = true -- until all is uploaded
  interrupt.rearm(seconds(run))
  local ok, problem = pcall(send, run)
  interrupt.disarm()
  if not ok then error(problem, 0) end
end
