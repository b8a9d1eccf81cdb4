-- SPDX-License-Identifier: Apache-2.0
-- What goes wrong between the runner and the gateway, in one form.
--
-- Codes: those of native.http; "timeout" and "cancelled" (of the job); "redirected", "unauthorized" (401), "tool_denied" (403),
-- "refused" (another 4xx), "gateway_failed" (5xx), "tool_refused" (a JSON-RPC error or 400), "tool_unavailable" (501),
-- "session_lost", "bad_session" (its name fits no header), "request_lost" (sent, and no answer to be had: it may have run),
-- "not_mcp", "unsupported_version", "input_required" (the tool asks what nobody here can answer), "bad_answer", "slow_answer".

local printable = require "sba.util.printable"
local text = require "native.text"

local failures = {}

local MOST_SHOWN <const> = 500 -- bytes of a server's own words in a message

---@class mcp.failure
---@field code string
---@field message string one line for people
---@field passing boolean whether the same may succeed later
---@field status? integer of HTTP
---@field rpc? { code: integer?, message: string, data: any } the JSON-RPC error

local passing = {
  connection_refused = true, connection_failed = true, network_unreachable = true, name_not_resolved = true, proxy_failed = true,
  slow_connect = true, slow_first_byte = true, slow_answer = true, cut_off = true, gateway_failed = true,
}

---@param code string
---@param message string
---@param more? table fields
---@return mcp.failure
function failures.new(code, message, more)
  local failure = more or {}
  failure.code, failure.message = code, message
  if failure.passing == nil then failure.passing = passing[code] or false end
  return failure
end

---@param failure native.failure of native.http
---@return mcp.failure
function failures.of_http(failure)
  return failures.new(failure.code, failure.message)
end

---A server's own words on one line, cut.
---@param words string
---@return string
function failures.shown(words)
  local line = printable.line(text.repair(words))
  return #line > MOST_SHOWN and text.cut(line, MOST_SHOWN) .. "..." or line
end

-- Failures of the way to the gateway, or of all that is said there, whatever it is.
local of_the_way = {
  connection_refused = true, connection_failed = true, network_unreachable = true, name_not_resolved = true, proxy_failed = true,
  permission_denied = true,
  tls_failed = true, slow_connect = true, slow_first_byte = true, slow_answer = true, timeout = true, cancelled = true, unauthorized = true,
}

---Whether anything else that is asked of the gateway now would most likely fail as well.
---@param failure mcp.failure
---@return boolean
function failures.is_of_the_way(failure)
  return of_the_way[failure.code] == true
end

local codes_of_status = { [401] = "unauthorized", [403] = "tool_denied", [429] = "gateway_failed", [501] = "tool_unavailable" }

local means = {
  [401] = " (it does not accept the agent's token)", [403] = " (it forbids this)", [501] = " (it does not have this)",
}

---@param place string the gateway, for people
---@param status integer of HTTP, not 2xx
---@param words string the server's, may be empty
---@return mcp.failure
function failures.of_status(place, status, words)
  local code = codes_of_status[status] or (status >= 500 and "gateway_failed") or "refused"
  local said = words ~= "" and ": " .. failures.shown(words) or ""
  return failures.new(code, ("%s answered with status %d%s%s"):format(place, status, means[status] or "", said), { status = status })
end

---@param place string
---@param rpc { code: integer?, message: string, data: any }
---@param status? integer of HTTP
---@return mcp.failure
function failures.of_rpc(place, rpc, status)
  local code = (status == 401 or status == 403) and codes_of_status[status] or "tool_refused"
  local number = rpc.code and (" %d"):format(rpc.code) or ""
  return failures.new(code, ("%s answered with the error%s: %s"):format(place, number, failures.shown(rpc.message)),
    { rpc = rpc, status = status })
end

return failures
