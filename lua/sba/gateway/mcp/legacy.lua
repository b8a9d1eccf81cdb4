-- SPDX-License-Identifier: Apache-2.0
-- MCP with a handshake: revisions 2024-11-05 (over Streamable HTTP), 2025-03-26, 2025-06-18 and 2025-11-25.

local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local retry = require "sba.util.retry"
local transport = require "sba.gateway.mcp.transport"

local NEWEST <const> = "2025-11-25" -- is offered

local legacy = {
  versions = { ["2024-11-05"] = true, ["2025-03-26"] = true, ["2025-06-18"] = true, ["2025-11-25"] = true },
}

local MOST_FAILED_RESUMES <const> = 5 -- in a row, without a new event
local MOST_REQUESTS <const> = 1000 -- of the server's, answered during one of ours
local LINES_AT_A_TIME <const> = 256 -- of the standalone stream: the call is waited for meanwhile

local function header_lines(peer, more)
  local lines = more or {}
  if peer.session then lines[#lines + 1] = "Mcp-Session-Id: " .. peer.session end
  if peer.version then lines[#lines + 1] = "MCP-Protocol-Version: " .. peer.version end
  return lines
end

--- Sends a message without an answer: a notification, or our answer to the server.
local function tell(peer, message, ignore_interrupt)
  message.jsonrpc = "2.0"
  local exchange, status = transport.send(peer, message, { headers = header_lines(peer), ignore_interrupt = ignore_interrupt })
  if not exchange then return nil, status end
  http.read(exchange, 1)
  exchange:close()
  return true
end

--- Answers a request of the server while its stream stays open: a ping with success, everything else with a refusal.
local function answer(peer, message)
  if message.method == "ping" then return tell(peer, { id = message.id, result = {} }) end
  return tell(peer, { id = message.id, error = { code = -32601, message = "Method not found" } })
end

local gave_up = {
  timeout = "the job's time was up", cancelled = "the job was cancelled", slow_answer = "timeout", slow_first_byte = "timeout",
}

--- Cancels the request at the server, even past the job's deadline.
local function cancel(peer, request, failure)
  if not gave_up[failure.code] or request.method == "initialize" then return end
  local params = { requestId = request.id, reason = gave_up[failure.code] }
  tell(peer, { method = "notifications/cancelled", params = params }, true)
end

local function lost(peer, request, why)
  return http.failure("request_lost", ("%s did not answer %s: %s; it may have been carried out all the same")
    :format(transport.place(peer), request.method, why))
end

--- Reads a stream up to the answer. Returns the message; or nil and how the stream ended.
local function read(peer, request, stream)
  return transport.read(stream, request, function(message)
    request.asked = request.asked + 1
    if request.asked <= MOST_REQUESTS then answer(peer, message) end
  end)
end

--- An exchange whose lines are read in a coroutine, which yields where there is none yet.
local function yielding(exchange)
  local count = 0
  return {
    header = function(_, name) return exchange:header(name) end,
    line = function()
      while true do
        local line, more = exchange:line()
        count = count + 1
        if line and count % LINES_AT_A_TIME == 0 then coroutine.yield() end
        if line or type(more) ~= "table" or more.code ~= "slow_answer" then return line, more end
        coroutine.yield()
      end
    end,
  }
end

--- Opens the server's standalone stream before the first call: many ask there what a call needs to know, and wait. They ask at once, and
--- what they ask while it is not open is lost.
local function open_standalone(peer)
  local exchange <const>, status = transport.send(peer, nil, { method = "GET", headers = header_lines(peer), is_polled = true })
  peer.standalone = { exchange = exchange }
  if not exchange then return end
  if status >= 300 or not transport.is_stream(exchange) then return exchange:close() end
  peer.standalone.thread = coroutine.create(function()
    local request = transport.request(peer, "GET", {})
    request.asked = 0
    read(peer, request, transport.stream(peer, yielding(exchange), request))
    exchange:close()
    peer.standalone = nil -- the next call opens it again
  end)
end

local function close_standalone(peer)
  if peer.standalone and peer.standalone.exchange then peer.standalone.exchange:close() end
  peer.standalone = nil
end

--- Reads the standalone stream while a call is waited for. Returns a value to be closed.
local function listen(peer)
  if not peer.standalone then open_standalone(peer) end
  local thread, before = peer.standalone.thread, nil
  if not thread then return nil end
  before = peer.http:tick(function()
    if before then before() end
    if coroutine.status(thread) ~= "suspended" then return end
    local done, problem = coroutine.resume(thread)
    if not done then error(problem, 0) end
  end)
  return setmetatable({}, { __close = function() peer.http:tick(before) end })
end

--- Whether a stream that ended like this may be resumed.
local function may_resume(failure)
  local code = failure and failure.code
  return not code or code == "cut_off" or code == "connection_failed" or code == "connection_refused" or code == "gateway_failed"
end

--- Waits and opens the stream again behind its last event.
local function reopen(peer, request, stream, wait)
  local left = request.until_when and request.until_when - interrupt.now() or wait
  local slept, failure = interrupt.sleep(math.max(0, math.min(wait, left)))
  if not slept then return nil, http.failure(failure.code, failure.message) end
  local headers = header_lines(peer, { "Last-Event-ID: " .. stream.last_id })
  local exchange, status = transport.send(peer, nil, { method = "GET", headers = headers, request = request })
  if not exchange then return nil, status end
  if status >= 500 then return nil, transport.refusal(peer, exchange, status) end
  if status >= 300 or not transport.is_stream(exchange) then
    exchange:close()
    return nil, lost(peer, request, ("its stream broke, and status %d was the answer to the request to resume it"):format(status))
  end
  return exchange
end

--- Resumes a broken stream until the answer is there, after the wait that the server asks for or that of the retry policy.
local function resume(peer, request, stream, failure)
  local policy, failed = retry.policy(), 0
  while may_resume(failure) do
    failed = failed + 1
    if not stream.last_id or stream.last_id:find "%c" then return nil, lost(peer, request, "its stream ended early") end
    if failed > MOST_FAILED_RESUMES then return nil, lost(peer, request, "its stream broke again and again") end
    local exchange
    exchange, failure = reopen(peer, request, stream,
      stream.retry and math.min(stream.retry / 1000, policy.longest) or retry.wait(policy, failed))
    if exchange then
      local before, message = stream.last_id
      stream = transport.stream(peer, exchange, request, stream)
      message, failure = read(peer, request, stream)
      exchange:close()
      if message then return message end
      if stream.last_id ~= before then failed = 0 end
    end
  end
  return nil, failure
end

--- Whether the server has lost the session: mostly 404; some say it with another status.
local function is_session_lost(peer, request, failure)
  if not peer.session or request.method == "initialize" then return false end
  local status = failure.status
  return status == 404 or (status == 400 or status == 401) and failure.words:lower():find("session", 1, true) ~= nil
end

local function without_answer(peer, request, exchange, status)
  if status < 300 then return nil end
  local failure = transport.refusal(peer, exchange, status)
  if is_session_lost(peer, request, failure) then failure.code = "session_lost" end
  return failure
end

--- Sends a request and waits for its answer. Returns the result, or nil and the failure; and the session that the answer names.
local function ask(peer, method, params, limits)
  local request = transport.request(peer, method, limits)
  request.asked = 0
  if method == "tools/call" then params._meta = { progressToken = request.id } end
  local body = { jsonrpc = "2.0", id = request.id, method = method, params = params }
  local _ <close> = method == "tools/call" and listen(peer) or nil
  local exchange <close>, status = transport.send(peer, body, { headers = header_lines(peer), request = request })
  if not exchange then
    cancel(peer, request, status)
    return nil, status
  end
  local refused = without_answer(peer, request, exchange, status)
  if refused then return nil, refused end
  local session = peer.offered
  local stream = transport.stream(peer, exchange, request)
  local message, failure = read(peer, request, stream)
  if not message then message, failure = resume(peer, request, stream, failure) end
  if message then
    local result, problem = transport.outcome(peer, message, status)
    return result, problem, session
  end
  cancel(peer, request, failure)
  return nil, failure
end

---Whether a session's name fits a header.
---@param session string
---@return boolean
function legacy.is_session(session)
  return session:find("^[\x21-\x7E]+$") ~= nil
end

---Opens a session: initialize, and the notification after it.
---@param peer mcp.peer
---@return table? result of initialize
---@return mcp.failure?
function legacy.open(peer)
  peer.session, peer.version = nil, nil
  close_standalone(peer)
  local result, failure, session = ask(peer, "initialize", {
    protocolVersion = NEWEST, capabilities = {}, clientInfo = transport.CLIENT,
  })
  if not result then return nil, failure end
  local shown = transport.place(peer)
  if not legacy.versions[result.protocolVersion] then
    return nil, http.failure("unsupported_version", ("%s speaks revision %s of MCP, which is not spoken here"):format(shown,
      http.shown(type(result.protocolVersion) == "string" and result.protocolVersion or "(none)")))
  end
  if session and not legacy.is_session(session) then
    return nil, http.failure("bad_session", shown .. " names a session with characters that no header may hold")
  end
  peer.session, peer.version = session, result.protocolVersion
  local told, untold = tell(peer, { method = "notifications/initialized" })
  return told and result, untold
end

---Sends a request in the open session; once more in a new one if the server has lost the session.
---@param peer mcp.peer
---@param method string
---@param params table
---@param limits? mcp.limits
---@return table? result, mcp.failure?
function legacy.request(peer, method, params, limits)
  local result, failure = ask(peer, method, params, limits)
  if result or failure.code ~= "session_lost" then return result, failure end
  local opened, problem = legacy.open(peer)
  if not opened then return nil, problem end
  return ask(peer, method, params, limits)
end

---Ends the session. Failures are ignored.
---@param peer mcp.peer
function legacy.close(peer)
  close_standalone(peer)
  if not peer.session then return end
  local exchange = transport.send(peer, nil, { method = "DELETE", headers = header_lines(peer), ignore_interrupt = true })
  if exchange then exchange:close() end
  peer.session = nil
end

return legacy
