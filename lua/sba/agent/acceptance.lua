-- SPDX-License-Identifier: Apache-2.0
-- Whether a finish is one: every acceptance criterion has its entry, and evidence that names a step of this job that
-- succeeded. "Done" without evidence is not done.

local json = require "sba.util.json"
local text = require "native.text"
local words = require "sba.util.words"

local acceptance = {}

---@class run.verdict an element of the result's acceptance
---@field criterion string
---@field met boolean|lightuserdata json.null: not checked
---@field evidence string names the step; empty where nothing was checked
---@field verified_by "check"|"model"|lightuserdata

---Each criterion as one that was not checked.
---@param criteria string[]
---@return run.verdict[]
function acceptance.unchecked(criteria)
  local list = json.array {}
  for number, criterion in ipairs(criteria) do
    list[number] = { criterion = criterion, met = json.null, evidence = "", verified_by = json.null }
  end
  return list
end

---The numbers of the criteria that have a check, in their order.
---@param context? sba.context
---@return integer[]
function acceptance.numbers(context)
  local numbers = {}
  for number in ipairs(context and context.acceptance_criteria or {}) do
    if context.checks[number] then numbers[#numbers + 1] = number end
  end
  return numbers
end

---The job's failure, where checks fail.
---@param failing run.checked[]
---@return failure
function acceptance.unmet(failing)
  local first, more = failing[1].verdict, #failing > 1 and ("; and %d more"):format(#failing - 1) or ""
  local message = ("the criterion %s is not met: %s%s"):format(words.quoted(first.criterion), first.evidence, more)
  return { code = "acceptance_unmet", message = message }
end

local function normalised(criterion)
  return text.trim_end(criterion:lower():gsub("%s+", " "):gsub("^[%s%d.)]*", ""), " .")
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

--- The ids of steps that a text names; "step 3" counts as "step-3".
local function named_steps(evidence)
  local ids, said = {}, evidence:lower()
  for number in said:gmatch("step[%s_-]*(%d+)") do ids[#ids + 1] = "step-" .. number end
  for number in said:gmatch("check[%s_-]*(%d+)") do ids[#ids + 1] = "check-" .. number end
  return ids
end

local function what_is_missing(criterion, entry, status_of)
  if not entry then return ("no entry for the criterion \"%s\""):format(criterion) end
  local ids = named_steps(entry.evidence)
  if #ids == 0 then
    return ("the evidence for \"%s\" names no step of this job; write for example \"step-3: ...\""):format(criterion)
  end
  for _, id in ipairs(ids) do
    if status_of[id] == "success" then return nil end
  end
  local first = ids[1]
  return ("the evidence for \"%s\" names %s, %s"):format(criterion, first,
    status_of[first] and "which did not succeed" or "which is not a step of this job")
end

---Holds what the model says against the job's criteria. Those that have a check are the runner's to judge.
---@param context sba.context
---@param entries { criterion: string, met: boolean, evidence: string }[]
---@param status_of table<string, string> the status of each step of this job, by its id
---@return run.verdict[] list in the criteria's order; without what has no evidence
---@return string[] missing one line each
---@return string? unmet the first criterion that is said not to be met
function acceptance.judge(context, entries, status_of)
  local list, missing, unmet = acceptance.unchecked(context.acceptance_criteria), {}, nil
  for i, verdict in ipairs(list) do
    local entry = not context.checks[i] and find(entries, verdict.criterion, i)
    local reason = not context.checks[i] and not (entry and not entry.met) and what_is_missing(verdict.criterion, entry, status_of)
    missing[#missing + 1] = reason or nil
    if entry and not reason then
      verdict.met, verdict.evidence, verdict.verified_by = entry.met, entry.evidence, "model"
      unmet = unmet or not entry.met and verdict.criterion or nil
    end
  end
  return list, missing, unmet
end

return acceptance
