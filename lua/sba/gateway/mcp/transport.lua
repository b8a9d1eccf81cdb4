-- SPDX-License-Identifier: Apache-2.0
-- Streamable HTTP: a JSON-RPC message goes out by POST; messages come back as one JSON text or as a
-- stream of events. Failures are those of sba.util.http, and: "unauthorized" (401), "tool_denied"
-- (403 to a call), "refused" (another 4xx), "redirected", "gateway_failed" (429, 5xx),
-- "tool_refused" (a JSON-RPC error), "tool_unavailable" (501), "session_lost", "bad_session" (fits
-- no header), "request_lost" (may have run), "not_mcp", "unsupported_version", "input_required",
-- "bad_answer", "slow_answer".

local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local given = json.given
local json_tolerant = require "sba.util.json_tolerant"
local version = require "native.bundle".version

local transport = { CALL = "tools/call", LIST = "tools/list", CLIENT = { name = "cynode-sba", version = version } }

-- Seconds.
local NO_LIMIT <const> = 1e8
local CONNECT <const> = 10
local ANSWER <const> = 20 -- of all but calls

---How a request is sent, where not as usual. Seconds.
---@class mcp.sending
---@field connect? number
---@field first? number until the status
---@field idle? number until the next bytes
---@field ignore_interrupt? boolean works past the job's deadline, and does not count the request's own
---@field method? string of HTTP, without a message; default: GET, which asks for a stream

---@type mcp.sending for streams whose lines are not waited for
transport.POLLED = { first = 1, idle = 0 }
---@type mcp.sending for the last message about a call, and the end of a session
transport.LAST = { connect = 0.5, first = 0.25, idle = 0.25, ignore_interrupt = true, method = "DELETE" }

-- Levels of a list of tools. More would be read, but not be written again.
local DEEPEST_LIST <const> = 190

---@class mcp.failure: http.failure
---@field rpc? { code: integer?, data: any } the JSON-RPC error

---@class mcp.connection a server
---@field url string
---@field http native.http.client
---@field token? string
---@field answer_timeout number seconds
---@field ids integer the last one used
---@field offered? string session that the last answer named
---@field session? string legacy only, as the next three
---@field version? string
---@field standalone? { exchange: native.http.exchange?, thread: thread? } its own stream; no thread: it has none
---@field answer? fun(self: mcp.connection, message: table) answers what the server asks; nil: it must not ask
---@field list_changed? boolean the server has said that its tools are others
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
  local soon = now + self.answer_timeout
  if method ~= transport.CALL then until_when = math.min(until_when or soon, soon) end
  self.ids = self.ids + 1
  return { id = self.ids, method = method, until_when = until_when, idle = limits.idle, progressed = now }
end

---@return string words for messages
function connection:display_name() return "the MCP gateway at " .. http.display_url(self.url) end

---@param code string
---@param words string a format, after the server's place
---@param ... any
---@return mcp.failure
function connection:failure(code, words, ...)
  return http.failure(code, self:display_name() .. " " .. words:format(...))
end

---@return nil, mcp.failure as of failure
function connection:failed(...) return nil, self:failure(...) end

---@param token string
---@return boolean
function transport.fits_a_header(token) return token:find("^[\x21-\x7E]+$") ~= nil end

-- A message's JSON; with a file as an argument: the JSON before it, the file, the JSON after it.
local function body_of(message)
  local arguments = message.arguments or message.params and message.params.arguments
  for name, value in pairs(arguments or {}) do
    if type(value) == "userdata" and value ~= json.null then
      arguments[name] = ""
      -- No string in JSON can hold the place, which has a bare quote.
      local whole, place = json.encode(message), json.encode(name) .. ':""'
      arguments[name] = value
      local _, before = whole:find(place, 1, true)
      return { whole:sub(1, before - 1), value, whole:sub(before) }
    end
  end
  return json.encode(message)
end

---@param request mcp.request whose limits apply
---@param message? table of JSON-RPC
---@param headers string[]
---@param sending? mcp.sending
---@return native.http.exchange?, integer|mcp.failure status
function connection:send(request, message, headers, sending)
  sending = sending or {}
  local lines, method = { "Accept: text/event-stream" }, sending.method or "GET"
  if message then
    lines = { "Accept: application/json, text/event-stream", "Content-Type: application/json" }
    method = "POST"
  end
  if self.token then lines[#lines + 1] = "Authorization: Bearer " .. self.token end
  table.move(headers, 1, #headers, #lines + 1, lines)
  local idle = request.idle or NO_LIMIT
  local sent = {
    method = method, url = self.url, headers = lines, body = message and body_of(message),
    -- A call that may have been carried out is not made again.
    once = message ~= nil,
    ignore_interrupt = sending.ignore_interrupt, connect_timeout = sending.connect or CONNECT,
    first_timeout = sending.first or idle, idle_timeout = sending.idle or idle,
  }
  local until_when = not sending.ignore_interrupt and request.until_when or nil
  local exchange, status = http.send(self.http, sent, until_when)
  request.session = request.session or exchange and exchange:header "Mcp-Session-Id"
  self.url, self.offered = sent.url, request.session
  return exchange, status
end

-- Some servers write the error as a text.
local function of_rpc(self, error, status)
  local about = json.is_object(error) and error or { message = error }
  local words = about.message
  if type(words) ~= "string" then words = json.encode(error) end
  local code, data = math.tointeger(about.code), given(about.data)
  local number, told = code and (" %d"):format(code) or "", http.shown(words)
  -- It mostly says which argument.
  if data ~= nil then told = told .. " " .. http.shown(json.encode(data)) end
  local failure = self:failure("tool_refused", "answered with the error%s: %s", number, told)
  failure.status, failure.words, failure.rpc = status, words, { code = code, data = data }
  return failure
end

local codes <const> = { [401] = "unauthorized", [429] = "gateway_failed", [501] = "tool_unavailable" }
local codes_of_hundreds <const> = { [3] = "redirected", [4] = "refused" }

---@param failure http.failure with a status; may become this room's
---@return mcp.failure of the JSON-RPC error in the answer, if there is one
function connection:refused(failure)
  local status, error, refused = failure.status, json.table_of(failure.value).error, failure
  failure.code = codes_of_hundreds[status // 100] or "gateway_failed"
  if json.is_object(error) then
    failure = of_rpc(self, error, status)
    failure.retry_after, failure.transient = refused.retry_after, refused.transient
  end
  failure.code = codes[status] or failure.code
  if status == 401 then
    local why = "; no token was given (SBA_MCP_TOKEN_FILE, SBA_MCP_TOKEN)"
    if self.token then why = "; it does not accept the agent's token" end
    failure.message = failure.message .. why
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

-- One message, or in revision 2025-03-26 a list. In a list of tools one may be nested more deeply
-- than a job's JSON: it does not hide the others.
local function decoded(self, bytes, request)
  local value, problem = json_tolerant.decode(bytes)
  if problem and problem.code == "too_deep" and request.method == transport.LIST then
    value, problem = json.decode(bytes, { size = #bytes, depth = DEEPEST_LIST })
  end
  if json.is_object(value) then return { value } end
  if json.is_array(value) then return value end
  return nil, http.not_json(self:display_name(), bytes, problem)
end

local function lines_of_stream(self, exchange, request)
  -- JSON under the type of events: each line is then one of an event's.
  local is_json
  return function()
    local idle = request.idle
    if idle and interrupt.now() >= request.progressed + idle then
      return self:failed("slow_answer", "reported no progress on %s within %g s", request.method, idle)
    end
    local line, more = exchange:line()
    if is_json == nil and line then is_json = line:find("^%s*[{%[]") ~= nil end
    if is_json and line and line ~= "" then line = "data:" .. line end
    return line, more
  end
end

-- Returns an iterator over an answer's events: nil at the end; or nil and a failure. JSON counts as
-- the data of one.
local function events_of(self, exchange, request)
  if http.is_stream(exchange) then return http.events(lines_of_stream(self, exchange, request)) end
  local bytes, failure = http.read(exchange)
  -- Some servers send events under the type of JSON. The place behind a line says that it has its end.
  local is_events = bytes and (bytes:find "^%s*data:" or bytes:find "^%s*event:")
  if is_events then return http.events(bytes:gmatch "([^\r\n]*)\r?\n?()") end
  local event = bytes and { data = bytes, is_json = true }
  return function()
    local only = event
    event = nil
    return only, failure
  end
end

-- Returns nil where the stream was cut off in the middle of one; or nil and a failure.
local function messages_in(self, event, request)
  request.last_id, request.retry = event.id or request.last_id, event.retry or request.retry
  if event.data == "" and not event.is_json then return not event.is_cut and {} or nil end
  local is_message = not event.name or event.name == "message"
  if is_message and not event.is_cut then return decoded(self, event.data, request) end
  -- Some name their events after what is in them, and some end without the blank line.
  local value = json_tolerant.decode(event.data)
  if event.is_cut and value == nil then return nil end
  return { json.is_object(value) and value or nil }
end

-- An error may come without an id, or with any.
local function is_answer(message, request)
  if given(message.error) then return true end
  if given(message.id) and tonumber(message.id) ~= request.id then return false end
  return message.result ~= nil or not given(message.jsonrpc) and request.method == transport.CALL
end

-- Of a call any value may be the result, and the answer may be the result itself.
local function result_of(self, message, request)
  if given(message.error) then return nil, of_rpc(self, message.error, 200) end
  local result = message.result
  if result == nil then return message end
  if json.is_object(result) then return result end
  if request.method == transport.CALL then return { content = result } end
  if request.method == transport.LIST and json.is_array(result) then return { tools = result } end
  return self:failed("bad_answer", "answered %s with %s", request.method, http.shown(json.encode(result)))
end

-- A request or a notification of the server.
local function handle(self, request, message)
  local is_progress = message.method == "notifications/progress"
  if given(message.id) then
    if self.answer then self:answer(message) end
  elseif is_progress and json.table_of(message.params).progressToken == request.id then
    request.progressed = interrupt.now()
  elseif message.method == "notifications/tools/list_changed" then
    self.list_changed = true
  end
end

---@param exchange native.http.exchange with status 2xx
---@param request mcp.request
---@return table? result, mcp.failure? failure nil without a result: the stream ended early
function connection:read(exchange, request)
  local next_event = events_of(self, exchange, request)
  -- With the id as a text, or an error with another id: it counts if no better answer comes.
  local other
  while true do
    local messages
    local event, failure = next_event()
    if event then messages, failure = messages_in(self, event, request) end
    if not messages then
      if other and (not failure or other.result ~= nil) then return result_of(self, other, request) end
      return nil, failure and http.failure(failure.code, failure.message)
    end
    for _, message in ipairs(messages) do
      if json.is_object(message) and type(message.method) == "string" then
        handle(self, request, message)
      elseif json.is_object(message) and is_answer(message, request) then
        if not given(message.id) or message.id == request.id then return result_of(self, message, request) end
        other = other or message
      end
    end
  end
end

---Sends a request and returns as read does.
---@param request mcp.request
---@param params table of JSON-RPC
---@param headers string[]
---@return table? result, mcp.failure?
function connection:request(request, params, headers)
  if request.method == transport.CALL then
    params._meta = params._meta or {}
    params._meta.progressToken = request.id
  end
  local body = { jsonrpc = "2.0", id = request.id, method = request.method, params = params }
  local exchange <close>, status = self:send(request, body, headers)
  if not exchange then return nil, status end
  if status >= 300 then return nil, self:refusal(exchange, status) end
  return self:read(exchange, request)
end

return transport
