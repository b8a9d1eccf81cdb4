-- SPDX-License-Identifier: Apache-2.0
-- The job as a trace: the log's events become spans, which a collector gets at the end of the job (OTLP over HTTP, as JSON, ids in hex:
-- https://opentelemetry.io/docs/specs/otlp). Commands and requests get the context (W3C Trace Context, Baggage). The variables are those
-- of the OpenTelemetry SDKs, the names of what models do OpenTelemetry's for generative AI.
--
-- A trace that the environment began goes on. Without a collector, its context is passed on as it came.

local first_set = require "sba.util.first_set"
local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local retry = require "sba.util.retry"
local secret = require "sba.util.secret"
local text = require "native.text"
local url = require "sba.util.url"
local version = require "native.bundle".version

---@class run.trace
local trace = {}
trace.__index = trace

local MOST_SPANS <const> = 20000
local LONGEST_VALUE <const> = 1024 -- bytes of an attribute
local TIMEOUT <const>, CONNECT <const> = 10000, 5 -- milliseconds in all, unless the environment says; seconds to connect
local BOTH <const>, AFTER_SIGNAL <const> = 30, 5 -- seconds for the last report and the trace together
local INTERNAL <const>, CLIENT <const> = 1, 3 -- kinds of spans
local OK <const>, ERROR <const> = 1, 2

--- The value where a header can carry it, else nil.
local function of_header(value)
  return value and value:find "^[\x20-\x7E]+$" and value or nil
end

--- The parts of a traceparent; nil if it is not one.
local function parse(value)
  local trace_id, parent, flags = (value or ""):match "^00%-([%da-f]+)%-([%da-f]+)%-([%da-f][%da-f])$"
  if not trace_id or #trace_id ~= 32 or #parent ~= 16 or trace_id:find "^0+$" or parent:find "^0+$" then return nil end
  return { value = value, trace_id = trace_id, parent = parent, sampled = tonumber(flags, 16) & 1 == 1 }
end

--- The values of "a=1,b=two%20words", by name.
local function pairs_of(list)
  local found = {}
  for pair in (list or ""):gmatch("[^,]+") do
    local at = pair:find("=", 1, true)
    if at then found[text.trim(pair:sub(1, at - 1))] = url.unescaped(text.trim(pair:sub(at + 1))) end
  end
  return found
end

--- What the environment says about a collector; nil: there is none.
local function exporter_of(environment)
  local function either(name) -- the variable for traces, or the one for all signals
    return first_set(environment, { "OTEL_EXPORTER_OTLP_TRACES_" .. name, "OTEL_EXPORTER_OTLP_" .. name })
  end
  local endpoint, variable = either "ENDPOINT"
  local is_off = (environment.OTEL_SDK_DISABLED or ""):lower() == "true" or environment.OTEL_TRACES_EXPORTER == "none"
  if not endpoint or is_off then return nil end
  local headers, timeout = { "Content-Type: application/json" }, tonumber((either "TIMEOUT"))
  for name, value in pairs(pairs_of(secret.otlp_headers())) do
    if of_header(name .. value) then headers[#headers + 1] = name .. ": " .. value end
  end
  return {
    url = variable:find("TRACES", 1, true) and endpoint or text.trim_end(endpoint, "/") .. "/v1/traces", headers = headers,
    timeout = (timeout or TIMEOUT) / 1000,
  }
end

local function nanoseconds() return tostring(interrupt.wall() * 1000000) end

--- Begins a span; nil where there are too many.
local function open(self, name, kind, parent, operation)
  local count = #self.spans + 1
  if count > MOST_SPANS then return nil end
  self.spans[count] = {
    traceId = self.trace_id, spanId = text.sha256(self.seed .. count):sub(1, 16), traceState = self.state,
    parentSpanId = parent and parent.spanId or self.given.parent, name = name, kind = kind, startTimeUnixNano = nanoseconds(),
    attributes = { ["gen_ai.operation.name"] = operation },
  }
  return self.spans[count]
end

-- The fields of events that are attributes.
local names <const> = {
  id = "cynode.step.id", type = "cynode.step.type", what = "cynode.step.what", exit_code = "process.exit.code", error_code = "error.type",
  model = "gen_ai.request.model", provider = "gen_ai.provider.name", prompt_tokens = "gen_ai.usage.input_tokens",
  completion_tokens = "gen_ai.usage.output_tokens", job_id = "cynode.job.id", task_id = "cynode.task.id",
  job_status = "cynode.job.status", tool = "gen_ai.tool.name", agent = "gen_ai.agent.name",
}

--- Sets what an event says of a span.
local function describe(span, fields)
  for field, name in pairs(span and names or {}) do
    if fields[field] ~= nil then span.attributes[name] = fields[field] end
  end
end

local function close(span, problem, fields)
  if not span then return end
  span.endTimeUnixNano = nanoseconds()
  span.status = problem and { code = ERROR, message = text.cut(problem, LONGEST_VALUE) } or { code = OK }
  describe(span, fields or {})
end

--- The traceparent of what is done now.
local function parent_now(self)
  local span = self.request or self.step or self.job
  return span and ("00-%s-%s-01"):format(self.trace_id, span.spanId) or self.given.value
end

--- Headers that a request carries.
local function headers(self)
  local list = { "traceparent: " .. parent_now(self) }
  if self.state then list[#list + 1] = "tracestate: " .. self.state end
  if self.baggage then list[#list + 1] = "baggage: " .. self.baggage end
  return list
end

--- Gives the commands of a step its span.
local function set_environment(self)
  local context, list = self.run.context, { "TRACEPARENT=" .. parent_now(self) }
  for _, variable in ipairs(context.environment) do
    if variable:sub(1, 12) ~= "TRACEPARENT=" then list[#list + 1] = variable end
  end
  context.environment = list
end

-- What events of the log begin and end.
local on = {}

on["step.started"] = function(self, fields)
  local is_tool = not self.run.steps
  self.step = open(self, (is_tool and "execute_tool " or "step ") .. fields.type, INTERNAL, self.job, is_tool and "execute_tool" or nil)
  describe(self.step, fields)
  describe(self.step, { tool = is_tool and fields.type or nil })
  set_environment(self)
end

on["step.finished"] = function(self, fields)
  close(self.step, fields.status ~= "success" and (fields.error or fields.status), fields)
  self.step = nil
end

on["model.request"] = function(self, fields)
  close(self.request, "the request failed")
  self.request = open(self, "chat " .. fields.model, CLIENT, self.step or self.job, "chat")
  describe(self.request, fields)
end

on["model.response"] = function(self, fields)
  close(self.request, fields.error, fields)
  self.request = nil
end

---The trace of a run; nil if the environment neither names a collector nor began a trace.
---@param run run
---@return run.trace?
function trace.new(run)
  local environment = run.environment
  local given = parse(environment.TRACEPARENT)
  local exporter = (not given or given.sampled) and exporter_of(environment) or nil
  if not exporter and not given then return nil end
  local random <close> = assert(io.open("/dev/urandom", "rb"))
  local seed = text.sha256(random:read(32))
  local self = setmetatable({
    run = run, exporter = exporter, seed = seed, spans = {}, given = given or {},
    trace_id = given and given.trace_id or seed:sub(1, 32),
    state = given and of_header(environment.TRACESTATE), baggage = of_header(environment.BAGGAGE),
  }, trace)
  http.propagate(function() return headers(self) end)
  if exporter then self.job = open(self, "job", INTERNAL) end
  run.log:observe(self.trace_id, exporter and function(_, event, fields)
    if on[event] then on[event](self, fields) end
  end)
  return self
end

--- The job's span, at its end.
local function close_job(self)
  local run, job = self.run, self.job
  local fields = run.fields or {}
  local failed = type(fields.failure_code) == "string" and fields.failure_code or nil
  close(self.request, "the request failed")
  close(self.step, "the step was cut off")
  close(job, failed and ("%s: %s"):format(failed, fields.failure_message), {
    job_id = run.record.job_id, task_id = run.record.task_id, job_status = fields.status, error_code = failed,
    agent = not run.steps and "cynode-sba" or nil,
  })
  if not run.steps then job.name, job.attributes["gen_ai.operation.name"] = "invoke_agent cynode-sba", "invoke_agent" end
end

local function attributes_of(values)
  local list = json.array {}
  for name, value in pairs(values) do
    local is_count = math.type(value) == "integer"
    list[#list + 1] = {
      key = name, value = is_count and { intValue = tostring(value) } or { stringValue = text.cut(value, LONGEST_VALUE) },
    }
  end
  table.sort(list, function(a, b) return a.key < b.key end)
  return list
end

--- The body of the request: all spans, of this program.
local function body_of(self)
  local environment, list = self.run.environment, json.array {}
  for i, span in ipairs(self.spans) do span.attributes, list[i] = attributes_of(span.attributes), span end
  local resource = pairs_of(environment.OTEL_RESOURCE_ATTRIBUTES)
  resource["service.name"] = first_set(environment, { "OTEL_SERVICE_NAME" }) or resource["service.name"] or "cynode-sba"
  resource["service.version"] = resource["service.version"] or version
  return json.encode { resourceSpans = json.array { {
    resource = { attributes = attributes_of(resource) },
    scopeSpans = json.array { { scope = { name = "cynode-sba", version = version }, spans = list } },
  } } }
end

---Sends the trace, at the very end of the job. A failure is logged and changes nothing.
---@param spent number seconds that the last report took
function trace:export(spent)
  local run, exporter = self.run, self.exporter
  if not exporter or run.settings.replay then return end
  close_job(self)
  http.propagate(nil)
  local client, failure = run:client()
  local seconds = math.min((interrupt.signal() and AFTER_SIGNAL or BOTH) - spent, exporter.timeout)
  local request = { method = "POST", url = exporter.url, body = body_of(self), headers = exporter.headers, connect_timeout = CONNECT }
  local done = client and retry.within(math.max(0, seconds), function(until_when)
    local exchange <close>, status = http.send(client, request, until_when)
    failure = not exchange and status or nil
    if exchange and status >= 300 then failure = http.refusal(exchange, status, "the trace collector at " .. url.shown(exporter.url)) end
    return not failure or nil, failure
  end)
  if not done then run.log:event("warning", "trace.failed", { error = "the trace was not delivered: " .. failure.message }) end
end

return trace
