-- SPDX-License-Identifier: Apache-2.0
-- The state of a run, which main, accept, the steps and finish share, and what a step is given of
-- it. A spec holds what they use against this list.

---@class run
---Set by main:
---@field settings cli.settings the command line's and the environment's
---@field environment table<string, string> without the runner's secrets
---@field catalogue table the step types
---@field record record
---@field runner native.process.runner who runs it; with `temporary`, the first name that it gives
---to a temporary file
---@field log log
---@field result_directory? string with a slash at its end; nil: the result goes to stdout
---@field status_url? string
---@field trace? run.trace
---@field bytes? string the job file, until it is validated
---@field job? sba.job
---@field steps? table[] nil: an agent's job
---@field deadline? number as interrupt.now
---@field reserved_seconds number the last of the job's time, for steps that run always and for
---checks; 0: they run, or there are none
---@field checked_at? integer steps when all checks had run; set by check
---@field failure? failure also set by finish, where the end itself fails
---Set by accept:
---@field accepted? boolean the first result is written
---@field history journal.history empty without --resume
---@field recording? journal.history with --replay
---@field journal_file? native.file.log the journal's file, or memory
---@field journal? journal
---@field todo? todo
---@field progress? progress
---@field checkpoint? checkpoint of the interim results
---@field directory? native.file.identity of result_directory
---@field has_result? boolean a result of this run stands
---@field workspace? native.root
---@field context? sba.job_context
---Set by claims:
---@field earlier_artifacts? table[] what lay in the artifacts directory before the job's first run
---@field has_old_patch? boolean the patch there is of a run that this one does not resume
---Set by artifacts:
---@field artifacts? native.root
---@field temporary_artifacts? string their directory, which is removed at the end
---Set by finish:
---@field final run.final
---@field crashed? boolean set by the end by exec
---Set by outside:
---@field missing_skills? string[] ids
---@field beginning? table the report of the start, until it is over
---@field upload_failed? boolean
---Set by others:
---@field emit fun(run: run, name: string, event: table) see listeners.lua
---@field http? native.http.client
---@field gateway? gateway
---@field unreachable? mcp.failure why there is no gateway
---@field snapshot? native.snapshot by workspace_changes: the workspace before the first step
---@field pending_undo? sba.transaction by undo: of the running step

---@class run.final the final result
---@field fields? table
---@field parts? native.file.parts of it
---@field is_written? boolean
---@field disk_seconds? number that its writing took, without what wait_for_disk waits
---@field left? { count: integer, pid: integer } processes that could not be ended
---@field journal_changed? boolean by a command: it cannot be resumed

local ending = require "native.ending"
local interrupt = require "native.interrupt"
local lazy = require "sba.util.lazy"
local listeners = require "sba.run.listeners"
local log = require "sba.util.log"
local process = require "native.process"
local record = require "sba.result.record"
local secret = require "sba.util.secret"
local workspace = require "native.workspace"

local checks = lazy "sba.run.check"
local clients = lazy "sba.util.http"
local gateways = lazy "sba.gateway"
local rules = lazy "sba.gateway.rules"
local run_step = lazy "sba.run.step"

local state = {}

-- A tenth of the job's time is reserved.
local RESERVED_SHARE <const> = 10
local MOST_RESERVED <const> = 60 -- seconds

local methods = { emit = listeners.emit }
methods.__index = methods

function methods:perform(step) return run_step.run(self, step) end

---@param note? fun(checked: run.checked)
function methods:perform_checks(note) return checks.run_all(self, note) end

---@param event string
---@param message string
---@param fields? table
function methods:warn(event, message, fields)
  fields = fields or {}
  fields.error = message
  self.log:event("warning", event, fields)
end

---@return boolean
function methods:has_checks()
  local context = self.job.context
  return context ~= nil and next(context.checks) ~= nil
end

---@return number seconds at the job's end that steps that run always and checks may have at least
function methods:reserve()
  return math.min(self.job.constraints.max_runtime_seconds / RESERVED_SHARE, MOST_RESERVED)
end

---Before the job's first step: its deadline, and what is reserved of its time.
---@param at number as interrupt.now
function methods:limit_time(at)
  local is_needed = self:has_checks()
  for _, step in ipairs(self.steps or {}) do is_needed = is_needed or step.always == true end
  self:set_deadline(at, is_needed and self:reserve() or 0)
end

---Calls what may use the reserve but for so many seconds.
---@param seconds number
---@param call function
---@return ... of the call
function methods:with_reserve(seconds, call, ...)
  local reserved = self.reserved_seconds
  self:set_deadline(self.deadline, seconds)
  local results = table.pack(call(...))
  self:set_deadline(self.deadline, reserved)
  return table.unpack(results, 1, results.n)
end

---What a model is told, and its commands find in CYNODE_DEADLINE.
---@return number? seconds nil: no deadline
function methods:seconds_left() return (self.context.seconds_left()) or interrupt.remaining() end

---@param at number as interrupt.now
---@param reserved number seconds before it in which nothing but steps that run always and checks runs
function methods:set_deadline(at, reserved)
  self.deadline, self.reserved_seconds = at, reserved
  interrupt.set_deadline(math.max(0, at - reserved - interrupt.now()))
  ending.deadline(at)
end

---@return native.http.client?, native.failure?
function methods:client()
  if self.http then return self.http end
  local http, failure = clients.client(self.environment)
  if not http then return nil, failure end
  self.http = http
  -- Progress is written also while a step or a model waits for an answer.
  http:tick(function()
    if self.progress and self.progress.current then self.context.tick() end
  end)
  return http
end

function methods:has_gateway() return rules.address(self.environment) ~= nil end

---@param again? boolean also after a failure, which is remembered
---@param limits? mcp.limits
---@return gateway?, mcp.failure?
function methods:connect(again, limits)
  if self.gateway or self.unreachable and not again then return self.gateway, self.unreachable end
  local token, http, failure
  -- A client reads where to look up names.
  if self:has_gateway() then http, failure = self:client() end
  if http then token, failure = secret.agent_token() end
  if not failure then
    self.gateway, failure = gateways.connect({
      environment = self.environment, http = http,
      job_id = self.job.job_id, task_id = self.job.task_id,
      token = token, renew_token = secret.renew_agent_token,
      ext_net_allowed = self.job.constraints.ext_net_allowed,
    }, limits)
  end
  self.unreachable = failure
  return self.gateway, failure
end

function methods:disconnect()
  if self.gateway then self.gateway:close() end
  self.gateway = nil
end

---@return run
function state.of(fields)
  fields.runner, fields.final = process.runner(), {}
  fields.runner.temporary = workspace.temporary_name()
  return setmetatable(fields, methods)
end

---@param settings cli.settings
---@param environment table<string, string>
---@return run
function state.new(settings, environment)
  local job_id, task_id = environment.CYNODE_JOB_ID or "", environment.CYNODE_TASK_ID or ""
  local result = settings.result
  local run = state.of {
    settings = settings, environment = environment, record = record.new(job_id, task_id),
    -- What is asked of fold.new, which most jobs do not load.
    history = {
      size = 0, count = 0, unfinished = {}, exchanges = {}, resumes = {}, runs = {}, tool_lists = {},
    },
    log = log.new {
      format = settings.log_format, follow = settings.follow, environment = environment,
    },
  }
  if result ~= "-" then run.result_directory = result:match "^.*/" or "./" end
  run.log:identify(job_id, task_id)
  return run
end

return state
