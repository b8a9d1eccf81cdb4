-- SPDX-License-Identifier: Apache-2.0
-- Which MCP a server speaks, found out with the one request that no server of an earlier revision carries out.

local http = require "sba.util.http"
local json = require "sba.util.json"
local legacy = require "sba.orchestrator.mcp.legacy"
local modern = require "sba.orchestrator.mcp.modern"
local transport = require "sba.orchestrator.mcp.transport"

local probe = {}

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

--- What a JSON-RPC error says about its sender's era.
local function by_error(peer, failure)
  local rpc = failure.rpc
  if not_evidence[rpc.code] then return nil, failure end
  local supported = rpc.code == modern.UNSUPPORTED_VERSION and type(rpc.data) == "table" and rpc.data.supported
  if json.is_array(supported) then return by_versions(peer, supported) end
  return "legacy"
end

---Finds out the era. "plain": the answer was an error in the form of the plain POST gateway.
---@param peer mcp.peer
---@return "modern"|"legacy"|"plain"|nil
---@return mcp.failure|table|nil failure, or the result of server/discover
function probe.era(peer)
  local result, failure = modern.request(peer, "server/discover", {})
  if result then
    if not json.is_array(result.supportedVersions) then return "legacy" end
    local era, problem = by_versions(peer, result.supportedVersions)
    return era, problem or result
  end
  if failure.status == 401 or failure.status == 403 or failure.code == "redirected" then return nil, failure end
  if failure.rpc then return by_error(peer, failure) end
  if failure.plain and (failure.status == 400 or failure.status == 501) then return "plain" end
  if failure.status and failure.status < 500 or failure.code == "bad_answer" then return "legacy" end
  return nil, failure
end

return probe
