-- SPDX-License-Identifier: Apache-2.0
-- Which gateway the environment names. A file of its own, so that a job without one loads nothing else.

local VARIABLES <const> = { "SBA_MCP_GATEWAY_URL", "MCP_GATEWAY_PROXY_URL", "MCP_GATEWAY_URL" }

---@param environment table<string, string>
---@return string? url, string? variable that holds it
return function(environment)
  for _, variable in ipairs(VARIABLES) do
    local url = environment[variable]
    if url and url ~= "" then return url, variable end
  end
end
