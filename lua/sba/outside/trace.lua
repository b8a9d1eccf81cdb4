-- SPDX-License-Identifier: Apache-2.0
-- The job as a trace: events of the log become spans, which a collector gets at the end
-- (https://opentelemetry.io/docs/specs/otlp, JSON over HTTP; names are OpenTelemetry's). Commands
-- and requests get the context (W3C Trace Context, Baggage).

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
---@field run run
---@field exporter? { url: string, headers: string[], timeout: number } nil: the context is only passed on
---@field given { value?: string, trace_id?: string, parent?: string, sampled?: boolean } TRACEPARENT
---@field trace_id string
---@field seed string of the spans' ids
---@field state? string TRACESTATE
---@field baggage? string BAGGAGE
---@field spans table[] all
---@field job? table the open span, as the next two
---@field step? table
---@field request? table to a model
local trace = {}
trace.__index = trace

-- LONGEST_VALUE: bytes of an attribute.
local MOST_SPANS <const>, LONGEST_VALUE <const> = 20000, 1024
local PROTOCOL <const>, TIMEOUT <const> = "http/json", 10000 -- TIMEOUT: milliseconds
local INTERNAL <const>, CLIENT <const> = 1, 3 -- OTLP's kinds of spans
local OK <const>, ERROR <const> = 1, 2 -- and how they end

local function of_header(value) return value and value:match "^[\x20-\x7E]+$" end

local TRACEPARENT <const> = "^00%-([%da-f]+)%-([%da-f]+)%-([%da-f][%da-f])$"

local function parse_traceparent(value)
  local trace_id, parent, flags = (value or ""):match(TRACEPARENT)
  if not trace_id or #trace_id ~= 32 or #parent ~= 16 then return {} end
  if trace_id:find "^0+$" or parent:find "^0+$" then return {} end
  local is_sampled = tonumber(flags, 16) & 1 == 1
  return { value = value, trace_id = trace_id, parent = parent, sampled = is_sampled }
end

-- The values of "a=1,b=two%20words", by name.
local function pairs_of(list)
  local found = {}
  for pair in (list or ""):gmatch "[^,]+" do
    local name, value = pair:match "^([^=]+)=(.*)$"
    if name then found[text.trim(name)] = percent.decode(text.trim(value)) end
  end
  return found
end

-- Returns nil without one, and why if it is a mistake.
local function exporter_of(environment)
  -- The variable for traces, or the one for all signals.
  local function either(name)
    local variables = { "OTEL_EXPORTER_OTLP_TRACES_" .. name, "OTEL_EXPORTER_OTLP_" .. name }
    return secret.first_set(environment, variables)
  end
  local is_off = (environment.OTEL_SDK_DISABLED or ""):lower() == "true"
  local endpoint, variable = either "ENDPOINT"
  if not endpoint or is_off or environment.OTEL_TRACES_EXPORTER == "none" then return nil end
  local protocol = either "PROTOCOL" or PROTOCOL
  if protocol ~= PROTOCOL then
    local message = "the protocol %s of OTEL_EXPORTER_OTLP_PROTOCOL is not supported; set it to %s"
    return nil, message:format(json.encode(protocol), PROTOCOL)
  end
  local lines = {}
  for name, value in pairs(pairs_of(secret.otlp_headers())) do
    if of_header(name .. value) then lines[#lines + 1] = name .. ": " .. value end
  end
  if not variable:find "TRACES" then endpoint = http.below(endpoint, "/v1/traces") end
  local timeout = tonumber((either "TIMEOUT")) or TIMEOUT
  return { url = endpoint, headers = lines, timeout = timeout / 1000 }
end

local function nanoseconds(ago_ms) return tostring((interrupt.wall() - (ago_ms or 0)) * 1000000) end

local function value_of(value)
  if type(value) == "boolean" then return { boolValue = value } end
  local kind = math.type(value) == "integer" and "intValue" or "stringValue"
  return { [kind] = text.cut(tostring(value), LONGEST_VALUE) }
end

local function attributes_of(values)
  local list = json.array {}
  for name, value in pairs(values) do list[#list + 1] = { key = name, value = value_of(value) } end
  return list
end

-- Fields of events that are attributes.
local names <const> = {
  job_id = "cynode.job.id", task_id = "cynode.task.id", job_status = "cynode.job.status",
  id = "cynode.step.id", type = "cynode.step.type", what = "cynode.step.what",
  tolerated = "cynode.step.tolerated",
  exit_code = "process.exit.code", error_code = "error.type", path = "file.path",
  operation = "gen_ai.operation.name", agent = "gen_ai.agent.name", tool = "gen_ai.tool.name",
  provider = "gen_ai.provider.name",
  model = "gen_ai.request.model", response_model = "gen_ai.response.model",
  prompt_tokens = "gen_ai.usage.input_tokens", completion_tokens = "gen_ai.usage.output_tokens",
}

local function describe(span, fields)
  for field, value in pairs(fields) do
    if span and names[field] then span.attributes[names[field]] = value end
  end
end

-- Returns nil where there are too many.
local function open(self, name, kind, fields, ago_ms)
  local count, parent = #self.spans + 1, self.step or self.job
  if count > MOST_SPANS then return nil end
  local span = {
    traceId = self.trace_id, traceState = self.state,
    spanId = text.sha256(self.seed .. count):sub(1, 16),
    parentSpanId = parent and parent.spanId or self.given.parent,
    name = name, kind = kind, startTimeUnixNano = nanoseconds(ago_ms),
    attributes = {}, events = json.array {},
  }
  self.spans[count] = span
  describe(span, fields)
  return span
end

-- Returns nil: the span is closed.
local function close(span, problem, fields)
  if not span then return nil end
  span.endTimeUnixNano, span.status = nanoseconds(), { code = OK }
  if problem then span.status = { code = ERROR, message = text.cut(problem, LONGEST_VALUE) } end
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
    local kind, is_models = fields.type, not self.run.steps
    local name = (is_models and "execute_tool " or "step ") .. kind
    self.step = open(self, name, INTERNAL, fields)
    if is_models then describe(self.step, { operation = "execute_tool", tool = kind }) end
    local context, list = self.run.context, { "TRACEPARENT=" .. traceparent(self) }
    for _, variable in ipairs(context.environment) do
      if variable:sub(1, 12) ~= "TRACEPARENT=" then list[#list + 1] = variable end
    end
    context.environment = list
  end,
  ["step.finished"] = function(self, fields)
    self.step = close(self.step, fields.error or fields.status ~= "success" and fields.status, fields)
  end,
  ["model.request"] = function(self, fields)
    close(self.request, "the request failed", {})
    self.request = open(self, "chat " .. fields.model, CLIENT, fields)
    describe(self.request, { operation = "chat" })
  end,
  ["model.response"] = function(self, fields)
    -- This model replied, unless the server names another.
    describe(self.request, { response_model = fields.model })
    self.request = close(self.request, fields.error, fields)
  end,
}
for _, event in ipairs { "report.sent", "report.failed", "artifact.uploaded", "artifact.failed" } do
  on[event] = function(self, fields)
    local name = fields.report and "report " .. fields.report or "upload"
    close(open(self, name, CLIENT, fields, fields.duration_ms), fields.error, fields)
  end
end

local function hear(self, level, event, fields)
  local span = innermost(self)
  if on[event] then
    on[event](self, fields)
  elseif span and (level == "warning" or level == "error") then
    table.insert(span.events, {
      name = event, timeUnixNano = nanoseconds(), attributes = attributes_of { error = fields.error },
    })
  end
end

---@param run run
---@return run.trace? nil: no collector, and no trace to go on with
function trace.new(run)
  local environment = run.environment
  local given = parse_traceparent(environment.TRACEPARENT)
  local exporter, problem = exporter_of(environment)
  if problem then run:warn("trace.failed", problem) end
  if given.sampled == false then exporter = nil end
  if not exporter and not given.value then return nil end
  -- 64 random bits, and which process it is.
  local seed = text.sha256(run.runner.word)
  local self = setmetatable({
    run = run, exporter = exporter, spans = json.array {}, seed = seed,
    given = given, state = given.value and of_header(environment.TRACESTATE),
    trace_id = given.trace_id or seed:sub(1, 32), baggage = of_header(environment.BAGGAGE),
  }, trace)
  http.propagate(function() return headers(self) end)
  if exporter then self.job = open(self, "job", INTERNAL, {}) end
  run.log:observe(self.trace_id, exporter and function(...) hear(self, ...) end)
  return self
end

local function close_all(self)
  local run, fields = self.run, self.run.final.fields or {}
  close(self.request, "the request failed", {})
  close(self.step, "the step was cut off", {})
  if not run.steps then
    describe(self.job, { agent = "cynode-sba", operation = "invoke_agent" })
    self.job.name = "invoke_agent cynode-sba"
  end
  local code, problem = json.given(fields.failure_code), nil
  if code then problem = code .. ": " .. fields.failure_message end
  describe(self.job, { job_id = run.record.job_id, task_id = run.record.task_id })
  close(self.job, problem, { job_status = fields.status, error_code = code })
end

local function body_of(self)
  local environment = self.run.environment
  for _, span in ipairs(self.spans) do span.attributes = attributes_of(span.attributes) end
  local resource = pairs_of(environment.OTEL_RESOURCE_ATTRIBUTES)
  resource["service.version"] = resource["service.version"] or version
  local name = secret.first_set(environment, { "OTEL_SERVICE_NAME" })
  resource["service.name"] = name or resource["service.name"] or "cynode-sba"
  local scope = { scope = { name = "cynode-sba", version = version }, spans = self.spans }
  local whole = { resource = { attributes = attributes_of(resource) }, scopeSpans = json.array { scope } }
  return json.encode { resourceSpans = json.array { whole } }
end

---@param spent number seconds that the last report took, of those for both
function trace:export(spent)
  local run, exporter = self.run, self.exporter
  if not exporter or run.settings.replay then return end
  close_all(self)
  http.propagate(nil)
  local body = body_of(self)
  local seconds = math.min(reports.seconds_of_end() - spent, exporter.timeout)
  local done, failure = retry.within(math.max(0, seconds), function(until_when)
    return reports.post(run, "the trace collector", exporter.url, body, until_when, exporter.headers)
  end)
  if not done then run:warn("trace.failed", "the trace was not delivered: " .. failure.message) end
end

return trace
