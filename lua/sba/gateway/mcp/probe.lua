-- SPDX-License-Identifier: Apache-2.0
-- Finds out which revisions a server speaks, with a request that servers of earlier revisions do not know.

local http = require "sba.util.http"
local json = require "sba.util.json"
local legacy = require "sba.gateway.mcp.legacy"
local modern = require "sba.gateway.mcp.modern"
local transport = require "sba.gateway.mcp.transport"

local probe = {}

local SILENCE <const> = 5 -- seconds after which initialize is tried: the first SDKs never answer what they do not know

-- Answers that cannot be read, or never come.
local no_answer = { bad_answer = true, request_lost = true, slow_first_byte = true, slow_answer = true }

local function speaks_legacy(list)
  for _, version in ipairs(list) do
    if legacy.versions[version] then return true end
  end
  return false
end

--- The era of a server that names its versions.
local function by_versions(peer, list)
  if modern.speaks(list) then return "modern" end
  if speaks_legacy(list) then return "legacy" end
  return nil, http.failure("unsupported_version",
    ("%s speaks no revision of MCP that is spoken here, but %s"):format(transport.place(peer), http.shown(json.encode(list))))
end

local not_evidence = { [-32020] = true, [-32021] = true }

--- The era of a server that answers with a JSON-RPC error.
local function by_error(peer, failure)
  local rpc = failure.rpc
  if not_evidence[rpc.code] then return nil, failure end
  local supported = rpc.code == modern.UNSUPPORTED_VERSION and type(rpc.data) == "table" and rpc.data.supported
  if json.is_array(supported) then return by_versions(peer, supported) end
  return "legacy"
end

--- Asks for the era. Any answer that is not the one of revision 2026-07-28 counts as an earlier revision: initialize then tells.
local function ask(peer)
  local limits = { whole = math.min(SILENCE, peer.limits.whole) }
  local result, failure = modern.request(peer, "server/discover", {}, { limits = limits })
  if result then
    if not json.is_array(result.supportedVersions) then return "legacy" end
    local era, problem = by_versions(peer, result.supportedVersions)
    return era, problem or result
  end
  if failure.status == 401 or failure.status == 403 or failure.code == "redirected" then return nil, failure end
  if failure.rpc then return by_error(peer, failure) end
  if failure.status and (failure.status < 500 or failure.status == 501) then return "legacy" end
  if no_answer[failure.code] then return "legacy" end
  return nil, failure
end

---Finds out the era. A session that a server of an earlier revision opened for the question is ended.
---@param peer mcp.peer
---@return "modern"|"legacy"|nil
---@return mcp.failure|table|nil failure, or the result of server/discover
function probe.era(peer)
  local era, found = ask(peer)
  local offered = peer.offered
  if offered and legacy.is_session(offered) and era ~= "modern" then
    peer.session = offered
    legacy.close(peer)
  end
  return era, found
end

return probe
