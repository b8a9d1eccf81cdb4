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

local MOST_SPANS <const>, MOST_EVENTS <const> = 20000, 100 -- events: of one span
local LONGEST_STATE <const>, LONGEST_BAGGAGE <const> = 512, 8192 -- bytes, as W3C asks
local LONGEST_VALUE <const> = 1024 -- bytes of an attribute
local LARGEST_ANSWER <const> = 64 * 1024 -- bytes; the body is not used
local TIMEOUT <const>, CONNECT <const> = 10, 5 -- seconds in all, unless the environment says; to connect
local BOTH <const>, AFTER_SIGNAL <const> = 30, 5 -- seconds for the last report and the trace together
local PROTOCOL <const> = "http/json"
local INTERNAL <const>, CLIENT <const> = 1, 3 -- kinds of spans
local OK <const>, ERROR <const> = 1, 2

--- Whether a header or variable can carry it on.
local function passed_on(value, longest)
  return value and value ~= "" and #value <= longest and value:find("^[\x20-\x7E]*$") and value or nil
end

--- The parts of a traceparent; nil if it is not one.
local function parse(value)
  local head, trace_id, parent, flags = (value or ""):sub(1, 55):match("^(%x%x)%-(%x+)%-(%x+)%-(%x%x)$")
  if not head or #trace_id ~= 32 or #parent ~= 16 or value:find("%u") or head == "ff" or head == "00" and #value ~= 55 then return nil end
  if trace_id:find("^0*$") or parent:find("^0*$") then return nil end
  return { value = value, trace_id = trace_id, parent = parent, sampled = tonumber(flags, 16) & 1 == 1 }
end

--- "a=1,b=two%20words" as W3C Baggage writes it.
local function pairs_of(list)
  local found = {}
  for pair in (list or ""):gmatch("[^,]+") do
    local at = pair:find("=", 1, true)
    if at then found[text.trim(pair:sub(1, at - 1))] = url.unescaped(text.trim(pair:sub(at + 1))) end
  end
  return found
end

--- What the environment says about a collector; nil, and why where it is a mistake, if there is none.
local function exporter_of(environment)
  local function either(name) -- the variable for traces, or the one for all signals
    return first_set(environment, { "OTEL_EXPORTER_OTLP_TRACES_" .. name, "OTEL_EXPORTER_OTLP_" .. name })
  end
  local endpoint, variable = either "ENDPOINT"
  local is_off = (environment.OTEL_SDK_DISABLED or ""):lower() == "true" or environment.OTEL_TRACES_EXPORTER == "none"
  if not endpoint or is_off then return nil end
  local protocol, timeout = either "PROTOCOL", tonumber((either "TIMEOUT"))
  if protocol and protocol ~= PROTOCOL then
    return nil, ("the protocol %s of OTEL_EXPORTER_OTLP_PROTOCOL is not supported; set it to %s"):format(json.encode(protocol), PROTOCOL)
  end
  local headers = { "Content-Type: application/json" }
  for name, value in pairs(pairs_of(secret.otlp_headers())) do
    if passed_on(name .. value, math.maxinteger) then headers[#headers + 1] = name .. ": " .. value end
  end
  return {
    url = variable:find("TRACES", 1, true) and endpoint or text.trim_end(endpoint, "/") .. "/v1/traces", headers = headers,
    timeout = timeout and timeout > 0 and timeout / 1000 or TIMEOUT,
  }
end

---The trace of a run; nil if the environment neither names a collector nor began a trace.
---@param run run
---@return run.trace?
function trace.new(run)
  local environment = run.environment
  local given, exporter, problem = parse(environment.TRACEPARENT), exporter_of(environment)
  if problem then run.log:event("warning", "trace.failed", { error = problem }) end
  if given and not given.sampled then exporter = nil end
  if not exporter and not given then return nil end
  local random <close> = io.open("/dev/urandom", "rb")
  local seed = text.sha256((random and random:read(32) or "") .. interrupt.wall() .. interrupt.now() .. tostring({}))
  local self = setmetatable({
    run = run, exporter = exporter, seed = seed, spans = {}, given = given or {},
    trace_id = given and given.trace_id or seed:sub(1, 32),
    state = given and passed_on(environment.TRACESTATE, LONGEST_STATE), baggage = passed_on(environment.BAGGAGE, LONGEST_BAGGAGE),
  }, trace)
  http.propagate(function() return self:headers() end)
  if exporter then self.job = self:open("job", INTERNAL) end
  run.log:observe(self.trace_id, exporter and function(level, event, fields) self:note(level, event, fields) end)
  return self
end

--- Begins a span; nil where there are too many.
function trace:open(name, kind, parent, operation)
  local count = #self.spans + 1
  if count > MOST_SPANS then return nil end
  self.spans[count] = {
    id = text.sha256(self.seed .. count):sub(1, 16), parent = parent and parent.id or self.given.parent, name = name, kind = kind,
    began = interrupt.wall(), attributes = { ["gen_ai.operation.name"] = operation }, events = json.array {},
  }
  return self.spans[count]
end

-- The fields of events that are attributes.
local names <const> = {
  id = "cynode.step.id", type = "cynode.step.type", what = "cynode.step.what", exit_code = "process.exit.code", error_code = "error.type",
  model = "gen_ai.request.model", provider = "gen_ai.provider.name", prompt_tokens = "gen_ai.usage.input_tokens",
  completion_tokens = "gen_ai.usage.output_tokens", path = "file.path", job_id = "cynode.job.id", task_id = "cynode.task.id",
  job_status = "cynode.job.status", tool = "gen_ai.tool.name", agent = "gen_ai.agent.name", http_status = "http.response.status_code",
}

--- Sets what an event says of a span.
local function describe(span, fields)
  for field, name in pairs(names) do
    if span and fields[field] ~= nil then span.attributes[name] = fields[field] end
  end
end

local function close(span, failed, fields)
  if not span then return end
  span.ended, span.error = interrupt.wall(), failed or nil
  describe(span, fields or {})
end

--- The innermost span.
function trace:current() return self.request or self.step or self.job end

--- The traceparent of what is done now.
local function parent_now(self)
  local span = self:current()
  return span and ("00-%s-%s-01"):format(self.trace_id, span.id) or self.given.value
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
  local context, list = self.run.context, { "TRACEPARENT=" .. parent_now(self) }
  for _, variable in ipairs(context.environment) do
    if variable:sub(1, 12) ~= "TRACEPARENT=" then list[#list + 1] = variable end
  end
  context.environment = list
end

-- What begins with an event, and what ends with one.
local begins, ends = {}, { ["step.finished"] = "step", ["model.response"] = "request" }

begins["step.started"] = function(self, fields)
  local is_tool = not self.run.steps
  self.step = self:open((is_tool and "execute_tool " or "step ") .. fields.type, INTERNAL, self.job, is_tool and "execute_tool" or nil)
  describe(self.step, fields)
  describe(self.step, { tool = is_tool and fields.type or nil })
  set_environment(self)
end

begins["model.request"] = function(self, fields)
  close(self.request, "the request failed")
  self.request = nil
  self.request = self:open("chat " .. fields.model, CLIENT, self:current(), "chat")
  describe(self.request, fields)
end

--- A report or an upload that is over: it began so many milliseconds ago.
local function add_past(self, fields)
  local span = self:open(fields.report and "report " .. fields.report or "upload", CLIENT, self:current())
  close(span, fields.error, { path = fields.path, http_status = math.tointeger(fields.status) })
  if span then span.began = span.ended - (fields.duration_ms or 0) end
end

for _, name in ipairs { "report.sent", "report.failed", "artifact.uploaded", "artifact.failed" } do begins[name] = add_past end

--- An event of the log: the beginning or the end of a span, or, if it is a warning or an error, an event of the innermost span.
function trace:note(level, event, fields)
  local span, slot = self:current(), ends[event]
  if begins[event] then return begins[event](self, fields) end
  if slot then
    close(self[slot], fields.status ~= "success" and (fields.error or fields.status), fields)
    self[slot] = nil
  elseif (level == "warning" or level == "error") and span and #span.events < MOST_EVENTS then
    table.insert(span.events, { name = event, at = interrupt.wall(), attributes = { error = fields.error or fields.failure_message } })
  end
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
    value = is_count and { intValue = tostring(value) } or { stringValue = text.cut(value, LONGEST_VALUE) }
    list[#list + 1] = { key = name, value = value }
  end
  table.sort(list, function(a, b) return a.key < b.key end)
  return list
end

local function nanoseconds(milliseconds) return tostring(milliseconds * 1000000) end

local function encoded(self, span)
  for i, event in ipairs(span.events) do
    span.events[i] = { name = event.name, timeUnixNano = nanoseconds(event.at), attributes = attributes_of(event.attributes) }
  end
  return {
    traceId = self.trace_id, spanId = span.id, parentSpanId = span.parent, traceState = self.state, name = span.name, kind = span.kind,
    startTimeUnixNano = nanoseconds(span.began), endTimeUnixNano = nanoseconds(span.ended), attributes = attributes_of(span.attributes),
    events = span.events, status = span.error and { code = ERROR, message = text.cut(span.error, LONGEST_VALUE) } or { code = OK },
  }
end

--- The body of the request: all spans, of this program.
local function body_of(self)
  local environment, list = self.run.environment, json.array {}
  for i, span in ipairs(self.spans) do list[i] = encoded(self, span) end
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
  local seconds = math.min((interrupt.signal() and AFTER_SIGNAL or BOTH) - spent, exporter.timeout)
  local body, client, failure = body_of(self), run.outside:client()
  local done = client and seconds > 0 or nil
  if done then
    done, failure = retry.within(seconds, function(until_when)
      local exchange <close>, status = http.send(client, {
        method = "POST", url = exporter.url, body = body, headers = exporter.headers, connect_timeout = CONNECT,
      }, until_when)
      if not exchange then return nil, status end
      if status >= 300 then return nil, http.refusal(exchange, status, "the trace collector at " .. url.shown(exporter.url)) end
      http.read(exchange, LARGEST_ANSWER)
      return true
    end)
  end
  if done then return end
  run.log:event("warning", "trace.failed", {
    error = "the trace was not delivered: " .. (failure and failure.message or "no time was left after the last report"),
  })
end

return trace
