-- SPDX-License-Identifier: Apache-2.0
-- The state of a run: the one table that main, accept, the steps and finish share. Every field is listed here with its type and
-- with the module that sets it; a spec holds what modules use against this list.

---@class run
---@field settings table what the command line and the environment say; set by main
---@field environment table<string, string> the runner's environment without its own secrets; set by main
---@field catalogue table the step types; set by main
---@field record record what the result will say; set by main
---@field log log set by main
---@field status_url? string where status reports go; set by main
---@field http? native.http.client set by run:client
---@field gateway? gateway connected; set by run:connect
---@field unreachable? mcp.failure why the gateway is not; set by run:connect
---@field trace? run.trace the job's trace, if the environment asks for one; set by main
---@field failure? failure what the job ends with; set by main, or by finish where the end itself fails
---@field bytes? string the job file, until it is validated; set by main
---@field errors? string[] what is wrong with a job that is not valid, for the log; set by main
---@field job? table the valid job; set by main
---@field job_sha256? string of the job file; set by main
---@field steps? table[] the steps of a direct job; nil: an agent's job; set by main
---@field deadline? number monotonic seconds; set by main
---@field accepted? boolean the first result is written; set by accept
---@field result_directory? string with a slash at its end; nil: the result goes to stdout; set by accept
---@field job_directory? string the same, resolved, for messages about confinement; set by accept
---@field emit fun(run: run, name: string, event: table) tells what happens; see events.lua
---@field past past what earlier runs did, with --resume, else empty; set by main and accept
---@field recording? past the journal to answer from, with --replay; set by accept
---@field lock? native.file.log the journal's file, locked, or in memory; set by accept
---@field journal? journal set by accept
---@field todo? todo set by accept
---@field live? live what runs now; set by accept
---@field checkpoint? checkpoint writes the results in between; set by accept
---@field checkpoint_failure? native.failure why the last of them was not written; set by accept
---@field workspace? native.root set by accept
---@field context? table what steps are called with; set by accept
---@field perform? fun(step: table): table?, failure?, boolean? runs a step; see step.run; set by accept
---@field perform_checks? fun(verdicts: run.verdict[], note: fun(checked: run.checked)): run.checked[]?, failure? set by accept
---@field ask? fun(question: run.question): table?, table? asks a model for a step; set by accept
---@field artifacts? native.root the artifacts directory; set by artifacts
---@field artifacts_shared? integer permission bits that artifacts get; set by artifacts
---@field temporary_artifacts? string the artifacts directory, if it is removed at the end; set by artifacts
---@field snapshot? native.snapshot the workspace before the first step; set by workspace_changes
---@field missing_skills? string[] the ids that could not be fetched; set by transfer
---@field beginning? { left: number, tries: integer, failure?: table } the report of it, not yet delivered or given up; set by status
---@field kept? sba.transaction the files that the running step has changed; set by undo, cleared by step
---@field upload_failed? boolean an artifact was not uploaded; set by transfer
---@field fields? table the final result; set by finish
---@field parts? string[] the same as it is written; set by finish
---@field written? boolean whether it could be written; nil: not yet tried; set by finish

local emit = require "sba.run.events"
local log = require "sba.util.log"
local on_demand = require "sba.run.on_demand"
local record = require "sba.result.record"
local rules = require "sba.gateway.rules"
local secret = require "sba.util.secret"

local state = {}

local methods = { emit = emit }
methods.__index = methods

---The HTTP client, with the proxies and certificates of the environment: one, so that requests to the same origin share a connection. A
---job that needs none opens no socket.
---@return native.http.client?, native.failure?
function methods:client()
  if self.http then return self.http end
  local http, failure = on_demand.http().client(self.environment)
  if not http then return nil, failure end
  self.http = http
  http:tick(function() -- while a step or a model waits for an answer
    if self.live and self.live.current then self.context.tick() end
  end)
  return http
end

---Whether the environment names a gateway.
---@return boolean
function methods:has_gateway() return rules.address(self.environment) ~= nil end

---The gateway of a valid job. It is connected to once; a failure is remembered.
---@param again? boolean try again after a failure
---@param limits? mcp.limits
---@return gateway?, mcp.failure? failure codes as in gateway/init.lua
function methods:connect(again, limits)
  if self.gateway or self.unreachable and not again then return self.gateway, self.unreachable end
  local token
  local http, failure = self:client()
  if http then token, failure = secret.agent_token() end
  if not failure then
    self.gateway, failure = on_demand.gateway().connect({
      environment = self.environment, http = http, job_id = self.job.job_id, task_id = self.job.task_id, token = token,
      ext_net_allowed = self.job.constraints.ext_net_allowed,
    }, limits)
  end
  self.unreachable = failure
  return self.gateway, failure
end

---Ends the session with the gateway, if there is one.
function methods:disconnect()
  if self.gateway then self.gateway:close() end
  self.gateway = nil
end

---Creates a run with these fields only.
---@param fields table
---@return run
function state.of(fields) return setmetatable(fields, methods) end

---Creates the state of a run of which no more is known than how the program was started.
---@param settings table
---@param environment table<string, string>
---@return run
function state.new(settings, environment)
  local job_id, task_id = environment.CYNODE_JOB_ID or "", environment.CYNODE_TASK_ID or ""
  local run = state.of {
    settings = settings, environment = environment, record = record.new(job_id, task_id),
    past = { size = 0, entries = {}, begun = {}, planned = {}, exchanges = {}, resumes = {}, asked = {} }, -- as past.new gives
    log = log.new {
      format = settings.log_format, environment = environment, follow = settings.follow, terminal = on_demand.terminal,
    },
  }
  run.log:identify(job_id, task_id)
  return run
end

return state
