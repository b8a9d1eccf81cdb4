-- SPDX-License-Identifier: Apache-2.0
-- Artifacts leave after all processes have ended, by the gateway and by PUT; the result follows by PUT. What cannot be
-- uploaded stays on disk, and the job goes on.

local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local retry = require "sba.util.retry"
local text = require "native.text"
local tool_result = require "sba.gateway.tool_result"
local upload_urls = require "sba.util.upload_urls"

local uploads = {}

local RESULT <const> = "result.json" -- its path among what is put
local ARTIFACT_PUT <const> = "artifact.put"
local PUT_LIMITS <const> = { idle = 60, repeatable = true } -- seconds from the last chunk that was sent
-- Bytes.
local LARGEST_FILE <const> = 256 * 1024 * 1024 -- unless the gateway's form has a limit
local MOST_FILES <const>, MOST_BYTES <const> = 1000, 1024 * 1024 * 1024 -- of all uploads: they protect the node
local LONGEST_REF <const> = 4096
-- Seconds.
local CONNECT <const> = 5
local END <const>, END_AFTER_SIGNAL <const> = 30, 5 -- for one file, as for a report of the end
local UPLOADS <const>, OVERRUN <const> = 120, 2.5 -- at most, and past the deadline: enough for small files
local AFTER_SIGNAL <const>, LATEST <const> = 2.5, 4.5 -- for the uploads, and from the signal to their end

-- Names that gateways use for a reference. SURE is searched at every level before LIKELY.
local SURE <const>, LIKELY <const> = { "ref", "artifact_ref", "reference", "artifact_id" }, { "uri", "url", "id" }

local function in_structure(value) return tool_result.find(value, SURE, 2) or tool_result.find(value, LIKELY, 2) end

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
function uploads.reference(answer)
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
  local answer, failure = gateway:call(ARTIFACT_PUT, { path = artifact.path, content_bytes_base64 = content }, PUT_LIMITS)
  if not answer then return nil, failure end
  if answer.is_error then return nil, tool_result.failure("tool_failed", answer) end
  return uploads.reference(answer) or ""
end

--- One try. Unlike a report's, the body may take long to arrive: what counts is that something moves.
local function put_once(run, url, body, until_when)
  local client, failure = run:client()
  if not client then return nil, failure end
  return http.deliver(client, {
    method = "PUT", url = url, body = body, raw_files = true, connect_timeout = CONNECT,
    headers = { "Content-Type:" }, -- none: it could be part of a signature
  }, until_when, "the server at " .. http.display_url(url))
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
    path = path, size_bytes = size, ref = ref, duration_ms = interrupt.elapsed_ms(began),
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
function uploads.artifacts(run)
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
function uploads.result(run)
  local began, seconds = interrupt.now(), interrupt.signal() and END_AFTER_SIGNAL or END
  local ref, failure = put(run, RESULT, run.parts, seconds)
  if not ref then return log_failed(run, failure, RESULT) end
  log_sent(run, RESULT, nil, ref, began)
end

return uploads
