-- SPDX-License-Identifier: Apache-2.0
-- Streamable HTTP: a JSON-RPC message goes out by POST; messages come back as one JSON text or as a stream of events.
-- Failures are those of sba.util.http, and: "unauthorized" (401), "tool_denied" (403 to a call), "refused" (another
-- 4xx), "redirected", "gateway_failed" (429, 5xx), "tool_refused" (a JSON-RPC error), "tool_unavailable" (501),
-- "session_lost", "bad_session" (fits no header), "request_lost" (may have run), "not_mcp", "unsupported_version",
-- "input_required", "bad_answer", "slow_answer".

local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local json_tolerant = require "sba.util.json_tolerant"
local version = require "native.bundle".version

local transport = {
  CLIENT = { name = "cynode-sba", version = version },
  CALL = "tools/call", LIST = "tools/list",
}

-- Seconds.
local NO_LIMIT <const> = 1e8
local CONNECT <const> = 10
local ANSWER <const> = 20 -- of all but calls
local STANDALONE <const> = 1 -- until that stream has begun
local LAST_CONNECT <const>, LAST_ANSWER <const> = 0.5, 0.25 -- after the deadline

local DEEPEST_LIST <const> = 500 -- levels of a list of tools

---@class mcp.failure: http.failure
---@field rpc? { code: integer?, message: string, data: any } the JSON-RPC error

---@class mcp.connection a server
---@field url string
---@field http native.http.client
---@field ids integer the last one used
---@field offered? string session that the last answer named
---@field session? string legacy only, as the next two
---@field version? string
---@field standalone? { exchange: native.http.exchange?, thread: thread? } its own stream; no thread: it has none
local connection = {}
connection.__index = connection

---@class mcp.limits
---@field until_when? number on the monotonic clock; nil: the job's deadline
---@field idle? number seconds of a call without progress; nil: no limit

---@class mcp.request: mcp.limits
---@field id integer
---@field method string of JSON-RPC
---@field progressed number monotonic time of the last progress
---@field session? string that its answer names
---@field last_id? string of its stream's events
---@field retry? integer milliseconds until a broken stream is resumed

---@param options mcp.options
---@param url? string default: the options'
---@return mcp.connection
function transport.connection(options, url)
  return setmetatable({
    url = url or options.url, http = options.http, token = options.token, ids = 0,
    answer_timeout = options.answer_timeout or ANSWER,
  }, connection)
end

---All but calls must be answered soon.
---@param method string
---@param limits mcp.limits
---@return mcp.request
function connection:new_request(method, limits)
  local until_when, now = limits.until_when, interrupt.now()
  if method ~= transport.CALL then until_when = math.min(until_when or math.huge, now + self.answer_timeout) end
  self.ids = self.ids + 1
  return { id = self.ids, method = method, until_when = until_when, idle = limits.idle, progressed = now }
end

---@return string
function connection:display_name() return "the MCP gateway at " .. http.display_url(self.url) end

---@param code string
---@param words string a format, after the server's place
---@param ... any
---@return mcp.failure
function connection:failure(code, words, ...)
  return http.failure(code, self:display_name() .. " " .. words:format(...))
end

-- A message's JSON; with a file as an argument: the JSON before it, the file, the JSON after it.
local function body_of(message)
  local arguments = message.arguments or message.params and message.params.arguments
  for name, value in pairs(arguments or {}) do
    if type(value) == "userdata" and value ~= json.null then
      arguments[name] = ""
      local whole, place = json.encode(message), json.encode(name) .. ':""' -- which no string in JSON can hold
      arguments[name] = value
      local _, before = whole:find(place, 1, true)
      return { whole:sub(1, before - 1), value, whole:sub(before) }
    end
  end
  return json.encode(message)
end

---@param request mcp.request whose limits apply
---@param message? table nil: asks for a stream
---@param headers string[]
---@param options? { method: string?, ignore_interrupt: boolean?, is_polled: boolean? } is_polled: waits for no line
---@return native.http.exchange?, integer|mcp.failure status
function connection:send(request, message, headers, options)
  local lines = { "Accept: " .. (message and "application/json, " or "") .. "text/event-stream" }
  if message then lines[2] = "Content-Type: application/json" end
  if self.token then lines[#lines + 1] = "Authorization: Bearer " .. self.token end
  options = options or {}
  local is_last = options.ignore_interrupt
  local idle = is_last and LAST_ANSWER or request.idle or NO_LIMIT
  local sent = {
    method = options.method or message and "POST" or "GET", url = self.url,
    headers = table.move(headers, 1, #headers, #lines + 1, lines), body = message and body_of(message),
    ignore_interrupt = is_last,
    once = message ~= nil, -- a call that may have been carried out is not made again
    connect_timeout = is_last and LAST_CONNECT or CONNECT,
    first_timeout = options.is_polled and STANDALONE or idle, idle_timeout = options.is_polled and 0 or idle,
  }
  local exchange, status = http.send(self.http, sent, not is_last and request.until_when or nil)
  request.session = request.session or exchange and exchange:header "Mcp-Session-Id"
  self.url, self.offered = sent.url, request.session
  return exchange, status
end

local function of_rpc(self, error, status)
  if not json.is_object(error) then error = { message = type(error) == "string" and error or json.encode(error) } end
  local code = math.tointeger(error.code)
  local words = type(error.message) == "string" and error.message or json.encode(error)
  local failure = self:failure("tool_refused", "answered with the error%s: %s", code and (" %d"):format(code) or "",
    http.shown(words))
  failure.status, failure.words = status, words
  failure.rpc = { code = code, message = words, data = error.data ~= json.null and error.data or nil }
  return failure
end

local codes <const> = { [401] = "unauthorized", [429] = "gateway_failed", [501] = "tool_unavailable" }
local codes_of_hundreds <const> = { [3] = "redirected", [4] = "refused" }

---@param failure http.failure becomes this room's, of the JSON-RPC error if there is one
---@return mcp.failure
function connection:refused(failure)
  local status, value = failure.status, failure.value
  if json.is_object(value) and json.is_object(value.error) then
    local retry_after, transient = failure.retry_after, failure.transient
    failure = of_rpc(self, value.error, status)
    failure.retry_after, failure.transient, failure.code = retry_after, transient, codes[status] or failure.code
  else
    failure.code = codes[status] or codes_of_hundreds[status // 100] or "gateway_failed"
  end
  if status == 401 then
    local without = "; no token was given (SBA_MCP_TOKEN_FILE, SBA_MCP_TOKEN)"
    failure.message = failure.message .. (self.token and "; it does not accept the agent's token" or without)
  end
  return failure
end

---Closes the answer.
---@param exchange native.http.exchange
---@param status integer
---@return mcp.failure
function connection:refusal(exchange, status)
  return self:refused(http.refusal(exchange, status, self:display_name()))
end

-- One message, or in revision 2025-03-26 a list. In a list of tools one may be nested more deeply than a job's JSON: it
-- does not hide the others.
local function decoded(self, bytes, request)
  local value, problem = json_tolerant.decode(bytes)
  if problem and problem.code == "too_deep" and request.method == transport.LIST then
    value, problem = json.decode(bytes, { size = #bytes, depth = DEEPEST_LIST })
  end
  if json.is_object(value) then return { value } end
  if json.is_array(value) then return value end
  return nil, http.not_json(self:display_name(), bytes, problem)
end

-- Events under another type than theirs. Returns their messages.
local function in_events(bytes)
  local lines, messages = bytes:gmatch "([^\r\n]*)\r?\n?", json.array {}
  for event in http.events(function()
    local line = lines()
    return line, line and true
  end) do
    local value = json_tolerant.decode(event.data)
    if json.is_object(value) then messages[#messages + 1] = value end
  end
  return messages
end

-- These two return iterators over lists of messages: nil at the end; or nil and a failure.
local function of_json(self, exchange, request)
  local is_read = false
  return function()
    if is_read then return nil end
    is_read = true
    local bytes, failure = http.read(exchange)
    if not bytes then return nil, failure end
    if bytes:find "^%s*data:" or bytes:find "^%s*event:" then return in_events(bytes) end
    return decoded(self, bytes, request)
  end
end

-- JSON under the type of events is read as what one event holds.
local function lines_of(exchange)
  local is_json
  return function()
    local line, more = exchange:line()
    if is_json == nil and line then is_json = line:find("^%s*[{%[]") ~= nil end
    if is_json and line and line ~= "" then line = "data:" .. line end
    return line, more
  end
end

local function of_events(self, exchange, request)
  local line = lines_of(exchange)
  local next_event = http.events(function()
    if request.idle and interrupt.now() >= request.progressed + request.idle then
      return nil, self:failure("slow_answer", "reported no progress on %s within %g s", request.method, request.idle)
    end
    return line()
  end)
  return function()
    local event, failure = next_event()
    if not event then return nil, failure and http.failure(failure.code, failure.message) end
    request.last_id, request.retry = event.id or request.last_id, event.retry or request.retry
    if event.data == "" then return not event.is_cut and {} or nil end
    local is_message = not event.name or event.name == "message"
    if is_message and not event.is_cut then return decoded(self, event.data, request) end
    -- Some name their events after what is in them, and some end without the blank line.
    local value = json_tolerant.decode(event.data)
    if event.is_cut and value == nil then return nil end
    return { json.is_object(value) and value or nil }
  end
end

local function is_given(id) return id ~= nil and id ~= json.null end

-- An error may come without an id, or with any.
local function is_answer(message, request)
  if is_given(message.error) then return true end
  if is_given(message.id) and tonumber(message.id) ~= request.id then return false end
  return message.result ~= nil or not is_given(message.jsonrpc) and request.method == transport.CALL
end

-- Of a call any value may be the result, and the answer may be the result itself.
local function result_of(self, message, request)
  if is_given(message.error) then return nil, of_rpc(self, message.error, 200) end
  local result = message.result
  if result == nil then return message end
  if json.is_object(result) then return result end
  if request.method == transport.CALL then return { content = result } end
  if request.method == transport.LIST and json.is_array(result) then return { tools = result } end
  return nil, self:failure("bad_answer", "answered %s with %s", request.method, http.shown(json.encode(result)))
end

local function handle(request, message, on_request)
  local params = message.params
  if is_given(message.id) then
    if on_request then on_request(message) end
  elseif message.method == "notifications/progress" and json.table_of(params).progressToken == request.id then
    request.progressed = interrupt.now()
  end
end

---@param exchange native.http.exchange with status 2xx
---@param request mcp.request
---@param on_request? fun(message: table)
---@return table? result, mcp.failure? failure nil without a result: the stream ended early
function connection:read(exchange, request, on_request)
  local next_messages = (http.is_stream(exchange) and of_events or of_json)(self, exchange, request)
  local other -- with the id as a text, or an error with another id: it counts if no better answer comes
  while true do
    local messages, failure = next_messages()
    if not messages then
      if other and (not failure or other.result ~= nil) then return result_of(self, other, request) end
      return nil, failure
    end
    for _, message in ipairs(messages) do
      if json.is_object(message) and type(message.method) == "string" then
        handle(request, message, on_request)
      elseif json.is_object(message) and is_answer(message, request) then
        if not is_given(message.id) or message.id == request.id then return result_of(self, message, request) end
        other = other or message
      end
    end
  end
end

---Sends a request and returns as read does.
---@param request mcp.request
---@param params table of JSON-RPC
---@param headers string[]
---@param on_request? fun(message: table)
---@return table? result, mcp.failure?
function connection:request(request, params, headers, on_request)
  if request.method == transport.CALL then
    params._meta = params._meta or {}
    params._meta.progressToken = request.id
  end
  local body = { jsonrpc = "2.0", id = request.id, method = request.method, params = params }
  local exchange <close>, status = self:send(request, body, headers)
  if not exchange then return nil, status end
  if status >= 300 then return nil, self:refusal(exchange, status) end
  return self:read(exchange, request, on_request)
end

return transport
