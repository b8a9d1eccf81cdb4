-- SPDX-License-Identifier: Apache-2.0
-- Uploads artifacts with the gateway's tool artifact.put. The reference in its answer becomes the artifact's `ref`. A file is read
-- while it is sent; one that has changed since it was listed never arrives whole. A file that cannot be uploaded stays on disk.
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

---@class artifacts.options
---@field gateway gateway
---@field directory native.root where the files are
---@field names table<table, string> names of files whose `path` is not the whole truth: it held a secret
---@field log fun(level: string, event: string, fields: table)

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

--- Calls the tool with the file as it is read.
local function stream(options, artifact)
  local file <close>, failure = options.directory:open(options.names[artifact] or artifact.path, artifact.sha256)
  if not file then return nil, failure end
  if file:size() ~= artifact.size_bytes then return nil, failed("changed", "the file changed meanwhile") end
  return options.gateway:call(TOOL, { path = artifact.path, content_bytes_base64 = file }, LIMITS)
end

--- Calls the tool with the whole file as a string.
local function send_whole(options, artifact, limit)
  if artifact.size_bytes > limit then
    return nil, failed("too_large", "it is larger than the node proxy's limit of %d bytes", limit)
  end
  local file, failure = options.directory:read(options.names[artifact] or artifact.path, { digest = true, max_bytes = limit })
  if not file then return nil, failure end
  if file.sha256 ~= artifact.sha256 then return nil, failed("changed", "the file changed meanwhile") end
  local arguments = { path = artifact.path, content_bytes_base64 = text.base64_encode(file.content) }
  return options.gateway:call(TOOL, arguments, LIMITS)
end

--- Sends one file, once.
local function put(options, artifact)
  local limit = options.gateway:largest_file()
  local send = limit and send_whole or stream
  local answer, failure = send(options, artifact, limit)
  if answer and answer.is_error then
    return nil, http.failure("tool_failed", "the gateway says: " .. http.shown(answer.content))
  end
  return answer, failure
end

local function upload(options, artifact)
  local began = interrupt.now()
  local answer, failure = put(options, artifact)
  if not answer then
    failure.tries = failure.tries or 1
    return failure
  end
  artifact.ref = artifacts.reference(answer)
  options.log("info", "artifact.uploaded", {
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

local function log_failed(options, artifact, failure)
  options.log("warning", "artifact.failed", {
    path = artifact.path, code = failure.code, tries = failure.tries or 0,
    error = ("the artifact %s was not uploaded and stays on disk: %s"):format(artifact.path, own_words[failure.code] or failure.message),
  })
end

---Logs that the artifacts from one on were not tried.
---@param options { log: function }
---@param list table[]
---@param from integer
---@param failure native.failure why
function artifacts.give_up(options, list, from, failure)
  local count = #list - from + 1
  if count < 1 then return end
  options.log("warning", "artifact.failed", {
    path = list[from].path, count = count, code = failure.code, tries = 0,
    error = ("%d artifacts were not uploaded and stay on disk: %s"):format(count, own_words[failure.code] or failure.message),
  })
end

---Uploads files one after the other and sets their `ref`. The rest are not tried after a failure of the gateway itself, or past a
---limit for all of them together.
---@param options artifacts.options
---@param list { path: string, size_bytes: integer, sha256: string?, ref: string? }[] without sha256: not read, and not uploaded
---@return boolean? all whether all were uploaded
function artifacts.upload(options, list)
  local sum, all = 0, true
  for i, artifact in ipairs(list) do
    if i > MOST_FILES then return artifacts.give_up(options, list, i, failed("too_many", "at most %d are uploaded", MOST_FILES)) end
    local failure = refusal(artifact, sum)
    if not failure then
      sum = sum + artifact.size_bytes
      failure = upload(options, artifact)
    end
    if failure then
      all = false
      log_failed(options, artifact, failure)
    end
    if failure and (http.is_down(failure) or failure.code == "unknown_tool") then
      return artifacts.give_up(options, list, i + 1, failure)
    end
  end
  return all
end

return artifacts
