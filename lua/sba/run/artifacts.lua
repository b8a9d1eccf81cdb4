-- SPDX-License-Identifier: Apache-2.0
-- The artifacts directory of a run: made when the job is accepted, listed at its end.

local array = require "sba.util.json".array
local file = require "native.file"
local interrupt = require "native.interrupt"
local redact = require "native.secret".redact
local text = require "native.text"
local workspace = require "native.workspace"

local artifacts = {}

local MOST <const> = 100000 -- files that are listed
local LISTING <const> = 0.3 -- seconds for the list when the time for reading is up
local gone <const> = { not_found = true, not_a_directory = true, not_a_file = true, too_many_links = true }
local NAME <const> = "$CYNODE_ARTIFACTS_DIR"
local IN_BRACES <const> = "${CYNODE_ARTIFACTS_DIR}"
local STICKY <const> = tonumber("1000", 8)

local function warn(run, fields)
  run.log:event("warning", "artifacts.failed", fields)
end

local function directory_of(path)
  return path:match("^.*/") or "./"
end

--- The permission bits that artifacts get. If the group, or everybody, may write the directory above, they may delete artifacts too:
--- a node that gave the job directory to another user can then remove all of it.
local function shared_bits(path)
  local above <close> = workspace.open(directory_of(text.trim_end(path, "/")))
  local status = above and above:stat "."
  if not status or status.mode & STICKY ~= 0 then return 0 end
  local group = status.mode & tonumber("020", 8) ~= 0 and tonumber("070", 8) or 0
  local others = status.mode & tonumber("002", 8) ~= 0 and tonumber("007", 8) or 0
  return group | others
end

--- A temporary directory, for a job whose result goes to stdout.
local function make_temporary(run)
  local above = run.environment.TMPDIR
  local path, failure = file.make_temporary_directory(above and above ~= "" and above or "/tmp")
  run.temporary_artifacts = path
  return path, failure
end

--- Makes the directory that the environment names, or artifacts/ next to the result.
local function make(run)
  local path = run.environment.CYNODE_ARTIFACTS_DIR
  if not path or path == "" then
    if run.settings.result == "-" then return make_temporary(run) end
    path = directory_of(run.settings.result) .. "artifacts"
  end
  local ok, failure = file.make_directory(path)
  return ok and path or nil, failure
end

---Makes and opens the artifacts directory: run.artifacts. If that fails, the log says so and the job has no artifacts.
---@param run run
function artifacts.open(run)
  local path, failure = make(run)
  local directory
  if path then directory, failure = workspace.open(path) end
  if not directory then return warn(run, { code = failure.code, error = failure.message .. "; the job has no artifacts" }) end
  run.artifacts, run.artifacts_shared = directory, not run.temporary_artifacts and shared_bits(path) or 0
end

--- What follows the directory's name in a path, without its slashes; nil: the path does not begin with it.
local function below(path, name)
  local rest = path:sub(1, #name) == name and path:sub(#name + 1)
  return rest and (rest == "" or rest:sub(1, 1) == "/") and rest:match "^/*(.*)$" or nil
end

---Where the path of a step leads: into the artifacts directory, if it begins with $CYNODE_ARTIFACTS_DIR or with the directory's own path,
---else into the workspace.
---@param run run
---@param path string
---@return native.root|nil root
---@return string|native.failure path in it, or failure
---@return string? prefix what goes before the path in a result
function artifacts.place(run, path)
  local rest = below(path, NAME) or below(path, IN_BRACES)
  if rest and not run.artifacts then
    return nil, { code = "not_found", message = path .. ": this job has no artifacts directory; give a path of the workspace" }
  end
  if rest then return run.artifacts, rest == "" and "." or rest, NAME .. "/" end
  if path:sub(1, 1) == "/" and run.artifacts and not run.workspace:relative(path) and run.artifacts:relative(path) then
    return run.artifacts, path, NAME .. "/"
  end
  return run.workspace, path, ""
end

--- Logs which files have no sha256, and why.
local function say_unread(run, files)
  local late, broken = {}, {}
  for _, artifact in ipairs(files) do
    local list = not artifact.sha256 and (artifact.problem and broken or late)
    if list then list[#list + 1] = artifact end
  end
  if #broken > 0 then
    warn(run, { count = #broken, path = broken[1].path, code = "not_read",
      error = ("cannot read %d artifacts, so they have no sha256; the first: %s"):format(#broken, redact(broken[1].problem)) })
  end
  if #late > 0 then
    warn(run, { count = #late, path = late[1].path,
      error = ("the time was up before all artifacts were read; %d have no sha256, starting with %s"):format(#late, late[1].path) })
  end
  for _, artifact in ipairs(broken) do artifact.problem = nil end
end

--- The result shows redacted names. run.artifact_names keeps the real names of those that redaction changes.
local function redact_names(run, files)
  run.artifact_names = {}
  for _, artifact in ipairs(files) do
    local path = redact(artifact.path)
    if path ~= artifact.path then run.artifact_names[artifact], artifact.path = artifact.path, path end
  end
end

--- Reads files for their hashes, the smallest first, until the time is up or a signal comes. What has gone is left out.
local function digest(root, files, till)
  local signal, there = interrupt.signal(), array {}
  table.sort(files, function(a, b) return a.size_bytes < b.size_bytes end)
  for _, found in ipairs(files) do
    local left, sha256, more = till - interrupt.now(), false, nil
    if left > 0 and interrupt.signal() == signal then sha256, more = root:digest(found.path, left) end
    if sha256 then
      found.sha256, found.size_bytes = sha256, more
    elseif sha256 == nil then
      found.problem = more.message
    end
    if not (found.problem and gone[more.code]) then there[#there + 1] = found end
  end
  table.sort(there, function(a, b) return a.path < b.path end)
  return there
end

--- Whoever may delete the artifacts may delete what is in their directories; and names the first one that cannot be read.
local function share(run, directories)
  local closed
  for _, directory in ipairs(directories) do
    if run.artifacts_shared ~= 0 then run.artifacts:share(directory.path, run.artifacts_shared) end
    closed = closed or directory.closed and redact(directory.path)
  end
  if not closed then return end
  warn(run, { path = closed, error = ("cannot read the directory %s in the artifacts; its files are not listed"):format(closed) })
end

---Lists the artifacts in the record.
---@param run run
---@param seconds number how long they may be read
function artifacts.list(run, seconds)
  if not run.artifacts then return end
  local till = interrupt.now() + seconds
  local files, directories, more = run.artifacts:files(MOST, seconds + LISTING)
  if not files then return warn(run, { code = directories.code, error = directories.message }) end
  if more then
    warn(run, { error = ("only %d artifacts are listed: there are more than %d, or the time was up"):format(#files, MOST) })
  end
  share(run, directories)
  files = digest(run.artifacts, files, till)
  redact_names(run, files)
  say_unread(run, files)
  run.record.artifacts = files
end

---Whether the artifacts directory holds anything, or cannot be looked into.
---@param run run
---@return boolean
function artifacts.any(run)
  if not run.artifacts then return false end
  local root, cut = run.artifacts:tree(".", { max_entries = 0 })
  return not root or cut ~= nil
end

---Removes a temporary artifacts directory. If an upload failed, it stays, and the log names it.
---@param run run
function artifacts.close(run)
  local path = run.temporary_artifacts
  if not path then return end
  run.temporary_artifacts = nil
  if run.upload_failed then
    return warn(run, { path = path, error = "some artifacts were not uploaded; all are kept in " .. path })
  end
  local ok, failure = file.remove_directory(path)
  if not ok then warn(run, { code = failure.code, error = failure.message }) end
end

return artifacts
