-- SPDX-License-Identifier: Apache-2.0
-- Artifacts leave after all processes have ended, by the gateway and by PUT; the result follows by
-- PUT. What cannot be uploaded stays on disk, and the job goes on.

local answers = require "sba.outside.answers"
local fail = require "sba.util.fail"
local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local reports = require "sba.outside.reports"
local retry = require "sba.util.retry"
local text = require "native.text"
local upload_urls = require "sba.util.upload_urls"

local uploads = {}

local check, raise = fail.check, fail.raise

local RESULT <const> = "result.json" -- its path among what is put
-- Seconds from the last chunk that was sent.
local GATEWAY_LIMITS <const> = { idle = 60, repeatable = true }
-- Bytes of a file, unless the gateway's form has a limit.
local LARGEST_FILE <const> = 256 * 1024 * 1024
-- Of all uploads: they protect the node.
local MOST_BYTES <const>, MOST_FILES <const> = 1024 * 1024 * 1024, 1000
local LONGEST_REF <const> = 4096 -- bytes
local MOST_OF_ONE <const> = 30 -- seconds to put a file
-- Seconds for all files, and past the deadline: enough for small ones.
local UPLOADS <const>, OVERRUN <const> = 120, 2.5
-- Seconds likewise. LATEST: from the signal to the end of the uploads.
local UPLOADS_AFTER_SIGNAL <const>, LATEST <const> = 2.5, 4.5

-- Names that gateways use for a reference. SURE is searched at every level before LIKELY.
local SURE <const> = { "ref", "artifact_ref", "reference", "artifact_id" }
local LIKELY <const> = { "uri", "url", "id" }

local function in_structure(value)
  return answers.find(value, SURE, 2) or answers.find(value, LIKELY, 2)
end

local function in_links(parts)
  for _, part in ipairs(parts) do
    local is_link = type(part) == "table" and part.type == "resource_link"
    if is_link and type(part.uri) == "string" then return part.uri end
  end
end

-- In JSON, or a single word.
local function in_text(content)
  local value = json.decode(content)
  if type(value) == "table" then return in_structure(value) end
  if type(value) == "string" then return value end
  return content:match "^%s*(%S+)%s*$"
end

local function short_ref(ref)
  if ref and #ref <= LONGEST_REF then return ref end
end

---@param answer gateway.answer
---@return string? ref
function uploads.reference(answer)
  local ref = in_structure(answer.structured) or in_links(answer.parts)
  if not ref and type(answer.structured) ~= "table" then ref = in_text(answer.content) end
  return short_ref(ref)
end

local function check_artifact(artifact, most)
  if artifact.size_bytes > most then raise("too_large", "it is larger than %d bytes", most) end
  if not artifact.sha256 then raise("not_read", "it was not read") end
end

-- A file that changed since it was listed never arrives whole.
local function check_same(is_same)
  if not is_same then raise("changed", "the file changed meanwhile") end
end

-- The opened file, which is read while it is sent.
local function open(run, artifact)
  check_artifact(artifact, LARGEST_FILE)
  local file = check(run.artifacts:open(artifact.path, artifact.sha256))
  check_same(file:size() == artifact.size_bytes)
  return file
end

-- In base64, where the gateway's form has a limit.
local function encoded(run, artifact, limit)
  check_artifact(artifact, limit)
  local file = check(run.artifacts:read(artifact.path, { digest = true, max_bytes = limit }))
  check_same(file.sha256 == artifact.sha256)
  return text.base64_encode(file.content)
end

-- Returns the reference if the gateway gives one.
local function give(run, gateway, artifact)
  local limit = gateway.client.largest_file
  local file <close> = not limit and open(run, artifact) or nil
  local content = file or encoded(run, artifact, limit)
  local arguments = { path = artifact.path, content_bytes_base64 = content }
  local answer = check(gateway:call("artifact.put", arguments, GATEWAY_LIMITS))
  if answer.is_error then error(answers.failure("tool_failed", answer), 0) end
  return uploads.reference(answer)
end

-- Tries as a report of the end is tried; but the body may take long to arrive: what counts is that
-- something moves. Returns the address without its credentials.
local function put(run, path, body, seconds)
  local ids = { path = path, job_id = run.record.job_id, task_id = run.record.task_id }
  local url = check(upload_urls.of(ids))
  -- No type is sent: it could be part of a signature.
  local headers = { "Content-Type:" }
  check(retry.within(seconds, function(until_when)
    local request = { method = "PUT", url = url, headers = headers, body = body, raw_files = true }
    return reports.deliver(run, "the server", request, until_when)
  end))
  return short_ref(http.without_credentials(url))
end

-- count: so many from this one on were not tried.
local function log_failed(run, failure, path, count)
  local message = "the artifact %s was not uploaded and stays on disk: %s"
  local tries = failure.tries or 1
  if count then message, tries = "%s artifacts were not uploaded and stay on disk: %s", 0 end
  local fields = { path = path, count = count, code = failure.code, tries = tries }
  run:warn("artifact.failed", message:format(count or path, failure.message), fields)
end

local function log_sent(run, path, size, ref, began)
  run.log:event("info", "artifact.uploaded", {
    path = path, size_bytes = size, ref = ref, duration_ms = interrupt.elapsed_ms(began),
  })
end

local TOO_MANY <const> = http.failure("too_many_artifacts",
  ("a job uploads at most %d files, and %d MiB in all"):format(MOST_FILES, MOST_BYTES >> 20))

-- send: as give and put, raises why it cannot. down: why nothing can be sent. Returns whether all is uploaded.
local function upload_all(run, send, down)
  local list, all, sum = run.record.artifacts, true, 0
  for i, artifact in ipairs(list) do
    local path, size = artifact.path, artifact.size_bytes
    -- A larger one is not sent.
    if size <= LARGEST_FILE then sum = sum + size end
    if i > MOST_FILES or sum > MOST_BYTES then down = down or TOO_MANY end
    if down then return log_failed(run, down, path, #list - i + 1) end
    local began, ref, failure = interrupt.now(), fail.caught(send, artifact)
    if failure then
      all = false
      log_failed(run, failure, path)
      if http.is_down(failure) or failure.code == "unknown_tool" then down = failure end
    else
      artifact.ref = artifact.ref or ref
      log_sent(run, path, size, ref, began)
    end
  end
  return all
end

local function upload_seconds(run)
  local now, most = interrupt.now(), UPLOADS
  local signal, signalled_at = interrupt.signal()
  if signal then most = math.min(UPLOADS_AFTER_SIGNAL, signalled_at + LATEST - now) end
  return math.max(0, math.min(run.deadline + OVERRUN - now, most))
end

local function put_artifacts(run)
  local end_at = interrupt.now() + upload_seconds(run)
  return upload_all(run, function(artifact)
    if artifact.path == RESULT then raise("no_url", "the job's own result goes there") end
    local file <close> = open(run, artifact)
    local seconds = math.max(0, end_at - interrupt.now())
    return put(run, artifact.path, { file }, math.min(MOST_OF_ONE, seconds))
  end)
end

---Uploads the artifacts of the record and sets their `ref`.
---@param run run
function uploads.artifacts(run)
  -- The result on disk has all steps before the slow uploads begin.
  run.checkpoint:write()
  run.upload_failed = true -- until all is uploaded
  local all = true
  if run:has_gateway() then
    interrupt.rearm(upload_seconds(run))
    local gateway, down = run:connect(true)
    all = upload_all(run, function(artifact) return give(run, gateway, artifact) end, down)
  end
  if upload_urls.any() then all = put_artifacts(run) and all end
  run.upload_failed = not all
end

---Puts the final result beside the artifacts, before the end is reported.
---@param run run
function uploads.result(run)
  local began = interrupt.now()
  local ref, failure = fail.caught(put, run, RESULT, run.final.parts, reports.seconds_of_end())
  if failure then return log_failed(run, failure, RESULT) end
  log_sent(run, RESULT, nil, ref, began)
end

return uploads
