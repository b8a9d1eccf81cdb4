-- SPDX-License-Identifier: Apache-2.0
-- Uploads a job's artifacts with the gateway's tool artifact.put, after its processes have ended and before its result is written. The
-- reference in its answer becomes the artifact's `ref`. A file is read while it is sent; one that has changed since it was listed
-- never arrives whole. A file that cannot be uploaded stays on disk.
--
-- Uploads may use the job's remaining time, at most two minutes. Past the deadline or after a signal they get the few seconds within
-- which a job must end, which is enough for small files.
--
-- The log: artifact.uploaded {path, size_bytes, ref, duration_ms}, artifact.failed {path, code, tries, error};
-- with count, the event stands for that many artifacts from path on.

local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local text = require "native.text"

local artifacts = {}

local TOOL <const> = "artifact.put"
local LARGEST <const> = 256 * 1024 * 1024 -- bytes of one file
local LARGEST_SUM <const> = 1024 * 1024 * 1024 -- bytes of all that are sent
local MOST_FILES <const> = 1000
local LIMITS <const> = { idle = 60, repeatable = true } -- seconds for the answer, from the last chunk that was sent
local LONGEST_REF <const> = 4096 -- bytes
local MOST <const> = 120 -- seconds
local OVERRUN <const> = 2.5 -- seconds past the deadline
local AFTER_SIGNAL <const>, LATEST <const> = 2.5, 4.5 -- seconds for the upload; seconds from the signal to its end

local function failed(code, format, ...)
  return { code = code, message = format:format(...) }
end

-- Names of fields that hold references. The first group is searched at every level before the second.
local SURE <const>, LIKELY <const> = { "ref", "artifact_ref", "reference", "artifact_id" }, { "uri", "url", "id" }
local INNER <const> = { "artifact", "result", "data" }

--- The value of the first of these fields, in the value itself or in those it holds.
local function named(value, names, depth)
  if not json.is_object(value) then return nil end
  for _, name in ipairs(names) do
    local found = value[name]
    if type(found) == "string" and found ~= "" then return found end
  end
  for _, name in ipairs(depth > 0 and INNER or {}) do
    local found = named(value[name], names, depth - 1)
    if found then return found end
  end
end

local function in_structure(value)
  return named(value, SURE, 2) or named(value, LIKELY, 2)
end

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
function artifacts.reference(answer)
  local ref = in_structure(answer.structured) or in_links(answer.parts)
  if not ref and type(answer.structured) ~= "table" then ref = in_text(answer.content) end
  return ref and #ref <= LONGEST_REF and ref or nil
end

--- The name of the file: `path` is not the whole truth where it held a secret.
local function name_of(run, artifact)
  return run.artifact_names[artifact] or artifact.path
end

--- Calls the tool with the file as it is read.
local function stream(run, gateway, artifact)
  local file <close>, failure = run.artifacts:open(name_of(run, artifact), artifact.sha256)
  if not file then return nil, failure end
  if file:size() ~= artifact.size_bytes then return nil, failed("changed", "the file changed meanwhile") end
  return gateway:call(TOOL, { path = artifact.path, content_bytes_base64 = file }, LIMITS)
end

--- Calls the tool with the whole file as a string.
local function send_whole(run, gateway, artifact, limit)
  if artifact.size_bytes > limit then
    return nil, failed("too_large", "it is larger than the node proxy's limit of %d bytes", limit)
  end
  local file, failure = run.artifacts:read(name_of(run, artifact), { digest = true, max_bytes = limit })
  if not file then return nil, failure end
  if file.sha256 ~= artifact.sha256 then return nil, failed("changed", "the file changed meanwhile") end
  local arguments = { path = artifact.path, content_bytes_base64 = text.base64_encode(file.content) }
  return gateway:call(TOOL, arguments, LIMITS)
end

--- Sends one file, once.
local function put(run, gateway, artifact)
  local limit = gateway:largest_file()
  local send = limit and send_whole or stream
  local answer, failure = send(run, gateway, artifact, limit)
  if answer and answer.is_error then
    return nil, http.failure("tool_failed", "the gateway says: " .. http.shown(answer.content))
  end
  return answer, failure
end

local function upload(run, gateway, artifact)
  local began = interrupt.now()
  local answer, failure = put(run, gateway, artifact)
  if not answer then
    failure.tries = failure.tries or 1
    return failure
  end
  artifact.ref = artifacts.reference(answer)
  run.log:event("info", "artifact.uploaded", {
    path = artifact.path, size_bytes = artifact.size_bytes, ref = artifact.ref,
    duration_ms = math.floor((interrupt.now() - began) * 1000 + 0.5),
  })
end

--- Why an artifact is not uploaded at all.
local function refusal(artifact, sum)
  if not artifact.sha256 then return failed("not_read", "it was not read") end
  if artifact.size_bytes > LARGEST then return failed("too_large", "it is larger than %d bytes", LARGEST) end
  if sum + artifact.size_bytes > LARGEST_SUM then
    return failed("too_large", "with it, more than %d bytes would be uploaded", LARGEST_SUM)
  end
end

local own_words = { timeout = "the time for uploading was up", cancelled = "a signal ended the uploading" }

local function log_failed(run, failure, path, count)
  local what = count and ("%d artifacts were not uploaded and stay on disk"):format(count)
    or ("the artifact %s was not uploaded and stays on disk"):format(path)
  run.log:event("warning", "artifact.failed", {
    path = path, count = count, code = failure.code, tries = not count and failure.tries or 0,
    error = ("%s: %s"):format(what, own_words[failure.code] or failure.message),
  })
end

--- The artifacts from one on are not tried.
local function give_up(run, from, failure)
  local list = run.record.artifacts
  if list[from] then log_failed(run, failure, list[from].path, #list - from + 1) end
end

--- Uploads files one after the other and sets their `ref`. The rest are not tried after a failure of the gateway itself, or past a
--- limit for all of them together. Returns whether all were uploaded.
local function upload_all(run)
  local gateway, unreachable = run.outside:gateway(true)
  if not gateway then return give_up(run, 1, unreachable) end
  local sum, all = 0, true
  for i, artifact in ipairs(run.record.artifacts) do
    if i > MOST_FILES then return give_up(run, i, failed("too_many", "at most %d are uploaded", MOST_FILES)) end
    local failure = refusal(artifact, sum)
    if not failure then
      sum = sum + artifact.size_bytes
      failure = upload(run, gateway, artifact)
    end
    if failure then
      all = false
      log_failed(run, failure, artifact.path)
    end
    if failure and (http.is_down(failure) or failure.code == "unknown_tool") then return give_up(run, i + 1, failure) end
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
function artifacts.upload(run)
  run.checkpoint:write() -- the steps are on disk before the slow upload
  run.upload_failed = true -- until all is uploaded
  interrupt.rearm(seconds(run))
  local ok, all = pcall(upload_all, run)
  interrupt.disarm()
  if not ok then error(all, 0) end
  run.upload_failed = not all
end

return artifacts
