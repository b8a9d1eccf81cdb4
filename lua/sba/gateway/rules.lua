-- SPDX-License-Identifier: Apache-2.0
-- The gateway that the environment names, the tools that a job may call, whatever it lists, and
-- their names for models.

local first_set = require "sba.util.secret".first_set
local contains = require "sba.util.json".contains
local http = require "sba.util.http"
local text = require "native.text"

local rules = {}

local VARIABLES <const> = { "SBA_MCP_GATEWAY_URL", "MCP_GATEWAY_PROXY_URL", "MCP_GATEWAY_URL" }
-- Without the path.
local BASES <const> = { "ORCHESTRATOR_MCP_TOOLS_BASE_URL", "ORCHESTRATOR_MCP_GATEWAY_BASE_URL", "ORCHESTRATOR_URL" }
local PATH <const> = "/v1/mcp/tools/call"

-- Names of tools, and prefixes that end with a dot.
local NEVER <const> = { "db.", "node.", "sandbox.", "skills.create", "skills.update", "skills.delete" }
local OUTSIDE <const> = { "web.", "api.call" }

---@param environment table<string, string>
---@return string? url, string? variable that holds it
function rules.address(environment)
  local url, variable = first_set(environment, VARIABLES)
  if url then return url, variable end
  url, variable = first_set(environment, BASES)
  if not url then return nil end
  return http.below(url, PATH), variable
end

local function is_of(names, tool)
  local name = text.trim(tool):lower()
  return contains(names, name) or contains(names, name:match "^[^.]*%.")
end

---@param tool string as the gateway names it
---@return boolean
function rules.is_outside(tool) return is_of(OUTSIDE, tool) end

---Why a tool must not be called; nil if it may be. Codes: tool_forbidden, ext_net_required.
---@param tool string as the gateway names it
---@param ext_net_allowed boolean
---@return mcp.failure?
function rules.refusal(tool, ext_net_allowed)
  local code, words
  if is_of(NEVER, tool) then
    code, words = "tool_forbidden", "no job may call the tool %s"
  elseif not ext_net_allowed and is_of(OUTSIDE, tool) then
    code, words = "ext_net_required", "the tool %s needs the external network (ext_net_allowed is false)"
  end
  return code and { code = code, message = words:format(text.trim(tool):lower()), transient = false }
end

local LONGEST <const> = 64 -- characters

---@param tool string
---@param taken table<string, any> names in use
---@return string name for models: letters, digits, _ and -, the first a letter or _, as Gemini has it
function rules.mapped(tool, taken)
  local base = tool:gsub("[\xC2-\xF4][\x80-\xBF]+", "_"):gsub("[^%w_-]", "_")
  base = base:gsub("^[^%a_]", "_%0"):sub(1, LONGEST)
  local name, number = base, 1
  while taken[name] do
    number = number + 1
    name = base:sub(1, LONGEST - #tostring(number) - 1) .. "_" .. number
  end
  return name
end

return rules
