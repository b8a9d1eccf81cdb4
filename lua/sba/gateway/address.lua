-- SPDX-License-Identifier: Apache-2.0
-- The gateway that the environment names.

local first_set = require "sba.util.first_set"
local text = require "native.text"

local VARIABLES <const> = { "SBA_MCP_GATEWAY_URL", "MCP_GATEWAY_PROXY_URL", "MCP_GATEWAY_URL" }
-- A node's variables that hold the orchestrator's address, without the path of its tools.
local BASES <const> = { "ORCHESTRATOR_MCP_TOOLS_BASE_URL", "ORCHESTRATOR_MCP_GATEWAY_BASE_URL", "ORCHESTRATOR_URL" }
local PATH <const> = "/v1/mcp/tools/call"

---@param environment table<string, string>
---@return string? url, string? variable that holds it
return function(environment)
  local url, variable = first_set(environment, VARIABLES)
  if url then return url, variable end
  url, variable = first_set(environment, BASES)
  if not url then return nil end
  url = text.trim_end(url, "/")
  return url:sub(-#PATH) == PATH and url or url .. PATH, variable
end
