-- SPDX-License-Identifier: Apache-2.0
-- MCP with a handshake: revisions 2024-11-05 (over Streamable HTTP), 2025-03-26, 2025-06-18 and
-- 2025-11-25.

local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local retry = require "sba.util.retry"
local said_of = require "sba.util.said"
local standalone = require "sba.gateway.mcp.standalone"
local transport = require "sba.gateway.mcp.transport"

-- The newest first.
local VERSIONS <const> = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05" }
local MOST_FAILED_RESUMES <const> = 5 -- in a row, without a new event

local legacy = {}

---@param version any
---@return boolean
function legacy.speaks(version) return json.contains(VERSIONS, version) end

local GAVE_UP <const> = { "timeout", "cancelled", "slow_answer", "slow_first_byte" }
local LOST <const> = "did not answer %s: %s; it may have been carried out all the same"

-- Tells the server that nobody waits for its answer any more; past the job's deadline too.
local function cancel(connection, request, failure)
  if not json.contains(GAVE_UP, failure.code) or request.method == "initialize" then return end
  local params = { requestId = request.id, reason = failure.code }
  standalone.notify(connection, { method = "notifications/cancelled", params = params }, transport.LAST)
end

local function lost(connection, request, why, ...)
  return connection:failure("request_lost", LOST, request.method, why:format(...))
end

-- Reads on in a broken stream behind its last event.
local function reopen(connection, request, wait)
  local left = (request.until_when or math.huge) - interrupt.now()
  local slept, failure = interrupt.sleep(math.max(0, math.min(wait, left)))
  if not slept then return nil, http.failure(failure.code, failure.message) end
  local headers = standalone.headers(connection, "Last-Event-ID: " .. request.last_id)
  local exchange <close>, status = connection:send(request, nil, headers)
  if not exchange then return nil, status end
  if status >= 500 then return nil, connection:refusal(exchange, status) end
  if status < 300 and http.is_stream(exchange) then return connection:read(exchange, request) end
  local why = "its stream broke, and status %d was the answer to the request to resume it"
  return nil, lost(connection, request, why, status)
end

local RESUMABLE <const> = { "cut_off", "connection_failed", "connection_refused", "gateway_failed" }

-- Resumes a broken stream until it has the answer, or broke too often without a new event in
-- between.
local function resume(connection, request, failure)
  local policy, failed, result = retry.policy(), 0, nil
  while not result and (not failure or json.contains(RESUMABLE, failure.code)) do
    if failed == MOST_FAILED_RESUMES then
      return nil, lost(connection, request, "its stream broke again and again")
    end
    failed = failed + 1
    local before, wait = request.last_id, retry.wait(policy, failed)
    if request.retry then wait = math.min(request.retry / 1000, policy.longest) end
    result, failure = reopen(connection, request, wait)
    if request.last_id ~= before then failed = 0 end
  end
  return result, failure
end

local UNOPENED <const> = { "not initialized", "not been initialized", "initialize request" }
local OF_SESSIONS <const> = {
  "id", "valid", "expired", "not found", "missing", "no ", "unknown", "terminated", "closed", "required",
}

-- Mostly 404. Servers and what stands before them also say it with another status, or as an error:
-- then by their words.
local function is_session_lost(connection, request, failure)
  if not connection.session or request.method == "initialize" then return false end
  local said = (failure.words or ""):lower()
  if failure.status == 404 or said_of.has(said, UNOPENED) then return true end
  return said_of.has(said, { "session" }) and said_of.has(said, OF_SESSIONS)
end

-- Returns result, failure, and the session that the answer names.
local function request_once(connection, method, params, limits)
  local request <const> = connection:new_request(method, limits)
  local _ <close> = method == transport.CALL and standalone.attend(connection) or nil
  local result, failure = connection:request(request, params, standalone.headers(connection))
  if not result and request.last_id and not request.last_id:find "%c" then
    result, failure = resume(connection, request, failure)
  end
  if result then return result, nil, request.session end
  failure = failure or lost(connection, request, "its stream ended early")
  if is_session_lost(connection, request, failure) then failure.code = "session_lost" end
  cancel(connection, request, failure)
  return nil, failure
end

-- The newest of the older revisions that a refusal names, or the next one where it speaks of the
-- version and names none. For example, 2025-03-26 after 2025-11-25 was offered, and "supported:
-- 2024-11-05, 2025-03-26" was said.
local function version_after(offered, failure)
  local said = (failure.words or ""):lower() .. json.encode(json.table_of(failure.rpc).data or json.null)
  local is_open = said:find("version", 1, true) and not said:find "%d%d%d%d%-%d%d%-%d%d"
  local is_older
  for _, version in ipairs(VERSIONS) do
    if is_older and (is_open or said:find(version, 1, true)) then return version end
    is_older = is_older or version == offered
  end
end

local UNSPOKEN <const> = "speaks revision %s of MCP, which is not spoken here"

---@param connection mcp.connection
---@param limits mcp.limits
---@param offered? string the revision; default: the newest
---@return table? result of initialize, mcp.failure?
function legacy.open(connection, limits, offered)
  connection.session, connection.version, connection.answer = nil, nil, standalone.answer
  standalone.close(connection)
  offered = offered or VERSIONS[1]
  local params = { protocolVersion = offered, capabilities = {}, clientInfo = transport.CLIENT }
  local result, failure, session = request_once(connection, "initialize", params, limits)
  if not result then
    local other = version_after(offered, failure)
    if other then return legacy.open(connection, limits, other) end
    return nil, failure
  end
  local version = json.given(result.protocolVersion) or offered
  if not legacy.speaks(version) then
    local shown = http.shown(type(version) == "string" and version or "(none)")
    return connection:failed("unsupported_version", UNSPOKEN, shown)
  end
  if session and not transport.fits_a_header(session) then
    return connection:failed("bad_session", "names a session with characters that no header may hold")
  end
  connection.session, connection.version = session, version
  local accepted, failed = standalone.notify(connection, { method = "notifications/initialized" })
  return accepted and result, failed
end

---Asks once more, in a new session, if the server has lost this one.
---@param connection mcp.connection
---@param method string
---@param params table
---@param limits mcp.limits
---@return table? result, mcp.failure?
function legacy.request(connection, method, params, limits)
  local result, failure = request_once(connection, method, params, limits)
  if result or failure.code ~= "session_lost" then return result, failure end
  local opened, problem = legacy.open(connection, limits)
  if not opened then return nil, problem end
  return request_once(connection, method, params, limits)
end

---Ignores failures.
---@param connection mcp.connection
function legacy.close(connection)
  standalone.close(connection)
  local session = connection.session
  if session and transport.fits_a_header(session) then standalone.notify(connection, nil, transport.LAST) end
  connection.session = nil
end

return legacy
