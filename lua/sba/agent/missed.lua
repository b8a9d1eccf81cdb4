-- SPDX-License-Identifier: Apache-2.0
-- Whether an agent's job failed because the outside was missing. A step that fails for want of it is an answer to the model, who may find
-- another way. The job failed for it if the model gives up on a criterion or repeats itself, and
--   the last command or call to the gateway failed for want of the outside, or
--   the evidence for a criterion that is not met names such a step.
-- A model whose replies cannot be read has failed for itself.

local acceptance = require "sba.agent.acceptance"

local missed = {}
missed.__index = missed

local reach_out <const> = { run_command = true, call_tool = true }

function missed.new()
  return setmetatable({ by_id = {} }, missed)
end

---Takes notice of a step.
---@param entry { id: string, type: string, error?: string, error_code?: string }
function missed:note(entry)
  local failed = entry.error_code == "ext_net_required"
  if failed then self.by_id[entry.id] = ("%s: %s"):format(entry.id, entry.error) end
  if reach_out[entry.type] then self.last = failed and entry.id or nil end
end

--- The step that the model gave up for.
local function blamed(self, list)
  for _, item in ipairs(list or {}) do
    for _, id in ipairs(item.met == false and acceptance.named_steps(item.evidence) or {}) do
      if self.by_id[id] then return id end
    end
  end
  return self.last
end

---The job's failure as it is to be called.
---@param failure { code: string, message: string, gave_up?: boolean }
---@param list? { criterion: string, met: boolean, evidence: string }[]
---@return { code: string, message: string }
function missed:rename(failure, list)
  local id = failure.gave_up and blamed(self, list)
  if not id then return failure end
  return { code = "ext_net_required", message = ("%s; %s"):format(self.by_id[id], failure.message) }
end

return missed
