-- SPDX-License-Identifier: Apache-2.0
-- MCP with a handshake: revisions 2024-11-05 (over Streamable HTTP), 2025-03-26, 2025-06-18 and 2025-11-25.

local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local retry = require "sba.util.retry"
local transport = require "sba.gateway.mcp.transport"

local NEWEST <const> = "2025-11-25"

local legacy = {
  versions = { ["2024-11-05"] = true, ["2025-03-26"] = true, ["2025-06-18"] = true, ["2025-11-25"] = true },
}

local MOST_FAILED_RESUMES <const> = 5 -- in a row, without a new event
local LINES_AT_A_TIME <const> = 256 -- of the standalone stream, then of the call

local function header_lines(peer, first)
  local lines = { first }
  if peer.session then lines[#lines + 1] = "Mcp-Session-Id: " .. peer.session end
  if peer.version then lines[#lines + 1] = "MCP-Protocol-Version: " .. peer.version end
  return lines
end

-- Sends a message that has no answer, or only HTTP's method.
local function tell(peer, message, options)
  if message then message.jsonrpc = "2.0" end
  local exchange <close>, status = peer:send(peer:request("a message", {}), message, header_lines(peer), options)
  if not exchange then return nil, status end
  http.read(exchange, 1)
  return true
end

local function answer(peer, message)
  if message.method == "ping" then return tell(peer, { id = message.id, result = {} }) end
  return tell(peer, { id = message.id, error = { code = -32601, message = "Method not found" } })
end

-- The server's standalone stream: many ask there what a call needs, and wait; what they ask while it is not open is lost.

-- Yields where there is no line yet.
local function yielding(exchange)
  local count = 0
  local function line()
    local next_line, more = exchange:line()
    local is_quiet = not next_line and type(more) == "table" and more.code == "slow_answer"
    count = count + 1
    if is_quiet or count % LINES_AT_A_TIME == 0 then coroutine.yield() end
    if is_quiet then return line() end
    return next_line, more
  end
  return { header = function(_, name) return exchange:header(name) end, line = line }
end

local function close_standalone(peer)
  if peer.standalone and peer.standalone.exchange then peer.standalone.exchange:close() end
  peer.standalone = nil
end

local function open_standalone(peer)
  close_standalone(peer)
  local request = { id = 0, method = "GET" }
  local exchange, status = peer:send(request, nil, header_lines(peer), { is_polled = true })
  peer.standalone = {}
  if not exchange then return nil end
  if status >= 300 or not http.is_stream(exchange) then return exchange:close() end
  peer.standalone.exchange, peer.standalone.thread = exchange, coroutine.create(function()
    peer:read(yielding(exchange), request, function(message) answer(peer, message) end)
  end)
  return peer.standalone.thread
end

-- Answers the standalone stream until the returned value is closed.
local function listen(peer)
  local thread, before = peer.standalone and peer.standalone.thread, nil
  if not peer.standalone or thread and coroutine.status(thread) == "dead" then thread = open_standalone(peer) end
  if not thread then return nil end
  before = peer.http:tick(function()
    if before then before() end
    if coroutine.status(thread) == "suspended" then assert(coroutine.resume(thread)) end
  end)
  return setmetatable({}, { __close = function() peer.http:tick(before) end })
end

local gave_up <const> = { timeout = true, cancelled = true, slow_answer = true, slow_first_byte = true }

-- Works past the job's deadline too.
local function cancel(peer, request, failure)
  if not gave_up[failure.code] or request.method == "initialize" then return end
  local params = { requestId = request.id, reason = failure.code }
  tell(peer, { method = "notifications/cancelled", params = params }, { ignore_interrupt = true })
end

local function lost(peer, request, why, ...)
  return peer:failure("request_lost", "did not answer %s: %s; it may have been carried out all the same",
    request.method, why:format(...))
end

-- Reads on in a broken stream behind its last event.
local function reopen(peer, request, wait, on_request)
  local left = request.until_when and request.until_when - interrupt.now() or wait
  local slept, failure = interrupt.sleep(math.max(0, math.min(wait, left)))
  if not slept then return nil, http.failure(failure.code, failure.message) end
  local exchange <close>, status = peer:send(request, nil, header_lines(peer, "Last-Event-ID: " .. request.last_id))
  if not exchange then return nil, status end
  if status >= 500 then return nil, peer:refusal(exchange, status) end
  if status < 300 and http.is_stream(exchange) then return peer:read(exchange, request, on_request) end
  return nil, lost(peer, request, "its stream broke, and status %d was the answer to the request to resume it", status)
end

local resumable <const> = { cut_off = true, connection_failed = true, connection_refused = true, gateway_failed = true }

local function resume(peer, request, failure, on_request)
  local policy, failed, result = retry.policy(), 0, nil
  while not result and (not failure or resumable[failure.code]) do
    if failed == MOST_FAILED_RESUMES then return nil, lost(peer, request, "its stream broke again and again") end
    failed = failed + 1
    local before, wait = request.last_id, request.retry and math.min(request.retry / 1000, policy.longest) or retry.wait(policy, failed)
    result, failure = reopen(peer, request, wait, on_request)
    if request.last_id ~= before then failed = 0 end
  end
  return result, failure
end

-- Mostly 404; some servers use another status.
local function is_session_lost(peer, request, failure)
  if not peer.session or request.method == "initialize" then return false end
  local status = failure.status
  return status == 404 or (status == 400 or status == 401) and failure.words:lower():find("session", 1, true) ~= nil
end

-- Returns result, failure, and the session that the answer names.
local function ask(peer, method, params, limits)
  local request <const> = peer:request(method, limits)
  local _ <close> = method == transport.CALL and listen(peer) or nil
  local function on_request(message) answer(peer, message) end
  local result, failure = peer:ask(request, params, header_lines(peer), on_request)
  if not result and request.last_id and not request.last_id:find "%c" then
    result, failure = resume(peer, request, failure, on_request)
  end
  if result then return result, nil, request.session end
  failure = failure or lost(peer, request, "its stream ended early")
  if is_session_lost(peer, request, failure) then failure.code = "session_lost" end
  cancel(peer, request, failure)
  return nil, failure
end

local function is_session(name) return name:find("^[\x21-\x7E]+$") ~= nil end

---@param peer mcp.peer
---@param limits mcp.limits
---@return table? result of initialize, mcp.failure?
function legacy.open(peer, limits)
  peer.session, peer.version = nil, nil
  close_standalone(peer)
  local result, failure, session = ask(peer, "initialize", {
    protocolVersion = NEWEST, capabilities = {}, clientInfo = transport.CLIENT,
  }, limits)
  if not result then return nil, failure end
  local version = result.protocolVersion
  if not legacy.versions[version] then
    return nil, peer:failure("unsupported_version", "speaks revision %s of MCP, which is not spoken here",
      http.shown(type(version) == "string" and version or "(none)"))
  end
  if session and not is_session(session) then
    return nil, peer:failure("bad_session", "names a session with characters that no header may hold")
  end
  peer.session, peer.version = session, version
  local accepted, failed = tell(peer, { method = "notifications/initialized" })
  return accepted and result, failed
end

---Asks once more, in a new session, if the server has lost this one.
---@param peer mcp.peer
---@param method string
---@param params table
---@param limits mcp.limits
---@return table? result, mcp.failure?
function legacy.request(peer, method, params, limits)
  local result, failure = ask(peer, method, params, limits)
  if result or failure.code ~= "session_lost" then return result, failure end
  local opened, problem = legacy.open(peer, limits)
  if not opened then return nil, problem end
  return ask(peer, method, params, limits)
end

---Ignores failures.
---@param peer mcp.peer
function legacy.close(peer)
  close_standalone(peer)
  if peer.session and is_session(peer.session) then tell(peer, nil, { method = "DELETE", ignore_interrupt = true }) end
  peer.session = nil
end

return legacy
