-- SPDX-License-Identifier: Apache-2.0
-- Streamable HTTP: a JSON-RPC message out by POST, messages back as one JSON text or as a stream of events.

local failures = require "sba.orchestrator.mcp.failure"
local json = require "sba.util.json"
local page = require "sba.util.page"
local place = require "sba.orchestrator.mcp.place"
local sse = require "sba.orchestrator.mcp.sse"

local transport = {}

local LARGEST_ANSWER <const> = 32 * 1024 * 1024 -- bytes of one answer on the wire
local LARGEST_ERROR <const> = 64 * 1024 -- bytes of an error's body that are read
local MOST_REDIRECTS <const> = 3
-- Seconds for what is still said after the deadline: to be reached, and for an answer that matters to nobody.
local FAREWELL <const> = { connect = 0.5, answer = 0.25 }

---@class mcp.peer a server, and what is known of it
---@field url string
---@field http native.http.client
---@field token? string
---@field patience { connect: number, answer: number } seconds: to be reached; for an answer as a whole
---@field ids integer the last id that was used
---@field session? string
---@field version? string negotiated (legacy)
---@field stale? boolean the server said that its list of tools has changed
---@field client { name: string, version: string }

---@class mcp.post
---@field headers? string[]
---@field method? string default POST
---@field farewell? boolean

local function header_lines(peer, message, options)
  local lines = { "Accept: " .. (message and "application/json, text/event-stream" or "text/event-stream") }
  if message then lines[2] = "Content-Type: application/json" end
  if peer.token then lines[#lines + 1] = "Authorization: Bearer " .. peer.token end
  return table.move(options.headers or {}, 1, #(options.headers or {}), #lines + 1, lines)
end

--- A message as a body: its JSON; or, where an argument is an opened file, the JSON before it, the file, the JSON behind it.
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

local function open(peer, message, options)
  local patience = options.farewell and FAREWELL or peer.patience
  return peer.http:open {
    method = options.method or "POST", url = peer.url, headers = header_lines(peer, message, options),
    body = message and body_of(message), body_limit = LARGEST_ANSWER, farewell = options.farewell,
    once = message ~= nil, -- a call that may have been carried out is not made again
    connect_patience = patience.connect, first_patience = patience.answer, idle_patience = patience.answer,
  }
end

--- Follows a redirect that keeps method and body, and only to the same origin, where the token is at home.
local function follow(peer, status, exchange)
  local location = exchange:header "Location" or ""
  local target = (status == 307 or status == 308) and place.redirected(peer.url, location)
  if target then
    peer.url = target
    return nil
  end
  local where = place.origin(location)
  return failures.new("redirected", ("%s answered with status %d, a redirect%s; only 307 and 308 to the same origin are followed")
    :format(place.shown(peer.url), status, where and " to " .. failures.shown(where) or ""))
end

---Sends a message, or asks for a stream (message nil). Returns the exchange, with its status.
---@param peer mcp.peer
---@param message? table
---@param options? mcp.post
---@return native.http.exchange?, integer|mcp.failure
function transport.send(peer, message, options)
  for _ = 0, MOST_REDIRECTS do
    local exchange, failure = open(peer, message, options or {})
    local status
    if exchange then status, failure = exchange:status() end
    if not status then return nil, failures.of_http(failure) end
    if status < 300 or status >= 400 then return exchange, status end
    failure = follow(peer, status, exchange)
    exchange:close()
    if failure then return nil, failure end
  end
  return nil, failures.new("redirected", place.shown(peer.url) .. " redirects in circles")
end

---The body, or as much of an error's as is worth reading.
---@param exchange native.http.exchange
---@param limit? integer
---@return string?, mcp.failure?
function transport.body(exchange, limit)
  local parts, size = {}, 0
  while not limit or size < limit do
    local piece, failure = exchange:read()
    if failure then return nil, failures.of_http(failure) end
    if not piece then break end
    parts[#parts + 1], size = piece, size + #piece
  end
  return table.concat(parts)
end

---@param error any of a message
---@return { code: integer?, message: string, data: any }
local function rpc_error(error)
  local words = type(error.message) == "string" and error.message or json.encode(error)
  return { code = math.tointeger(error.code), message = words, data = error.data ~= json.null and error.data or nil }
end

---What an answer that is no 2xx means, with its JSON-RPC error where it holds one.
---@param peer mcp.peer
---@param status integer
---@param body string
---@param proxy? string that may have answered instead
---@return mcp.failure
function transport.refused(peer, status, body, proxy)
  local value = json.decode(body)
  local shown = place.shown(peer.url)
  if json.is_object(value) and json.is_object(value.error) then return failures.of_rpc(shown, rpc_error(value.error), status) end
  local words = json.is_object(value) and (value.error or value.message or value.detail)
  local failure = failures.of_status(shown, status, type(words) == "string" and words or page(body) or body)
  if proxy then failure.message = ("%s; %s may have answered in its place"):format(failure.message, proxy) end
  failure.plain = json.is_object(value) and type(value.error) == "string"
  return failure
end

---The same of an exchange.
---@param peer mcp.peer
---@param exchange native.http.exchange is closed
---@param status integer
---@return mcp.failure
function transport.refusal(peer, exchange, status)
  local body = transport.body(exchange, LARGEST_ERROR) or ""
  local proxy = exchange:proxy()
  exchange:close()
  return transport.refused(peer, status, body, proxy)
end

local function is_stream(exchange)
  return (exchange:header "Content-Type" or ""):lower():find("^%s*text/event%-stream") ~= nil
end

--- The messages of a text: one, or in revision 2025-03-26 a list.
local function decoded(peer, bytes)
  local value = json.decode(bytes)
  if json.is_object(value) then return { value } end
  if json.is_array(value) then return value end
  local what = not bytes:find "%S" and "an empty answer" or page(bytes)
    or "what is not JSON: " .. bytes:sub(1, 100)
  return nil, failures.new("bad_answer", ("%s sent %s"):format(place.shown(peer.url), failures.shown(what)))
end

---@class mcp.stream the messages of an answer, one by one
---@field next fun(): table?, mcp.failure? message; nil: the end, proper or (with the failure) not
---@field last_id? string of the last event that had one
---@field retry? integer milliseconds

--- Hands out the messages of one text after the other; more() gives the next list, nil at the end.
local function one_by_one(more)
  local list, at = {}, 0
  return function()
    while at == #list do
      local failure
      list, failure = more()
      at = 0
      if not list then
        list = {}
        return nil, failure
      end
    end
    at = at + 1
    return list[at]
  end
end

local function of_json(peer, exchange)
  local read = false
  return one_by_one(function()
    if read then return nil end
    read = true
    local bytes, failure = transport.body(exchange)
    if not bytes then return nil, failure end
    return decoded(peer, bytes)
  end)
end

local function of_events(peer, exchange, stream)
  local event_of = sse.reader(exchange)
  return one_by_one(function()
    local event, failure = event_of()
    if not event then return nil, failure and failures.of_http(failure) end
    stream.last_id, stream.retry = event.id or stream.last_id, event.retry or stream.retry
    if event.data == "" then return {} end
    return decoded(peer, event.data)
  end)
end

---Reads the messages of an answer with status 2xx.
---@param peer mcp.peer
---@param exchange native.http.exchange
---@param before? mcp.stream the stream that this one goes on with
---@return mcp.stream
function transport.stream(peer, exchange, before)
  local stream = { last_id = before and before.last_id, retry = before and before.retry }
  stream.next = is_stream(exchange) and of_events(peer, exchange, stream) or of_json(peer, exchange)
  return stream
end

transport.is_stream = is_stream

---What a message is to the one who waits for the answer to id.
---@param message any
---@param id integer
---@return "request"|"notification"|"answer"|"other"
function transport.kind(message, id)
  if not json.is_object(message) then return "other" end
  if type(message.method) == "string" then
    local asks = message.id ~= nil and message.id ~= json.null
    return asks and "request" or "notification"
  end
  local nobody = message.id == nil or message.id == json.null
  if json.is_object(message.error) and (message.id == id or nobody) then return "answer" end
  return message.id == id and json.is_object(message.result) and "answer" or "other"
end

---The result of an answer, or the error it holds.
---@param peer mcp.peer
---@param message table
---@param status integer of HTTP
---@return table?, mcp.failure?
function transport.outcome(peer, message, status)
  if json.is_object(message.error) then return nil, failures.of_rpc(place.shown(peer.url), rpc_error(message.error), status) end
  return message.result
end

---@param peer mcp.peer
---@return integer
function transport.new_id(peer)
  peer.ids = peer.ids + 1
  return peer.ids
end

return transport
