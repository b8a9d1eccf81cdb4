-- SPDX-License-Identifier: Apache-2.0
-- The gateway's tools as the model is offered them: named apart from the runner's own, and no more than there is room for. They
-- stay the same for the whole job, for they stand at the beginning of every request.

local json = require "sba.util.json"
local rules = require "sba.gateway.rules"
local tools = require "sba.agent.tools"

local offered = {}

local MOST_TOOLS <const> = 128 -- that servers of models take, the runner's own included
local SHARE <const> = 1 / 3 -- of what the runner's own tools leave; the rest is for the conversation
local MOST_SAID <const> = 5 -- reasons that the log gives

--- The tools that have room, in the gateway's order, and the others' names with the reason.
local function choose(listed, own, taken, room)
  local chosen, others, free = {}, {}, MOST_TOOLS - #own
  for _, tool in ipairs(listed) do
    -- What it does is done on another machine: no misspelled name may mean it.
    local one = {
      kind = "gateway", exact = true, name = rules.mapped(tool.tool, taken), tool = tool.tool, description = tool.description,
      parameters = json.encode(tool.parameters),
    }
    local tokens = tools.cost { one }
    if #chosen < free and tokens <= room then
      chosen[#chosen + 1], taken[one.name], room = one, one, room - tokens
    else
      others[#others + 1] = { name = one.name, reason = "there is no room for it" }
    end
  end
  return chosen, others
end

local function log_choice(run, chosen, left_out)
  local said = {}
  for i = 1, math.min(#left_out, MOST_SAID) do said[i] = ("%s: %s"):format(left_out[i].name, left_out[i].reason) end
  run.log:event(#left_out > 0 and "warning" or "info", "gateway.tools", {
    tools = #chosen, left_out = #left_out, error = said[1] and table.concat(said, "; ") or nil,
  })
end

--- Those that the gateway has now. A job can do without, and the log says so.
local function listed_now(run, space, has_todo)
  local gateway, failure = run.outside:gateway()
  local listed
  if gateway then listed, failure = gateway:tools() end
  if not listed then
    run.log:event("warning", "gateway.failed", { code = failure.code, error = failure.message .. "; the job goes on without its tools" })
    return {}
  end
  local own, taken = tools.list(run.catalogue, nil, run.job, has_todo)
  local chosen, others = choose(listed, own, taken, (space - tools.cost(own)) * SHARE)
  local dropped = gateway:dropped()
  log_choice(run, chosen, table.move(others, 1, #others, #dropped + 1, table.move(dropped, 1, #dropped, 1, {})))
  return chosen, gateway.instructions
end

---The tools of the job's gateway: as the journal has them, so that the same replies mean the same calls; else as they are listed.
---@param run run
---@param space integer tokens for tools and conversation
---@param has_todo boolean whether the todo list's tools are shown
---@return agent.tool[]
---@return string? instructions the gateway's own words on how to use them
function offered.tools(run, space, has_todo)
  local past = run.recording or run.past
  if past.session then return past.session.tools, past.session.instructions end
  if run.recording or not run.outside:has_gateway() then return {} end
  return listed_now(run, space, has_todo)
end

return offered
