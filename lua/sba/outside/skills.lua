-- SPDX-License-Identifier: Apache-2.0
-- The skills that a job names, from the gateway, before the first prompt. One that cannot be had is
-- named as missing.

local answers = require "sba.outside.answers"
local fail = require "sba.util.fail"
local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"

local skills = {}

local SECONDS <const> = 20 -- for one skill
-- Bytes: they are part of every prompt.
local LARGEST_SKILL <const>, LARGEST_SUM <const> = 256 * 1024, 1024 * 1024

-- Members of an answer.
local TEXTS <const> = { "content", "text", "body", "markdown", "instructions" }
local NAMES <const> = { "name", "title" }

-- Returns text and name: members of the structured answer or of its JSON; or its text.
local function read_skill(answer)
  local value = answer.structured
  if value == nil then value = json.decode(answer.content) end
  local words, holder = answers.find(value, TEXTS, 1)
  if words then return words, (answers.find(holder, NAMES, 0)) end
  if type(value) == "table" then return nil end
  words = type(value) == "string" and value or answer.content
  return words:find "%S" and words or nil
end

-- Raises failures.
local function fetch(gateway, id, most_bytes)
  local limits = { until_when = interrupt.now() + SECONDS, repeatable = true }
  local answer = fail.check(gateway:call("skills.get", { skill_id = id }, limits))
  if answer.is_error then error(answers.failure("skill_refused", answer), 0) end
  local words, name = read_skill(answer)
  if not words then fail.raise("bad_answer", "the gateway's answer holds no text of a skill") end
  if #words > most_bytes then fail.raise("too_large", "its text has more than %d bytes", most_bytes) end
  return { id = id, name = name or id, text = words }
end

-- Waits for a dead gateway once.
local function fetch_all(run, ids)
  local found, missing, room = json.array {}, json.array {}, LARGEST_SUM
  local gateway, failure = run:connect()
  for _, id in ipairs(ids) do
    local skill, most = nil, math.min(LARGEST_SKILL, room)
    if gateway then skill, failure = fail.caught(fetch, gateway, id, most) end
    if skill then
      found[#found + 1], room = skill, room - #skill.text
    else
      missing[#missing + 1] = id
      local message = ("cannot fetch the skill %s: %s"):format(id, failure.message)
      run:warn("skill.missing", message, { skill_id = id, code = failure.code })
      if http.is_down(failure) then gateway = nil end
    end
  end
  return { found = found, missing = missing }
end

---Adds the skills that a job names to its context. A resumed run and a replay have those of the
---journal.
---@param run run
function skills.fetch(run)
  local context = run.job.context
  local ids, fetched = context.skill_ids, (run.recording or run.history).skills
  if run.recording and not fetched then fetched = { found = json.array {}, missing = ids } end
  fetched = fetched or fetch_all(run, ids)
  run:emit("skills", { found = fetched.found, missing = fetched.missing })
  for _, skill in ipairs(fetched.found) do
    table.insert(context.skills, { name = skill.name, text = skill.text })
  end
  run.missing_skills = fetched.missing
end

return skills
