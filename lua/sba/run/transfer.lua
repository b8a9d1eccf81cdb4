-- SPDX-License-Identifier: Apache-2.0
-- What passes between a job and the orchestrator by the gateway's tools: skills come before the first prompt (skills.get), artifacts go
-- after the job's processes have ended and before its result is written (artifact.put).
--
-- A file is read while it is sent; one that has changed since it was listed never arrives whole. One that cannot be uploaded stays on disk.
-- Uploads may use the job's remaining time, at most two minutes. Past the deadline or after a signal they get the few seconds within
-- which a job must end, which is enough for small files.

local find = require "sba.gateway.tool_result".find
local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local text = require "native.text"

local transfer = {}

local GET <const>, GETTING <const> = "skills.get", 20 -- seconds for one
local LARGEST_SKILL <const>, LARGEST_SUM <const> = 256 * 1024, 1024 * 1024 -- bytes of one and of all: they are part of every prompt
local PUT <const>, PUT_LIMITS <const> = "artifact.put", { idle = 60, repeatable = true } -- seconds from the last chunk that was sent
local LARGEST_FILE <const> = 256 * 1024 * 1024 -- bytes, unless the gateway's form has a limit
local LONGEST_REF <const> = 4096 -- bytes
local MOST <const> = 120 -- seconds
local OVERRUN <const> = 2.5 -- seconds past the deadline
local AFTER_SIGNAL <const>, LATEST <const> = 2.5, 4.5 -- seconds for the upload; seconds from the signal to its end

-- What gateways call the texts that are looked for. SURE is searched at every level before LIKELY.
local TEXTS <const>, NAMES <const> = { "content", "text", "body", "markdown", "instructions" }, { "name", "title" }
local SURE <const>, LIKELY <const> = { "ref", "artifact_ref", "reference", "artifact_id" }, { "uri", "url", "id" }

---@class orchestrator.skill
---@field id string
---@field name string for people and the model
---@field text string

--- The text and the name in an answer: fields of the structured answer or of its JSON, or the text itself.
local function read(answer)
  local value = answer.structured
  if value == nil then value = json.decode(answer.content) end
  local words, holder = find(value, TEXTS, 1)
  if words then return words, (find(holder, NAMES, 0)) end
  words = type(value) == "string" and value or type(value) ~= "table" and answer.content or ""
  return words:find "%S" and words or nil
end

--- One skill, or nil and a failure. room: bytes that its text may have.
local function fetch(gateway, id, room)
  local answer, failure = gateway:call(GET, { skill_id = id }, { until_when = interrupt.now() + GETTING, repeatable = true })
  if not answer then return nil, failure end
  if answer.is_error then return nil, { code = "skill_refused", message = "the gateway says: " .. http.shown(answer.content) } end
  local words, name = read(answer)
  if not words then return nil, { code = "bad_answer", message = "the gateway's answer holds no text of a skill" } end
  if #words > room then return nil, { code = "too_large", message = ("its text has more than %d bytes"):format(room) } end
  return { id = id, name = name or id, text = words }
end

--- Fetches skills. After a failure of the gateway itself the rest are not tried, so that a job waits for a dead gateway once.
---@return { found: orchestrator.skill[], missing: string[] } missing: ids
local function fetch_all(run, ids)
  local found, missing, room = json.array {}, json.array {}, LARGEST_SUM
  local gateway, failure = run:connect()
  for _, id in ipairs(ids) do
    local skill
    if gateway then skill, failure = fetch(gateway, id, math.min(LARGEST_SKILL, room)) end
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

---Fetches the skills that a job names by id and adds them to its context. The journal keeps them, so a resumed run or a replay gives the
---model the same prompt; a replay never fetches.
---@param run run
function transfer.fetch_skills(run)
  local context = run.job.context
  local fetched = (run.recording or run.past).skills
  if not fetched and run.recording then fetched = { found = json.array {}, missing = context.skill_ids } end
  fetched = fetched or fetch_all(run, context.skill_ids)
  run:emit("skills", { found = fetched.found, missing = fetched.missing })
  for _, skill in ipairs(fetched.found) do table.insert(context.skills, { name = skill.name, text = skill.text }) end
  run.missing_skills = fetched.missing
end

local function in_structure(value) return find(value, SURE, 2) or find(value, LIKELY, 2) end

local function in_links(parts)
  for _, part in ipairs(parts) do
    if type(part) == "table" and part.type == "resource_link" and type(part.uri) == "string" then return part.uri end
  end
end

--- The reference in a text, which may be JSON or a single word.
local function in_text(content)
  local value = json.decode(content)
  if type(value) == "table" then return in_structure(value) end
  return type(value) == "string" and value or content:match "^%s*(%S+)%s*$"
end

---The reference in an answer: a field of the structured answer, a resource link, or the text.
---@param answer gateway.answer
---@return string? ref
function transfer.reference(answer)
  local ref = in_structure(answer.structured) or in_links(answer.parts)
  if not ref and type(answer.structured) ~= "table" then ref = in_text(answer.content) end
  return ref and #ref <= LONGEST_REF and ref or nil
end

--- The content of a file as it was listed: opened, to be read while it is sent, or in base64 where the gateway's form has a limit for it.
local function content_of(run, artifact, limit)
  if not artifact.sha256 then return nil, { code = "not_read", message = "it was not read" } end
  if artifact.size_bytes > (limit or LARGEST_FILE) then
    return nil, { code = "too_large", message = ("it is larger than %d bytes"):format(limit or LARGEST_FILE) }
  end
  local file, failure, is_same
  if limit then
    file, failure = run.artifacts:read(artifact.path, { digest = true, max_bytes = limit })
    is_same = file and file.sha256 == artifact.sha256
  else
    file, failure = run.artifacts:open(artifact.path, artifact.sha256)
    is_same = file and file:size() == artifact.size_bytes
  end
  if not file then return nil, failure end
  if not is_same then return nil, { code = "changed", message = "the file changed meanwhile" } end
  return limit and text.base64_encode(file.content) or file
end

--- Sends one file, once.
local function put(run, gateway, artifact)
  local limit = gateway.remote.largest_file
  local content, failure = content_of(run, artifact, limit)
  if not content then return nil, failure end
  local _ <close> = not limit and content or nil
  local answer
  answer, failure = gateway:call(PUT, { path = artifact.path, content_bytes_base64 = content }, PUT_LIMITS)
  if answer and answer.is_error then return nil, http.failure("tool_failed", "the gateway says: " .. http.shown(answer.content)) end
  return answer, failure
end

--- Logs what was not uploaded: an artifact, or `count` of them that were not tried, of which it is the first.
local function log_failed(run, failure, path, count)
  local what = count and ("%d artifacts were not uploaded and stay on disk"):format(count)
    or ("the artifact %s was not uploaded and stays on disk"):format(path)
  run.log:event("warning", "artifact.failed", {
    path = path, count = count, code = failure.code, tries = count and 0 or failure.tries or 1,
    error = ("%s: %s"):format(what, failure.message),
  })
end

--- Uploads files one after the other and sets their `ref`. The rest are not tried after a failure of the gateway itself. Returns whether
--- all were uploaded.
local function upload_all(run)
  local list, all = run.record.artifacts, true
  local gateway, down = run:connect(true)
  for i, artifact in ipairs(list) do
    if down then return log_failed(run, down, artifact.path, #list - i + 1) end
    local began = interrupt.now()
    local answer, failure = put(run, gateway, artifact)
    if answer then
      artifact.ref = transfer.reference(answer)
      run.log:event("info", "artifact.uploaded", {
        path = artifact.path, size_bytes = artifact.size_bytes, ref = artifact.ref,
        duration_ms = math.floor((interrupt.now() - began) * 1000 + 0.5),
      })
    else
      all = false
      log_failed(run, failure, artifact.path)
      down = (http.is_down(failure) or failure.code == "unknown_tool") and failure or nil
    end
  end
  return all
end

local function seconds(run)
  local now = interrupt.now()
  local most, signal, at = MOST, interrupt.signal()
  if signal then most = math.min(AFTER_SIGNAL, at + LATEST - now) end
  return math.max(0, math.min(run.deadline + OVERRUN - now, most))
end

---Uploads the artifacts of a run.
---@param run run its record lists them; one without sha256 was not read, and is not uploaded
function transfer.upload(run)
  run.checkpoint:write() -- the steps are on disk before the slow upload
  run.upload_failed = true -- until all is uploaded
  interrupt.rearm(seconds(run))
  run.upload_failed = not upload_all(run)
end

return transfer
