-- SPDX-License-Identifier: Apache-2.0
-- The skills that an agent's job names by id join its context before the first prompt. They are in the journal, so that a run that
-- goes on, or a replay, tells the model the same; a replay asks nobody.

local skills = require "sba.orchestrator.skills"

--- Asks the orchestrator.
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
  local had = (run.recording or run.history or {}).skills
  if not had and run.recording then had = { found = {}, missing = context.skill_ids } end
  if not had then had = fetch(run, context.skill_ids) end
  run.journal:skills(had.found, had.missing)
  for _, skill in ipairs(had.found) do table.insert(context.skills, { name = skill.name, text = skill.text }) end
  run.missing_skills = had.missing
end
