-- SPDX-License-Identifier: Apache-2.0
-- The gateway that the environment names.

local text = require "native.text"

local VARIABLES <const> = { "SBA_MCP_GATEWAY_URL", "MCP_GATEWAY_PROXY_URL", "MCP_GATEWAY_URL" }
-- A node's variables that hold the orchestrator's address, without the path of its tools.
local BASES <const> = { "ORCHESTRATOR_MCP_TOOLS_BASE_URL", "ORCHESTRATOR_MCP_GATEWAY_BASE_URL", "ORCHESTRATOR_URL" }
local PATH <const> = "/v1/mcp/tools/call"

local function first(environment, variables)
  for _, variable in ipairs(variables) do
    local url = environment[variable]
    if url and url ~= "" then return url, variable end
  end
end

---@param environment table<string, string>
---@return string? url, string? variable that holds it
return function(environment)
  local url, variable = first(environment, VARIABLES)
  if url then return url, variable end
  url, variable = first(environment, BASES)
  if not url or url:sub(-#PATH) == PATH then return url, variable end
  return text.trim_end(url, "/") .. PATH, variable
end
