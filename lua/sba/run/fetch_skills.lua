-- SPDX-License-Identifier: Apache-2.0
-- Fetches the skills that a job names by id, and adds them to its context before the first prompt. The journal keeps them, so a
-- resumed run or a replay gives the model the same prompt. A replay never fetches.

local skills = require "sba.orchestrator.skills"

--- Fetches them from the gateway.
local function fetch(run, ids)
  local gateway, failure = run.outside:gateway()
  local found, missing = skills.fetch(gateway, failure, ids, function(id, problem)
    run.log:event("warning", "skill.missing", {
      skill_id = id, code = problem.code, error = ("cannot fetch the skill %s: %s"):format(id, problem.message),
    })
  end)
  return { found = found, missing = missing }
end

---@param run run
return function(run)
  local context = run.job.context
  local fetched = (run.recording or run.history or {}).skills
  if not fetched and run.recording then fetched = { found = {}, missing = context.skill_ids } end
  if not fetched then fetched = fetch(run, context.skill_ids) end
  run.journal:skills(fetched.found, fetched.missing)
  for _, skill in ipairs(fetched.found) do table.insert(context.skills, { name = skill.name, text = skill.text }) end
  run.missing_skills = fetched.missing
end
