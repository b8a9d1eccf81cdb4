-- SPDX-License-Identifier: Apache-2.0
-- Which tools of the gateway a job never calls, whatever the gateway lists.

local rules = {}

local never = { "^db%.", "^node%.", "^sandbox%.", "^skills%.create$", "^skills%.update$", "^skills%.delete$" }
local outside = { "^web%.", "^api%.call$" }

local function fits(name, patterns)
  for _, pattern in ipairs(patterns) do
    if name:find(pattern) then return true end
  end
  return false
end

---Why a tool may not be called; nil where it may. Codes: tool_forbidden, ext_net_required.
---@param tool string the gateway's name of it
---@param ext_net_allowed boolean
---@return mcp.failure?
function rules.refusal(tool, ext_net_allowed)
  local name = tool:lower():match "^%s*(.-)%s*$"
  if fits(name, never) then
    return { code = "tool_forbidden", message = ("the tool %s is never open to a job"):format(name), passing = false }
  end
  if not ext_net_allowed and fits(name, outside) then
    return { code = "ext_net_required", message = ("the tool %s needs the outside, and the job's ext_net_allowed is false"):format(name),
      passing = false }
  end
end

return rules
