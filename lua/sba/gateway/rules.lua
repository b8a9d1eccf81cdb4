-- SPDX-License-Identifier: Apache-2.0
-- The gateway's tools that no job may call, whatever the gateway lists, and those that reach the external network.

local text = require "native.text"

local rules = {}

-- Names of tools, and prefixes that end with a dot.
local never = { ["db."] = true, ["node."] = true, ["sandbox."] = true,
  ["skills.create"] = true, ["skills.update"] = true, ["skills.delete"] = true }
local outside = { ["web."] = true, ["api.call"] = true }

local function fits(name, names)
  return names[name] or names[name:match("^[^.]*%.")]
end

---Whether a tool reaches the network outside.
---@param tool string the gateway's name of it
---@return boolean
function rules.is_outside(tool)
  return fits(text.trim(tool):lower(), outside) == true
end

---Why a tool must not be called; nil if it may be. Codes: tool_forbidden, ext_net_required.
---@param tool string the gateway's name of it
---@param ext_net_allowed boolean
---@return mcp.failure?
function rules.refusal(tool, ext_net_allowed)
  local name = text.trim(tool):lower()
  if fits(name, never) then
    return { code = "tool_forbidden", message = ("no job may call the tool %s"):format(name), transient = false }
  end
  if not ext_net_allowed and fits(name, outside) then
    return { code = "ext_net_required", message = ("the tool %s needs the external network (ext_net_allowed is false)"):format(name),
      transient = false }
  end
end

return rules
