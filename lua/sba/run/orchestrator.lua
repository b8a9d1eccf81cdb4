-- SPDX-License-Identifier: Apache-2.0
-- What passes between a job and the orchestrator: reports of start and end, by the gateway skills (before the first
-- prompt) and artifacts (after all processes have ended), and by PUT artifacts and the result. If any of this fails,
-- the job goes on.

local find = require "sba.gateway.tool_result".find
local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local retry = require "sba.util.retry"
local text = require "native.text"
local upload_urls = require "sba.util.upload_urls"

local orchestrator = {}

-- Seconds and bytes.
local START <const>, TRY <const> = 3, 2 -- the report of the start, and one try
local END <const>, END_AFTER_SIGNAL <const> = 30, 5 -- the report of the end
local CONNECT <const>, ANSWER <const>, REST <const> = 5, 10, 1 -- to connect, for an answer, for the rest of its body
local LARGEST_ANSWER <const> = 64 * 1024 -- the body is not used
local GET <const>, GETTING <const> = "skills.get", 20
local LARGEST_SKILL <const>, LARGEST_SUM <const> = 256 * 1024, 1024 * 1024 -- they are part of every prompt
local RESULT <const> = "result.json" -- its path among what is put
local PUT <const>, PUT_LIMITS <const> = "artifact.put", { idle = 60, repeatable = true } -- from the last chunk that was sent
local LARGEST_FILE <const> = 256 * 1024 * 1024 -- unless the gateway's form has a limit
local MOST_FILES <const>, MOST_BYTES <const> = 1000, 1024 * 1024 * 1024 -- of all uploads: they protect the node
local LONGEST_REF <const> = 4096
local UPLOADS <const>, OVERRUN <const> = 120, 2.5 -- at most, and past the deadline: enough for small files
local AFTER_SIGNAL <const>, LATEST <const> = 2.5, 4.5 -- for the uploads, and from the signal to their end

-- Names that gateways use. SURE is searched at every level before LIKELY.
local TEXTS <const>, NAMES <const> = { "content", "text", "body", "markdown", "instructions" }, { "name", "title" }
local SURE <const>, LIKELY <const> = { "ref", "artifact_ref", "reference", "artifact_id" }, { "uri", "url", "id" }

local body_schema = { order = { "status", "job_id", "task_id" } }

---@param run run
---@param who string for messages
---@param to string
---@param body string|native.file.parts
---@param until_when number
---@param headers? string[]
---@return integer? status of a 2xx, http.failure?
function orchestrator.post(run, who, to, body, until_when, headers)
  local client, failure = run:client()
  if not client then return nil, failure end
  local exchange <close>, code = http.send(client, {
    method = "POST", url = to, body = body, connect_timeout = CONNECT, first_timeout = ANSWER, idle_timeout = REST,
    headers = { "Content-Type: application/json", "Accept: application/json", table.unpack(headers or {}) },
  }, until_when)
  if not exchange then return nil, code end
  if code >= 300 then return nil, http.refusal(exchange, code, ("%s at %s"):format(who, http.display_url(to))) end
  http.read(exchange, LARGEST_ANSWER) -- to its end, so that the connection can be used again
  return code
end

local function send(run, body, until_when) return orchestrator.post(run, "the status server", run.status_url, body, until_when) end

local function body_of(run, what)
  return json.encode({ status = what, job_id = run.record.job_id, task_id = run.record.task_id }, body_schema)
end

local function milliseconds(seconds) return math.floor(seconds * 1000 + 0.5) end

--- refused: another try would change nothing.
local function log_end(run, report, code, failure, tries, seconds)
  if code then
    run.log:event("info", "report.sent", { report = report, status = code, tries = tries, duration_ms = milliseconds(seconds) })
    return "delivered"
  end
  local outcome = failure.status and not failure.transient and "refused" or "undeliverable"
  run:warn("report.failed", ("the report %s was not delivered: %s"):format(report, failure.message), {
    report = report, outcome = outcome, status = failure.status, tries = tries,
  })
  return outcome
end

local function close_beginning(run, code)
  local start = run.beginning
  run.beginning = nil
  log_end(run, "in_progress", code, start.failure, start.tries, START - start.left)
end

---To be called again before later steps while run.beginning is set. Reports do not use the job's time.
---@param run run
function orchestrator.report_start(run)
  if interrupt.reason() then return end
  local start, at = run.beginning or { left = START, tries = 0 }, interrupt.now()
  local most = math.min(start.left, TRY)
  run.beginning = start
  run:set_deadline(run.deadline + most, run.kept_seconds)
  local code, failure = send(run, body_of(run, "in_progress"), at + most)
  local took = interrupt.now() - at
  run:set_deadline(run.deadline + took - most, run.kept_seconds)
  start.tries, start.left, start.failure = start.tries + 1, start.left - took, failure
  if code or not failure.transient or start.left <= 0 then return close_beginning(run, code) end
  if start.tries == 1 then
    run:warn("report.retry", failure.message .. "; it tries again before later steps", { report = "in_progress" })
  end
end

local function deliver(run, body)
  local tries = 0
  local code, failure = retry.within(interrupt.signal() and END_AFTER_SIGNAL or END, function(until_when, number)
    tries = number
    return send(run, body, until_when)
  end, function(problem, wait)
    run:warn("report.retry", problem.message, { report = "completed", seconds = wait })
  end)
  return code, failure, tries
end

---After a signal it has 5 s; the next one ends it.
---@param run run
---@param result native.file.parts|false
function orchestrator.report_end(run, result)
  if run.history.reported then return end -- or refused
  if not result then
    local fields = { report = "completed", outcome = "undeliverable", tries = 0 }
    return run:warn("report.failed", "the end is not reported because the result was not written", fields)
  end
  if run.beginning then close_beginning(run) end
  local body = table.move(result, 1, #result, 2, { (body_of(run, "completed"):gsub("}$", ',"result":')), from = result.from })
  body[#body + 1] = "}"
  local at, signalled = interrupt.now(), interrupt.signal()
  local code, failure, tries = deliver(run, body)
  if not code and not signalled and interrupt.signal() then code, failure, tries = deliver(run, body) end
  local outcome = log_end(run, "completed", code, failure, tries, interrupt.now() - at)
  if outcome ~= "undeliverable" and run.journal then run:emit("job.reported", { outcome = outcome }) end
end

local function tool_failed(code, answer) return http.failure(code, "the gateway says: " .. http.shown(answer.content)) end

--- Text and name: fields of the structured answer or of its JSON, or its text.
local function read_skill(answer)
  local value = answer.structured
  if value == nil then value = json.decode(answer.content) end
  local words, holder = find(value, TEXTS, 1)
  if words then return words, (find(holder, NAMES, 0)) end
  words = type(value) == "string" and value or type(value) ~= "table" and answer.content or ""
  return words:find "%S" and words or nil
end

local function fetch(gateway, id, most_bytes)
  local answer, failure = gateway:call(GET, { skill_id = id }, { until_when = interrupt.now() + GETTING, repeatable = true })
  if not answer then return nil, failure end
  if answer.is_error then return nil, tool_failed("skill_refused", answer) end
  local words, name = read_skill(answer)
  if not words then return nil, { code = "bad_answer", message = "the gateway's answer holds no text of a skill" } end
  if #words > most_bytes then return nil, { code = "too_large", message = ("its text has more than %d bytes"):format(most_bytes) } end
  return { id = id, name = name or id, text = words }
end

--- Waits for a dead gateway once.
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
      run:warn("skill.missing", ("cannot fetch the skill %s: %s"):format(id, failure.message), { skill_id = id, code = failure.code })
      if http.is_down(failure) then gateway = nil end
    end
  end
  return { found = found, missing = missing }
end

---Adds the skills that a job names to its context. A resumed run or a replay has those of the journal.
---@param run run
function orchestrator.fetch_skills(run)
  local context = run.job.context
  local fetched = (run.recording or run.history).skills
    or run.recording and { found = json.array {}, missing = context.skill_ids } or fetch_all(run, context.skill_ids)
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

--- In JSON, or a single word.
local function in_text(content)
  local value = json.decode(content)
  if type(value) == "table" then return in_structure(value) end
  return type(value) == "string" and value or content:match "^%s*(%S+)%s*$"
end

---@param answer gateway.answer
---@return string? ref
function orchestrator.reference(answer)
  local ref = in_structure(answer.structured) or in_links(answer.parts)
  if not ref and type(answer.structured) ~= "table" then ref = in_text(answer.content) end
  return ref and #ref <= LONGEST_REF and ref or nil
end

--- The opened file, which is read while it is sent, or base64 where there is a limit. A file that changed since it was listed never
--- arrives whole.
local function content_of(run, artifact, limit)
  local most = limit or LARGEST_FILE
  if artifact.size_bytes > most then return nil, { code = "too_large", message = ("it is larger than %d bytes"):format(most) } end
  if not artifact.sha256 then return nil, { code = "not_read", message = "it was not read" } end
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

local function give(run, gateway, artifact)
  local limit = gateway.client.largest_file
  local content, unread = content_of(run, artifact, limit)
  if not content then return nil, unread end
  local _ <close> = not limit and content or nil
  local answer, failure = gateway:call(PUT, { path = artifact.path, content_bytes_base64 = content }, PUT_LIMITS)
  if not answer then return nil, failure end
  if answer.is_error then return nil, tool_failed("tool_failed", answer) end
  return orchestrator.reference(answer) or ""
end

--- One try. Unlike a report's, the body may take long to arrive: what counts is that something moves.
local function put_once(run, url, body, until_when)
  local client, failure = run:client()
  if not client then return nil, failure end
  local exchange <close>, code = http.send(client, {
    method = "PUT", url = url, body = body, raw_files = true, connect_timeout = CONNECT,
    headers = { "Content-Type:" }, -- none: it could be part of a signature
  }, until_when)
  if not exchange then return nil, code end
  if code >= 300 then return nil, http.refusal(exchange, code, "the server at " .. http.display_url(url)) end
  http.read(exchange, LARGEST_ANSWER)
  return code
end

--- Tries as a report of the end is tried. Returns the address without its credentials.
local function put(run, path, body, seconds)
  local url, failure = upload_urls.of { path = path, job_id = run.record.job_id, task_id = run.record.task_id }
  if not url then return nil, failure end
  local code
  code, failure = retry.within(seconds, function(until_when) return put_once(run, url, body, until_when) end)
  if not code then return nil, failure end
  local ref = http.without_credentials(url) or ""
  return #ref <= LONGEST_REF and ref or ""
end

--- count: so many from this one on were not tried.
local function log_failed(run, failure, path, count)
  local what = count and ("%d artifacts were not uploaded and stay on disk"):format(count)
    or ("the artifact %s was not uploaded and stays on disk"):format(path)
  run:warn("artifact.failed", ("%s: %s"):format(what, failure.message), {
    path = path, count = count, code = failure.code, tries = count and 0 or failure.tries or 1,
  })
end

local TOO_MANY <const> = {
  code = "too_many_artifacts", message = ("a job uploads at most %d files, and %d MiB in all"):format(MOST_FILES, MOST_BYTES >> 20),
}

local function log_sent(run, path, size, ref, began)
  run.log:event("info", "artifact.uploaded", {
    path = path, size_bytes = size, ref = ref, duration_ms = milliseconds(interrupt.now() - began),
  })
end

--- down: why nothing can be sent.
local function upload_all(run, deliver_one, down)
  local list, all, size = run.record.artifacts, true, 0
  for i, artifact in ipairs(list) do
    if artifact.size_bytes <= LARGEST_FILE then size = size + artifact.size_bytes end -- a larger one is not sent
    local problem = down or (i > MOST_FILES or size > MOST_BYTES) and TOO_MANY
    if problem then return log_failed(run, problem, artifact.path, #list - i + 1) end
    local began = interrupt.now()
    local ref, failure = deliver_one(artifact)
    if ref then
      if ref == "" then ref = nil end
      artifact.ref = artifact.ref or ref
      log_sent(run, artifact.path, artifact.size_bytes, ref, began)
    else
      all = false
      log_failed(run, failure, artifact.path)
      down = (http.is_down(failure) or failure.code == "unknown_tool") and failure or nil
    end
  end
  return all
end

local function upload_seconds(run)
  local now, signal, at = interrupt.now(), interrupt.signal()
  local most = signal and math.min(AFTER_SIGNAL, at + LATEST - now) or UPLOADS
  return math.max(0, math.min(run.deadline + OVERRUN - now, most))
end

local function upload_to_gateway(run)
  local gateway, down = run:connect(true)
  return upload_all(run, function(artifact) return give(run, gateway, artifact) end, down)
end

local function put_artifacts(run)
  local till = interrupt.now() + upload_seconds(run)
  return upload_all(run, function(artifact)
    if artifact.path == RESULT then return nil, { code = "no_url", message = "the job's own result goes there" } end
    local content <close>, unread = content_of(run, artifact)
    if not content then return nil, unread end
    return put(run, artifact.path, { content }, math.max(0, math.min(END, till - interrupt.now())))
  end)
end

---Uploads the artifacts of the record and sets their `ref`.
---@param run run
function orchestrator.upload(run)
  run.checkpoint:write() -- the steps are on disk before the slow upload
  run.upload_failed = true -- until all is uploaded
  local all = true
  if run:has_gateway() then
    interrupt.rearm(upload_seconds(run))
    all = upload_to_gateway(run)
  end
  if upload_urls.any() then all = put_artifacts(run) and all end
  run.upload_failed = not all
end

---Puts the final result beside the artifacts, before the end is reported.
---@param run run
function orchestrator.put_result(run)
  local began, seconds = interrupt.now(), interrupt.signal() and END_AFTER_SIGNAL or END
  local ref, failure = put(run, RESULT, run.parts, seconds)
  if not ref then return log_failed(run, failure, RESULT) end
  log_sent(run, RESULT, nil, ref, began)
end

return orchestrator
