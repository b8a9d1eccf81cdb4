-- SPDX-License-Identifier: Apache-2.0
-- Streamable HTTP: a JSON-RPC message goes out by POST; messages come back as one JSON text or as a stream of events.
--
-- Failures are those of sba.util.http, with these codes of its own: "unauthorized" (401), "tool_denied" (403 to a call), "refused"
-- (another 4xx), "redirected", "gateway_failed" (429, 5xx), "tool_refused" (a JSON-RPC error), "tool_unavailable" (501),
-- "session_lost", "bad_session" (its name fits no header), "request_lost" (sent, but the answer cannot be had: it may have run),
-- "not_mcp", "unsupported_version", "input_required" (the tool asks what nobody here can answer), "bad_answer", "slow_answer".

local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local sse = require "sba.util.sse"
local url = require "sba.util.url"
local version = require "native.bundle".version

local transport = { CLIENT = { name = "cynode-sba", version = version } } -- what servers are told about this program

local NO_LIMIT <const> = 1e8 -- seconds
local CONNECT <const> = 10 -- seconds
local ANSWER <const> = 20 -- seconds for an answer to anything but a call
local STANDALONE <const> = 1 -- seconds until a standalone stream must have begun: those that begin one do so at once
local LAST_CONNECT <const>, LAST_ANSWER <const> = 0.5, 0.25 -- seconds, for requests that are sent after the deadline

---@class mcp.failure: http.failure
---@field rpc? { code: integer?, message: string, data: any } the JSON-RPC error

---@class mcp.peer a server, and what is known of it
---@field url string
---@field http native.http.client
---@field token? string
---@field limits mcp.limits of everything but calls
---@field ids integer the last id that was used
---@field session? string
---@field version? string negotiated (legacy)
---@field standalone? { exchange: native.http.exchange?, thread: thread? } the server's own stream; without a thread it has none (legacy)
---@field offered? string the session that the last answer named
---@field until_when? number on the monotonic clock: when all requests of what is done now must be over

---@class mcp.limits
---@field whole? number seconds for the whole answer; nil: no limit but the job's deadline
---@field idle? number seconds without progress; nil: no limit

---@class mcp.request one that is answered
---@field id integer
---@field method string
---@field limits mcp.limits
---@field until_when? number on the monotonic clock: the earlier of limits.whole and the peer's end
---@field progressed number on the monotonic clock: when the server last reported progress

---@class mcp.post
---@field headers? string[]
---@field method? string default POST
---@field request? mcp.request whose limits apply; default: those of the peer
---@field ignore_interrupt? boolean
---@field is_polled? boolean lines of the answer are not waited for

---A server of which nothing is known yet.
---@param options mcp.options
---@param address? string its URL; default: that of the options
---@return mcp.peer
function transport.peer(options, address)
  return {
    url = address or options.url, http = options.http, token = options.token, ids = 0, until_when = options.until_when,
    limits = { whole = options.answer_timeout or ANSWER },
  }
end

local function header_lines(peer, message, options)
  local lines = { "Accept: " .. (message and "application/json, text/event-stream" or "text/event-stream") }
  if message then lines[2] = "Content-Type: application/json" end
  if peer.token then lines[#lines + 1] = "Authorization: Bearer " .. peer.token end
  return table.move(options.headers or {}, 1, #(options.headers or {}), #lines + 1, lines)
end

--- The body of a message: its JSON; or, if an argument is an opened file, the JSON before it, the file, and the JSON after it.
local function body_of(message)
  local arguments = message.arguments or message.params and message.params.arguments
  for name, value in pairs(arguments or {}) do
    if type(value) == "userdata" and value ~= json.null then
      arguments[name] = ""
      local whole, place_of = json.encode(message), json.encode(name) .. ':""' -- which no string in JSON can hold
      arguments[name] = value
      local _, before = whole:find(place_of, 1, true)
      return { whole:sub(1, before - 1), value, whole:sub(before) }
    end
  end
  return json.encode(message)
end

---The server, as messages name it.
---@param peer mcp.peer
---@return string
function transport.place(peer)
  return "the MCP gateway at " .. url.shown(peer.url)
end

--- When a request must be over that may take so many seconds.
local function end_of(peer, seconds)
  local own = seconds and interrupt.now() + seconds
  return own and peer.until_when and math.min(own, peer.until_when) or own or peer.until_when
end

---A request that is about to be sent.
---@param peer mcp.peer
---@param method string
---@param limits? mcp.limits default: those of the peer
---@return mcp.request
function transport.request(peer, method, limits)
  limits = limits or peer.limits
  peer.ids = peer.ids + 1
  return {
    id = peer.ids, method = method, limits = limits, until_when = end_of(peer, limits.whole), progressed = interrupt.now(),
  }
end

--- Notes what a notification says about a request.
local function note(request, message)
  local params = message.params
  if message.method == "notifications/progress" and json.is_object(params) and params.progressToken == request.id then
    request.progressed = interrupt.now()
  end
end

--- The failure of a request without progress for too long; nil if it may go on.
local function expired(peer, request)
  local idle = request.limits.idle
  if not idle or interrupt.now() < request.progressed + idle then return nil end
  return http.failure("slow_answer", ("%s reported no progress on %s within %g s")
    :format(transport.place(peer), request.method, idle))
end

---Sends a message, or asks for a stream (message nil). Returns the exchange, with its status.
---@param peer mcp.peer
---@param message? table
---@param options? mcp.post
---@return native.http.exchange?, integer|mcp.failure
function transport.send(peer, message, options)
  options = options or {}
  local limits, until_when = peer.limits, end_of(peer, peer.limits.whole)
  if options.request then limits, until_when = options.request.limits, options.request.until_when end
  local idle = options.ignore_interrupt and LAST_ANSWER or limits.idle or NO_LIMIT
  local request = {
    method = options.method or "POST", url = peer.url, headers = header_lines(peer, message, options),
    body = message and body_of(message), ignore_interrupt = options.ignore_interrupt,
    once = message ~= nil, -- a call that may have been carried out is not made again
    connect_timeout = options.ignore_interrupt and LAST_CONNECT or CONNECT,
    first_timeout = options.is_polled and STANDALONE or idle, idle_timeout = options.is_polled and 0 or idle,
  }
  local exchange, status = http.send(peer.http, request, not options.ignore_interrupt and until_when or nil)
  peer.url, peer.offered = request.url, exchange and exchange:header "Mcp-Session-Id"
  return exchange, status
end

---@param peer mcp.peer
---@param error table of a message
---@param status? integer of HTTP
---@return mcp.failure
local function of_rpc(peer, error, status)
  local words = type(error.message) == "string" and error.message or json.encode(error)
  local code = math.tointeger(error.code)
  return http.failure("tool_refused", ("%s answered with the error%s: %s")
    :format(transport.place(peer), code and (" %d"):format(code) or "", http.shown(words)), {
      status = status, words = words,
      rpc = { code = code, message = words, data = error.data ~= json.null and error.data or nil },
    })
end

local codes = { [401] = "unauthorized", [429] = "gateway_failed", [501] = "tool_unavailable" }

local function code_of(status)
  if status >= 300 and status < 400 then return "redirected" end
  return codes[status] or status >= 500 and "gateway_failed" or "refused"
end

--- What the agent's token has to do with a refusal.
local function advice(peer, status)
  if status ~= 401 then return "" end
  return peer.token and "; it does not accept the agent's token" or "; no token was given (SBA_MCP_TOKEN_FILE, SBA_MCP_TOKEN)"
end

---What a refusal means here, with its JSON-RPC error if there is one.
---@param peer mcp.peer
---@param failure http.failure of http.refusal or http.refused
---@return mcp.failure
function transport.refused(peer, failure)
  local status, value = failure.status, failure.value
  if json.is_object(value) and json.is_object(value.error) then
    local retry_after, transient = failure.retry_after, failure.transient
    failure = of_rpc(peer, value.error, status)
    failure.retry_after, failure.transient = retry_after, transient
    failure.code = codes[status] or failure.code
  else
    failure.code = code_of(status)
  end
  failure.message = failure.message .. advice(peer, status)
  failure.plain = json.is_object(value) and type(value.error) == "string"
  return failure
end

---The failure that an answer with an error status means.
---@param peer mcp.peer
---@param exchange native.http.exchange is closed
---@param status integer
---@return mcp.failure
function transport.refusal(peer, exchange, status)
  return transport.refused(peer, http.refusal(exchange, status, transport.place(peer)))
end

local function is_stream(exchange)
  return (exchange:header "Content-Type" or ""):lower():find("^%s*text/event%-stream") ~= nil
end

--- The messages of a text: one, or in revision 2025-03-26 a list.
local function decoded(peer, bytes)
  local value, problem = json.decode(bytes)
  if json.is_object(value) then return { value } end
  if json.is_array(value) then return value end
  return nil, http.not_json(transport.place(peer), bytes, problem)
end

---@class mcp.stream the messages of an answer
---@field more fun(): table[]?, mcp.failure? the next ones; nil: the end, proper or (with the failure) not
---@field last_id? string of the last event that had one
---@field retry? integer milliseconds

local function of_json(peer, exchange)
  local is_read = false
  return function()
    if is_read then return nil end
    is_read = true
    local bytes, failure = http.read(exchange)
    if not bytes then return nil, failure end
    return decoded(peer, bytes)
  end
end

local function of_events(peer, exchange, request, stream)
  local event_of = sse.reader(function()
    local failure = expired(peer, request)
    if failure then return nil, failure end
    return exchange:line()
  end)
  return function()
    local event, failure = event_of()
    if not event or event.is_cut then return nil, failure and http.failure(failure.code, failure.message) end
    stream.last_id, stream.retry = event.id or stream.last_id, event.retry or stream.retry
    if event.data == "" then return {} end
    local list, problem = decoded(peer, event.data)
    local is_other = event.name and event.name ~= "message" -- of the server's own, such as a named ping
    return list or is_other and {} or nil, problem
  end
end

---Reads the messages of an answer with status 2xx.
---@param peer mcp.peer
---@param exchange native.http.exchange
---@param request mcp.request
---@param before? mcp.stream the stream that this one continues
---@return mcp.stream
function transport.stream(peer, exchange, request, before)
  local stream = { last_id = before and before.last_id, retry = before and before.retry }
  stream.more = is_stream(exchange) and of_events(peer, exchange, request, stream) or of_json(peer, exchange)
  return stream
end

transport.is_stream = is_stream

--- What a message means to the request with that id: it is a "request", a "notification", the "answer" or something "other".
local function kind_of(message, id)
  if not json.is_object(message) then return "other" end
  if type(message.method) == "string" then
    local asks = message.id ~= nil and message.id ~= json.null
    return asks and "request" or "notification"
  end
  local nobody = message.id == nil or message.id == json.null
  if json.is_object(message.error) and (message.id == id or nobody) then return "answer" end
  return message.id == id and json.is_object(message.result) and "answer" or "other"
end

---Reads a stream up to the answer.
---@param stream mcp.stream
---@param request mcp.request
---@param on_request? fun(message: table) is told what the server asks; default: nothing
---@return table? message
---@return mcp.failure? failure how the stream ended before the answer; nil: properly
function transport.read(stream, request, on_request)
  while true do
    local messages, failure = stream.more()
    for _, message in ipairs(messages or {}) do
      local kind = kind_of(message, request.id)
      if kind == "answer" then return message end
      if kind == "notification" then note(request, message) end
      if kind == "request" and on_request then on_request(message) end
    end
    if not messages then return nil, failure end
  end
end

---The result of an answer, or the error it holds.
---@param peer mcp.peer
---@param message table
---@param status integer of HTTP
---@return table?, mcp.failure?
function transport.outcome(peer, message, status)
  if json.is_object(message.error) then return nil, of_rpc(peer, message.error, status) end
  return message.result
end

return transport
