-- SPDX-License-Identifier: Apache-2.0
-- The run's network: one HTTP client, so that requests to the same origin share a connection, and the gateway. Each is created when
-- it is first needed; a job that needs neither opens no socket.

local interrupt = require "native.interrupt"
local on_demand = require "sba.run.on_demand"
local rules = require "sba.gateway.rules"
local secret = require "sba.util.secret"

local outside = {}
outside.__index = outside

---@class run.outside
---@field run table
---@field http? native.http.client
---@field remote? gateway

---@param run run
---@return run.outside
function outside.new(run)
  return setmetatable({ run = run }, outside)
end

---The HTTP client, with the proxies and certificates of the environment.
---@return native.http.client?, native.failure?
function outside:client()
  if self.http then return self.http end
  local run = self.run
  local http, failure = on_demand.http().client(run.environment)
  if not http then return nil, failure end
  self.http = http
  self.http:tick(function() -- while a step or a model waits for an answer
    if run.live and run.live.current then run.context.tick() end
  end)
  return self.http
end

---Whether the environment names a gateway.
---@return boolean
function outside:has_gateway()
  return rules.address(self.run.environment) ~= nil
end

---The gateway of a valid job. It is connected to once; a failure is remembered.
---@param again? boolean try again after a failure
---@param limits? mcp.limits
---@return gateway?, mcp.failure? failure codes as in gateway/init.lua
function outside:gateway(again, limits)
  if self.remote or self.failure and not again then return self.remote, self.failure end
  local run, token = self.run, nil
  local http, failure = self:client()
  if http then token, failure = secret.agent_token() end
  if not failure then
    self.remote, failure = on_demand.gateway().connect({
      environment = run.environment, http = http, job_id = run.job.job_id, task_id = run.job.task_id, token = token,
      ext_net_allowed = run.job.constraints.ext_net_allowed,
    }, limits)
  end
  self.failure = failure
  return self.remote, failure
end

---Calls a tool of the gateway for a step.
---@param tool string
---@param arguments table
---@param limits? { whole: number?, idle: number? } seconds: for connecting and the call with all its tries; without progress
---@return gateway.answer?, mcp.failure?
function outside:call(tool, arguments, limits)
  limits = { until_when = limits and limits.whole and interrupt.now() + limits.whole, idle = limits and limits.idle }
  local gateway, failure = self:gateway(false, limits)
  if not gateway then return nil, failure end
  return gateway:call(tool, arguments, limits)
end

---Ends the session with the gateway, if there is one; at the end of the job.
function outside:close()
  if self.remote then self.remote:close() end
  self.remote = nil
end

return outside
