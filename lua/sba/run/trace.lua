-- SPDX-License-Identifier: Apache-2.0
-- The job as a trace: spans made from the log's events, and the context (W3C Trace Context, Baggage) that goes to commands and with
-- every request. The conventions for models are OpenTelemetry's for generative AI.
--
-- A trace that the environment began goes on. Without an exporter, its context is passed on as it came.

local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local otlp = require "sba.run.otlp"
local text = require "native.text"
local version = require "native.bundle".version

local trace = {}
trace.__index = trace

local MOST_SPANS <const> = 20000
local MOST_EVENTS <const> = 100 -- of one span
local LONGEST_STATE <const> = 512 -- bytes of a tracestate, as W3C asks
local LONGEST_BAGGAGE <const> = 8192
local BOTH <const>, AFTER_SIGNAL <const> = 30, 5 -- seconds for the last report and the trace together

--- Whether a header or variable can carry it on.
local function passed_on(value, longest)
  return value and value ~= "" and #value <= longest and value:find("^[\x20-\x7E]*$") and value or nil
end

--- The parts of a traceparent; nil if it is not one.
local function parse(value)
  local head, trace_id, parent, flags = (value or ""):sub(1, 55):match("^(%x%x)%-(%x+)%-(%x+)%-(%x%x)$")
  if not head or #trace_id ~= 32 or #parent ~= 16 or value:find("%u") or head == "ff" or head == "00" and #value ~= 55 then return nil end
  if trace_id:find("^0*$") or parent:find("^0*$") then return nil end
  return { trace_id = trace_id, parent = parent, sampled = tonumber(flags, 16) & 1 == 1 }
end

--- Hex digits that nobody can foretell.
local function random_hex()
  local source <close> = io.open("/dev/urandom", "rb")
  return text.sha256((source and source:read(32) or "") .. interrupt.wall() .. interrupt.now() .. tostring({}))
end

local function span_id(self)
  self.count = self.count + 1
  return text.sha256(self.seed .. self.count):sub(1, 16)
end

---The trace of a run; nil if the environment neither names a collector nor began a trace.
---@param run run
---@return run.trace?
function trace.new(run)
  local environment = run.environment
  local given = parse(environment.TRACEPARENT)
  local exporter, problem = otlp.new(environment, version)
  if problem then run.log:event("warning", "trace.failed", { error = problem }) end
  if given and not given.sampled then exporter = nil end
  if not exporter and not given then return nil end
  local self = setmetatable({
    run = run, exporter = exporter, seed = random_hex(), count = 0, spans = {}, dropped = 0,
    given = given and environment.TRACEPARENT, parent_id = given and given.parent,
    state = given and passed_on(environment.TRACESTATE, LONGEST_STATE), baggage = passed_on(environment.BAGGAGE, LONGEST_BAGGAGE),
  }, trace)
  self.trace_id = given and given.trace_id or self.seed:sub(1, 32)
  http.propagate(function() return self:headers() end)
  if exporter then self.job = self:open("job", "internal", self.parent_id) end
  run.log:observe(self.trace_id, exporter and function(level, event, fields) self:note(level, event, fields) end)
  return self
end

--- Begins a span.
function trace:open(name, kind, parent_id)
  if #self.spans >= MOST_SPANS then
    self.dropped = self.dropped + 1
    return nil
  end
  local span = {
    trace_id = self.trace_id, span_id = span_id(self), parent_id = parent_id, trace_state = self.state, name = name, kind = kind,
    began = interrupt.wall(), attributes = {},
  }
  self.spans[#self.spans + 1] = span
  return span
end

local function close(span, failed)
  if not span then return end
  span.ended, span.error = interrupt.wall(), failed or nil
end

--- The innermost span.
function trace:current()
  return self.request or self.step or self.job
end

--- The traceparent of what is done now.
local function parent_now(self)
  local span = self:current()
  return span and ("00-%s-%s-01"):format(self.trace_id, span.span_id) or self.given
end

---Headers that a request carries.
---@return string[]
function trace:headers()
  local list = { "traceparent: " .. parent_now(self) }
  if self.state then list[#list + 1] = "tracestate: " .. self.state end
  if self.baggage then list[#list + 1] = "baggage: " .. self.baggage end
  return list
end

--- Gives the commands of a step its span.
local function set_environment(self)
  local context = self.run.context
  self.inherited = self.inherited or context.environment
  local list = { "TRACEPARENT=" .. parent_now(self) }
  for _, variable in ipairs(self.inherited) do
    if variable:sub(1, 12) ~= "TRACEPARENT=" then list[#list + 1] = variable end
  end
  context.environment = list
end

--- A span of something that is over: it began so many milliseconds ago.
local function past(self, name, fields, failed)
  local span = self:open(name, "client", self:current().span_id)
  if not span then return end
  close(span, failed)
  span.began = span.ended - (fields.duration_ms or 0)
  return span.attributes
end

local events = {}

events["step.started"] = function(self, fields)
  local is_agent = self.run.steps == nil
  self.step = self:open(is_agent and "execute_tool " .. fields.type or "step " .. fields.type, "internal", self.job.span_id)
  if self.step then
    local attributes = self.step.attributes
    attributes["cynode.step.id"], attributes["cynode.step.type"], attributes["cynode.step.what"] = fields.id, fields.type, fields.what
    if is_agent then attributes["gen_ai.operation.name"], attributes["gen_ai.tool.name"] = "execute_tool", fields.type end
  end
  set_environment(self)
end

events["step.finished"] = function(self, fields)
  if self.step then
    self.step.attributes["process.exit.code"], self.step.attributes["error.type"] = fields.exit_code, fields.error_code
    close(self.step, fields.status ~= "success" and (fields.error or fields.status))
  end
  self.step = nil
end

events["model.request"] = function(self, fields)
  close(self.request, "the request failed")
  self.request = self:open("chat " .. fields.model, "client", self:current().span_id)
  if not self.request then return end
  local attributes = self.request.attributes
  attributes["gen_ai.operation.name"], attributes["gen_ai.request.model"] = "chat", fields.model
  attributes["gen_ai.provider.name"] = fields.provider
end

events["model.response"] = function(self, fields)
  if not self.request then return end
  local attributes = self.request.attributes
  attributes["gen_ai.response.model"] = fields.model
  attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"] = fields.prompt_tokens, fields.completion_tokens
  close(self.request)
  self.request = nil
end

local function report(self, fields, failed)
  local attributes = past(self, "report " .. fields.report, fields, failed)
  if attributes then attributes["http.response.status_code"] = math.tointeger(fields.status) end
end

events["report.sent"] = function(self, fields) report(self, fields) end
events["report.failed"] = function(self, fields) report(self, fields, fields.error or "the report was not delivered") end

local function upload(self, fields, failed)
  local attributes = past(self, "upload", fields, failed)
  if attributes then attributes["file.path"] = fields.path end
end

events["artifact.uploaded"] = function(self, fields) upload(self, fields) end
events["artifact.failed"] = function(self, fields) upload(self, fields, fields.error or "the artifact was not uploaded") end

--- An event of the log: the beginning or the end of a span, or, if it is a warning or an error, an event of the innermost span.
function trace:note(level, event, fields)
  if events[event] then return events[event](self, fields) end
  local span = self:current()
  if level == "info" or level == "debug" or not span then return end
  span.events = span.events or {}
  if #span.events < MOST_EVENTS then
    span.events[#span.events + 1] = { name = event, at = interrupt.wall(), attributes = { error = fields.error or fields.failure_message } }
  end
end

--- The job's span, at its end.
local function close_job(self)
  local run, job = self.run, self.job
  local fields, attributes = run.fields or {}, job.attributes
  local failed = type(fields.failure_code) == "string" and fields.failure_code
  close(self.request, "the request failed")
  close(self.step, "the step was cut off")
  close(job, failed and ("%s: %s"):format(failed, fields.failure_message))
  attributes["cynode.job.id"], attributes["cynode.task.id"] = run.record.job_id, run.record.task_id
  attributes["cynode.job.status"], attributes["error.type"] = fields.status, failed or nil
  attributes["cynode.spans.dropped"] = self.dropped > 0 and self.dropped or nil
  if run.job and not run.steps then
    job.name, attributes["gen_ai.operation.name"], attributes["gen_ai.agent.name"] = "invoke_agent cynode-sba", "invoke_agent", "cynode-sba"
  end
end

---Sends the trace, at the very end of the job. A failure is logged and changes nothing.
---@param spent number seconds that the last report took
function trace:export(spent)
  if not self.exporter or self.run.settings.replay then return end
  close_job(self)
  http.propagate(nil)
  local seconds = (interrupt.signal() and AFTER_SIGNAL or BOTH) - spent
  local client, failure = self.run.outside:client()
  local done
  if client and seconds > 0 then done, failure = otlp.send(self.exporter, client, self.spans, seconds) end
  if done then return end
  self.run.log:event("warning", "trace.failed", {
    error = "the trace was not delivered: " .. (failure and failure.message or "no time was left after the last report"),
  })
end

return trace
