-- SPDX-License-Identifier: Apache-2.0
-- The job as a trace: events of the log become spans, which a collector gets at the end (https://opentelemetry.io/docs/specs/otlp, JSON
-- over HTTP; names are OpenTelemetry's). Commands and requests get the context (W3C Trace Context, Baggage).

local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local percent = require "sba.util.percent"
local reports = require "sba.outside.reports"
local retry = require "sba.util.retry"
local secret = require "sba.util.secret"
local text = require "native.text"
local version = require "native.bundle".version

---@class run.trace
local trace = {}
trace.__index = trace

local MOST_SPANS <const>, LONGEST_VALUE <const> = 20000, 1024 -- bytes of an attribute
local PROTOCOL <const>, TIMEOUT <const> = "http/json", 10000 -- milliseconds
local BOTH <const>, AFTER_SIGNAL <const> = 30, 5 -- seconds for the last report and the trace together
local INTERNAL <const>, CLIENT <const>, OK <const>, ERROR <const> = 1, 3, 1, 2 -- OTLP's kinds of spans, and how they end

local function of_header(value) return value and value:find "^[\x20-\x7E]+$" and value or nil end

local function parse_traceparent(value)
  local trace_id, parent, flags = (value or ""):match "^00%-([%da-f]+)%-([%da-f]+)%-([%da-f][%da-f])$"
  if not trace_id or #trace_id ~= 32 or #parent ~= 16 or trace_id:find "^0+$" or parent:find "^0+$" then return nil end
  return { value = value, trace_id = trace_id, parent = parent, sampled = tonumber(flags, 16) & 1 == 1 }
end

--- The values of "a=1,b=two%20words", by name.
local function pairs_of(list)
  local found = {}
  for pair in (list or ""):gmatch "[^,]+" do
    local name, value = pair:match "^([^=]+)=(.*)$"
    if name then found[text.trim(name)] = percent.decode(text.trim(value)) end
  end
  return found
end

--- nil, and why if it is a mistake.
local function exporter_of(environment)
  local function either(name) -- the variable for traces, or the one for all signals
    return secret.first_set(environment, { "OTEL_EXPORTER_OTLP_TRACES_" .. name, "OTEL_EXPORTER_OTLP_" .. name })
  end
  local endpoint, variable = either "ENDPOINT"
  local is_off = (environment.OTEL_SDK_DISABLED or ""):lower() == "true" or environment.OTEL_TRACES_EXPORTER == "none"
  if not endpoint or is_off then return nil end
  local protocol, timeout = either "PROTOCOL" or PROTOCOL, tonumber((either "TIMEOUT"))
  if protocol ~= PROTOCOL then
    return nil, ("the protocol %s of OTEL_EXPORTER_OTLP_PROTOCOL is not supported; set it to %s"):format(json.encode(protocol), PROTOCOL)
  end
  local lines = {}
  for name, value in pairs(pairs_of(secret.otlp_headers())) do
    if of_header(name .. value) then lines[#lines + 1] = name .. ": " .. value end
  end
  if not variable:find "TRACES" then endpoint = text.trim_end(endpoint, "/") .. "/v1/traces" end
  return { url = endpoint, headers = lines, timeout = (timeout or TIMEOUT) / 1000 }
end

local function nanoseconds(ago_ms) return tostring((interrupt.wall() - (ago_ms or 0)) * 1000000) end

local function attributes_of(values)
  local list = json.array {}
  for name, value in pairs(values) do
    local kind = math.type(value) == "integer" and "intValue" or "stringValue"
    list[#list + 1] = { key = name, value = { [kind] = text.cut(tostring(value), LONGEST_VALUE) } }
  end
  return list
end

-- Fields of events that are attributes.
local names <const> = {
  id = "cynode.step.id", type = "cynode.step.type", what = "cynode.step.what", exit_code = "process.exit.code", error_code = "error.type",
  model = "gen_ai.request.model", provider = "gen_ai.provider.name", prompt_tokens = "gen_ai.usage.input_tokens",
  completion_tokens = "gen_ai.usage.output_tokens", job_id = "cynode.job.id", task_id = "cynode.task.id", path = "file.path",
  response_model = "gen_ai.response.model",
  job_status = "cynode.job.status", tool = "gen_ai.tool.name", agent = "gen_ai.agent.name", operation = "gen_ai.operation.name",
}

local function describe(span, fields)
  for field, name in pairs(span and names or {}) do span.attributes[name] = fields[field] or span.attributes[name] end
end

local function open(self, slot, name, kind, operation, fields, ago_ms)
  local count, parent = #self.spans + 1, self.step or self.job
  if count > MOST_SPANS then return end
  self[slot] = {
    traceId = self.trace_id, spanId = text.sha256(self.seed .. count):sub(1, 16), traceState = self.state,
    parentSpanId = parent and parent.spanId or self.given.parent, name = name, kind = kind, startTimeUnixNano = nanoseconds(ago_ms),
    attributes = { [names.operation] = operation }, events = json.array {},
  }
  self.spans[count] = self[slot]
  describe(self[slot], fields)
end

local function close(self, slot, problem, fields)
  local span = self[slot]
  if not span then return end
  self[slot], span.endTimeUnixNano = nil, nanoseconds()
  span.status = problem and { code = ERROR, message = text.cut(problem, LONGEST_VALUE) } or { code = OK }
  describe(span, fields)
end

local function innermost(self) return self.request or self.step or self.job end

local function traceparent(self)
  local span = innermost(self)
  return span and ("00-%s-%s-01"):format(self.trace_id, span.spanId) or self.given.value
end

local function headers(self)
  local list = { "traceparent: " .. traceparent(self) }
  if self.state then list[#list + 1] = "tracestate: " .. self.state end
  if self.baggage then list[#list + 1] = "baggage: " .. self.baggage end
  return list
end

-- What events of the log begin and end.
local on = {
  ["step.started"] = function(self, fields)
    local operation = not self.run.steps and "execute_tool" or nil
    open(self, "step", (operation or "step") .. " " .. fields.type, INTERNAL, operation, fields)
    describe(self.step, { tool = operation and fields.type })
    local context, list = self.run.context, { "TRACEPARENT=" .. traceparent(self) }
    for _, variable in ipairs(context.environment) do
      if variable:sub(1, 12) ~= "TRACEPARENT=" then list[#list + 1] = variable end
    end
    context.environment = list
  end,
  ["step.finished"] = function(self, fields) close(self, "step", fields.error or fields.status ~= "success" and fields.status, fields) end,
  ["model.request"] = function(self, fields)
    close(self, "request", "the request failed", {})
    open(self, "request", "chat " .. fields.model, CLIENT, "chat", fields)
  end,
  ["model.response"] = function(self, fields)
    describe(self.request, { response_model = fields.model }) -- unless the server names another
    close(self, "request", fields.error, fields)
  end,
}
for _, event in ipairs { "report.sent", "report.failed", "artifact.uploaded", "artifact.failed" } do
  on[event] = function(self, fields)
    open(self, "past", fields.report and "report " .. fields.report or "upload", CLIENT, nil, fields, fields.duration_ms)
    close(self, "past", fields.error, fields)
  end
end

local function hear(self, level, event, fields)
  local span = innermost(self)
  if on[event] then
    on[event](self, fields)
  elseif span and (level == "warning" or level == "error") then
    table.insert(span.events, { name = event, timeUnixNano = nanoseconds(), attributes = attributes_of { error = fields.error } })
  end
end

---@param run run
---@return run.trace? nil: no collector, and no trace to go on with
function trace.new(run)
  local environment = run.environment
  local given, exporter, problem = parse_traceparent(environment.TRACEPARENT) or {}, exporter_of(environment)
  if problem then run:warn("trace.failed", problem) end
  if given.sampled == false then exporter = nil end
  if not exporter and not given.value then return nil end
  local random <close> = assert(io.open("/dev/urandom", "rb"))
  local seed = text.sha256(random:read(32))
  local self = setmetatable({
    run = run, exporter = exporter, seed = seed, spans = {}, given = given, trace_id = given.trace_id or seed:sub(1, 32),
    state = given.value and of_header(environment.TRACESTATE), baggage = of_header(environment.BAGGAGE),
  }, trace)
  http.propagate(function() return headers(self) end)
  if exporter then open(self, "job", "job", INTERNAL, nil, {}) end
  run.log:observe(self.trace_id, exporter and function(...) hear(self, ...) end)
  return self
end

local function close_all(self)
  local run, fields = self.run, self.run.fields or {}
  local failed = type(fields.failure_code) == "string" and fields.failure_code or nil
  close(self, "request", "the request failed", {})
  close(self, "step", "the step was cut off", {})
  if not run.steps then
    describe(self.job, { agent = "cynode-sba", operation = "invoke_agent" })
    self.job.name = "invoke_agent cynode-sba"
  end
  close(self, "job", failed and ("%s: %s"):format(failed, fields.failure_message), {
    job_id = run.record.job_id, task_id = run.record.task_id, job_status = fields.status, error_code = failed,
  })
end

local function body_of(self)
  local environment, list = self.run.environment, json.array {}
  for i, span in ipairs(self.spans) do span.attributes, list[i] = attributes_of(span.attributes), span end
  local resource = pairs_of(("service.name=cynode-sba,service.version=%s,%s"):format(version, environment.OTEL_RESOURCE_ATTRIBUTES or ""))
  resource["service.name"] = secret.first_set(environment, { "OTEL_SERVICE_NAME" }) or resource["service.name"]
  local scope = { scope = { name = "cynode-sba", version = version }, spans = list }
  local whole = { resource = { attributes = attributes_of(resource) }, scopeSpans = json.array { scope } }
  return json.encode { resourceSpans = json.array { whole } }
end

---@param spent number seconds that the last report took
function trace:export(spent)
  local run, exporter = self.run, self.exporter
  if not exporter or run.settings.replay then return end
  close_all(self)
  http.propagate(nil)
  local body, seconds = body_of(self), math.min((interrupt.signal() and AFTER_SIGNAL or BOTH) - spent, exporter.timeout)
  local done, failure = retry.within(math.max(0, seconds), function(until_when)
    return reports.post(run, "the trace collector", exporter.url, body, until_when, exporter.headers)
  end)
  if not done then run:warn("trace.failed", "the trace was not delivered: " .. failure.message) end
end

return trace
