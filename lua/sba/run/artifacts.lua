-- SPDX-License-Identifier: Apache-2.0
-- The artifacts folder of a run: made when the job is accepted, listed at its end.

local array = require "sba.util.json".array
local file = require "native.file"
local redact = require "native.secret".redact
local text = require "native.text"
local workspace = require "native.workspace"

local artifacts = {}

local MOST <const> = 100000 -- files that are listed
local STICKY <const> = tonumber("1000", 8)

local function warn(run, fields)
  run.log:event("warning", "artifacts.failed", fields)
end

local function folder_of(path)
  return path:match("^.*/") or "./"
end

--- Whatever the group, or everybody, may write in the folder that holds the artifacts folder, they may delete in this one too: a node
--- that gave a job folder to another user can so remove all of it.
local function shared_bits(path)
  local above <close> = workspace.open(folder_of(text.trim_end(path, "/")))
  local status = above and above:stat "."
  if not status or status.mode & STICKY ~= 0 then return 0 end
  local group = status.mode & tonumber("020", 8) ~= 0 and tonumber("070", 8) or 0
  local others = status.mode & tonumber("002", 8) ~= 0 and tonumber("007", 8) or 0
  return group | others
end

--- A temporary folder, for a job whose result goes to stdout.
local function make_temporary(run)
  local above = run.environment.TMPDIR
  local path, failure = file.make_temporary_directory(above and above ~= "" and above or "/tmp")
  run.temporary_artifacts = path
  return path, failure
end

--- Makes the folder: where the environment says, or beside the result.
local function make(run)
  local path = run.environment.CYNODE_ARTIFACTS_DIR
  if not path or path == "" then
    if run.settings.result == "-" then return make_temporary(run) end
    path = folder_of(run.settings.result) .. "artifacts"
  end
  local ok, failure = file.make_directory(path)
  return ok and path or nil, failure
end

---Makes the artifacts folder where it can be made; run.artifacts is the opened folder.
---@param run run
function artifacts.open(run)
  local path, failure = make(run)
  local folder
  if path then folder, failure = workspace.open(path) end
  if not folder then return warn(run, { code = failure.code, error = failure.message .. "; the job has no artifacts" }) end
  run.artifacts, run.artifacts_shared = folder, not run.temporary_artifacts and shared_bits(path) or 0
end

--- Says which files have no sha256, and why.
local function say_unread(run, files)
  local late, broken = {}, {}
  for _, artifact in ipairs(files) do
    local list = not artifact.sha256 and (artifact.problem and broken or late)
    if list then list[#list + 1] = artifact end
  end
  if #broken > 0 then
    warn(run, { count = #broken, path = broken[1].path, code = "not_read",
      error = ("%d artifacts cannot be read and are listed without sha256, the first is %s: %s"):format(#broken, broken[1].path,
        broken[1].problem) })
  end
  if #late > 0 then
    warn(run, { count = #late, path = late[1].path,
      error = ("the time was up before every artifact was read: %d have no sha256 in the result, %s first"):format(#late, late[1].path) })
  end
  for _, artifact in ipairs(broken) do artifact.problem = nil end
end

--- The result shows names without secrets; run.artifact_names has those that are changed by it, as they are.
local function redact_names(run, files)
  run.artifact_names = {}
  for _, artifact in ipairs(files) do
    local path = redact(artifact.path)
    if path ~= artifact.path then run.artifact_names[artifact], artifact.path = artifact.path, path end
  end
end

---Lists the artifacts in the record.
---@param run run
---@param seconds number how long they may be read
function artifacts.list(run, seconds)
  if not run.artifacts then return end
  local files, more, closed = run.artifacts:files(MOST, seconds, run.artifacts_shared)
  if not files then return warn(run, { code = more.code, error = more.message }) end
  if more == true then
    warn(run, { error = ("only %d artifacts are listed: there are more than %d, or more than there was time for"):format(#files, MOST) })
  end
  if closed then
    closed = redact(closed)
    warn(run, { path = closed, error = ("the folder %s of the artifacts cannot be read; what is in it is not listed"):format(closed) })
  end
  redact_names(run, files)
  say_unread(run, files)
  run.record.artifacts = array(files)
end

---Removes a temporary folder, unless an artifact that should have been uploaded was not: then the log says where it is.
---@param run run
function artifacts.close(run)
  local path = run.temporary_artifacts
  if not path then return end
  run.temporary_artifacts = nil
  if run.upload_failed then
    return warn(run, { path = path, error = "not every artifact was uploaded; all are kept in " .. path })
  end
  local ok, failure = file.remove_directory(path)
  if not ok then warn(run, { code = failure.code, error = failure.message }) end
end

return artifacts
