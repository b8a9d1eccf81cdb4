-- SPDX-License-Identifier: Apache-2.0
-- Whether a finish is one: every acceptance criterion has its entry, and evidence that names a step of this job that
-- succeeded. "Done" without evidence is not done.

local array = require "sba.util.json".array
local text = require "native.text"

local acceptance = {}

local function normalised(words)
  return text.trim_end(words:lower():gsub("%s+", " "):gsub("^[%s%d.)]*", ""), " .")
end

--- The entry for a criterion: by its text, or by its number.
local function find(entries, criterion, number)
  local wanted = normalised(criterion)
  for _, entry in ipairs(entries) do
    local named = entry.criterion
    if named == criterion or normalised(named) == wanted or named:match("^%s*#?(%d+)[.):]?%s*$") == tostring(number) then
      return entry
    end
  end
end

---The ids of steps that a text names; "step 3" counts as "step-3".
---@param evidence string
---@return string[]
function acceptance.named_steps(evidence)
  local ids = {}
  for number in evidence:lower():gmatch("step[%s_-]*(%d+)") do ids[#ids + 1] = "step-" .. number end
  return ids
end

local function what_is_missing(criterion, entry, status_of)
  if not entry then return ("no entry for the criterion \"%s\""):format(criterion) end
  local ids = acceptance.named_steps(entry.evidence)
  if #ids == 0 then
    return ("the evidence for \"%s\" names no step of this job; write for example \"step-3: ...\""):format(criterion)
  end
  for _, id in ipairs(ids) do
    if status_of(id) == "success" then return nil end
  end
  local first = ids[1]
  return ("the evidence for \"%s\" names %s, %s"):format(criterion, first,
    status_of(first) and "which did not succeed" or "which is not a step of this job")
end

---Holds a finish against the job's criteria.
---@param criteria string[]
---@param entries { criterion: string, met: boolean, evidence: string }[]
---@param status_of fun(id: string): string? status of a step of this job
---@return { criterion: string, met: boolean, evidence: string }[]? acceptance in the criteria's order, for the result
---@return string[]? missing one line each, where something is
---@return string? unmet the first criterion that is said not to be met
function acceptance.judge(criteria, entries, status_of)
  local list, missing, unmet = array {}, {}, nil
  for i, criterion in ipairs(criteria) do
    local entry = find(entries, criterion, i)
    if entry and not entry.met then
      unmet = unmet or criterion
    else
      missing[#missing + 1] = what_is_missing(criterion, entry, status_of)
    end
    list[i] = { criterion = criterion, met = entry ~= nil and entry.met, evidence = entry and entry.evidence or "" }
  end
  if unmet then return list, nil, unmet end
  if #missing > 0 then return nil, missing end
  return list
end

return acceptance
