-- SPDX-License-Identifier: Apache-2.0
-- Fetches the skills that a job names by id, with the gateway's tool skills.get, and adds them to its context before the first prompt.
-- The journal keeps them, so a resumed run or a replay gives the model the same prompt. A replay never fetches.

local find = require "sba.gateway.tool_result".find
local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"

local TOOL <const> = "skills.get"
local LONGEST <const> = 20 -- seconds for one
local LARGEST <const> = 256 * 1024 -- bytes of one skill's text
local LARGEST_SUM <const> = 1024 * 1024 -- bytes of all: they are part of every prompt

---@class orchestrator.skill
---@field id string
---@field name string for people and the model
---@field text string

local TEXTS <const>, NAMES <const> = { "content", "text", "body", "markdown", "instructions" }, { "name", "title" }

--- The text and the name in an answer: fields of the structured answer or of its JSON, or the text itself.
local function read(answer)
  local value = answer.structured
  if value == nil then value = json.decode(answer.content) end
  local text, holder = find(value, TEXTS, 1)
  if text then return text, (find(holder, NAMES, 0)) end
  text = type(value) == "string" and value or type(value) ~= "table" and answer.content or ""
  return text:find "%S" and text or nil
end

--- One skill, or nil and a failure. room: bytes that its text may have.
local function fetch(gateway, id, room)
  local answer, failure = gateway:call(TOOL, { skill_id = id }, { until_when = interrupt.now() + LONGEST, repeatable = true })
  if not answer then return nil, failure end
  if answer.is_error then return nil, { code = "skill_refused", message = "the gateway says: " .. http.shown(answer.content) } end
  local text, name = read(answer)
  if not text then return nil, { code = "bad_answer", message = "the gateway's answer holds no text of a skill" } end
  if #text > room then return nil, { code = "too_large", message = ("its text has more than %d bytes"):format(room) } end
  return { id = id, name = name or id, text = text }
end

--- Fetches skills. After a failure of the gateway itself the rest are not tried, so that a job waits for a dead gateway once.
---@return { found: orchestrator.skill[], missing: string[] } missing: ids
local function fetch_all(run, ids)
  local found, missing, room = json.array {}, json.array {}, LARGEST_SUM
  local gateway, failure = run:connect()
  for _, id in ipairs(ids) do
    local skill
    if gateway then skill, failure = fetch(gateway, id, math.min(LARGEST, room)) end
    if skill then
      found[#found + 1], room = skill, room - #skill.text
    else
      missing[#missing + 1] = id
      local why = ("cannot fetch the skill %s: %s"):format(id, failure.message)
      run.log:event("warning", "skill.missing", { skill_id = id, code = failure.code, error = why })
      if http.is_down(failure) then gateway = nil end
    end
  end
  return { found = found, missing = missing }
end

---@param run run
return function(run)
  local context = run.job.context
  local fetched = (run.recording or run.past).skills
  if not fetched and run.recording then fetched = { found = json.array {}, missing = context.skill_ids } end
  fetched = fetched or fetch_all(run, context.skill_ids)
  run:emit("skills", { found = fetched.found, missing = fetched.missing })
  for _, skill in ipairs(fetched.found) do table.insert(context.skills, { name = skill.name, text = skill.text }) end
  run.missing_skills = fetched.missing
end
