-- SPDX-License-Identifier: Apache-2.0
-- Sends spans to a collector: OTLP over HTTP, as JSON (https://opentelemetry.io/docs/specs/otlp, ids in hex). The variables are those
-- of the OpenTelemetry SDKs (https://opentelemetry.io/docs/specs/otel/protocol/exporter).

local first_set = require "sba.util.first_set"
local http = require "sba.util.http"
local json = require "sba.util.json"
local retry = require "sba.util.retry"
local secret = require "sba.util.secret"
local text = require "native.text"
local url = require "sba.util.url"

local otlp = {}

local TIMEOUT <const> = 10 -- seconds in all, unless the environment says
local CONNECT <const> = 5
local LARGEST_ANSWER <const> = 64 * 1024 -- bytes; the body is not used
local LONGEST_VALUE <const> = 1024 -- bytes of an attribute
local PROTOCOL <const> = "http/json"

---@class otlp.span
---@field trace_id string 32 hex digits
---@field span_id string 16 hex digits
---@field parent_id? string
---@field trace_state? string
---@field name string
---@field kind "internal"|"client"
---@field began integer milliseconds of the wall clock
---@field ended integer likewise
---@field attributes table<string, string|number|boolean>
---@field events? { name: string, at: integer, attributes: table }[]
---@field error? string what went wrong; nil: nothing

---@class otlp.exporter
---@field url string
---@field timeout number seconds
---@field headers string[]
---@field resource table<string, string>

--- The value of the variable for traces, or of the one for all signals.
local function either(environment, name)
  local own = "OTEL_EXPORTER_OTLP_TRACES_" .. name
  local value, variable = first_set(environment, { own, "OTEL_EXPORTER_OTLP_" .. name })
  return value, variable == own
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

local function headers()
  local list = { "Content-Type: application/json" }
  for name, value in pairs(pairs_of(secret.otlp_headers())) do
    if (name .. value):find("^[\x20-\x7E]*$") then list[#list + 1] = name .. ": " .. value end
  end
  table.sort(list)
  return list
end

local function resource_of(environment, version)
  local resource = pairs_of(environment.OTEL_RESOURCE_ATTRIBUTES)
  local name = environment.OTEL_SERVICE_NAME
  resource["service.name"] = name and name ~= "" and name or resource["service.name"] or "cynode-sba"
  resource["service.version"] = resource["service.version"] or version
  return resource
end

---What the environment says about exporting traces.
---@param environment table<string, string>
---@param version string of this program
---@return otlp.exporter? exporter nil: traces are not exported
---@return string? problem why they cannot be
function otlp.new(environment, version)
  local endpoint, is_own = either(environment, "ENDPOINT")
  local is_off = (environment.OTEL_SDK_DISABLED or ""):lower() == "true" or environment.OTEL_TRACES_EXPORTER == "none"
  if not endpoint or is_off then return nil end
  local protocol = either(environment, "PROTOCOL")
  if protocol and protocol ~= PROTOCOL then
    return nil, ("the protocol %s of OTEL_EXPORTER_OTLP_PROTOCOL is not supported; set it to %s"):format(json.encode(protocol), PROTOCOL)
  end
  local timeout = tonumber((either(environment, "TIMEOUT")))
  return {
    url = is_own and endpoint or text.trim_end(endpoint, "/") .. "/v1/traces",
    timeout = timeout and timeout > 0 and timeout / 1000 or TIMEOUT,
    headers = headers(), resource = resource_of(environment, version), version = version,
  }
end

local function value_of(value)
  if type(value) == "boolean" then return { boolValue = value } end
  if math.type(value) == "integer" then return { intValue = tostring(value) } end
  if type(value) == "number" then return { doubleValue = value } end
  return { stringValue = text.cut(value, LONGEST_VALUE) }
end

local function attributes_of(values)
  local names, list = {}, json.array {}
  for name in pairs(values) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do list[i] = { key = name, value = value_of(values[name]) } end
  return list
end

local function nanoseconds(milliseconds)
  return tostring(milliseconds * 1000000)
end

local kinds <const> = { internal = 1, client = 3 }
local OK <const>, ERROR <const> = 1, 2

local function encoded(span)
  local events = json.array {}
  for i, event in ipairs(span.events or {}) do
    events[i] = { name = event.name, timeUnixNano = nanoseconds(event.at), attributes = attributes_of(event.attributes) }
  end
  return {
    traceId = span.trace_id, spanId = span.span_id, parentSpanId = span.parent_id, traceState = span.trace_state, name = span.name,
    kind = kinds[span.kind], startTimeUnixNano = nanoseconds(span.began), endTimeUnixNano = nanoseconds(span.ended),
    attributes = attributes_of(span.attributes), events = events,
    status = span.error and { code = ERROR, message = text.cut(span.error, LONGEST_VALUE) } or { code = OK },
  }
end

--- The body of an export request.
local function body_of(exporter, spans)
  local list = json.array {}
  for i, span in ipairs(spans) do list[i] = encoded(span) end
  return json.encode { resourceSpans = json.array { {
    resource = { attributes = attributes_of(exporter.resource) },
    scopeSpans = json.array { { scope = { name = "cynode-sba", version = exporter.version }, spans = list } },
  } } }
end

---Sends spans, within the exporter's timeout and the seconds given; transient failures are tried again in that time.
---@param exporter otlp.exporter
---@param client native.http.client
---@param spans otlp.span[]
---@param seconds number
---@return true?, http.failure?
function otlp.send(exporter, client, spans, seconds)
  local body = body_of(exporter, spans)
  return retry.within(math.min(seconds, exporter.timeout), function(until_when)
    local exchange <close>, status = http.send(client, {
      method = "POST", url = exporter.url, body = body, headers = exporter.headers, connect_timeout = CONNECT,
    }, until_when)
    if not exchange then return nil, status end
    if status >= 300 then return nil, http.refusal(exchange, status, "the trace collector at " .. url.shown(exporter.url)) end
    http.read(exchange, LARGEST_ANSWER)
    return true
  end)
end

return otlp
