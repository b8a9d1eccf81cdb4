-- SPDX-License-Identifier: Apache-2.0
-- The artifacts directory of a run.

local array = require "sba.util.json".array
local claims = require "sba.run.claims"
local file = require "native.file"
local first_set = require "sba.util.secret".first_set
local interrupt = require "native.interrupt"
local lazy = require "sba.util.lazy"
local redact = require "native.secret".redact
local workspace = require "native.workspace"

local listing = lazy "sba.util.files"

local artifacts = {}

local MOST <const> = 100000 -- files that are listed
-- Bytes of a file; larger ones have no sha256.
local MOST_HASHED <const> = 256 * 1024 * 1024
-- Seconds for the list when the time for reading is up.
local LISTING <const> = 0.3
local READ <const> = { digest = true, max_digest = MOST_HASHED, max_bytes = 0 }
local NAME <const>, IN_BRACES <const> = "$CYNODE_ARTIFACTS_DIR", "${CYNODE_ARTIFACTS_DIR}"
local gone <const> = {
  not_found = true, not_a_directory = true, not_a_file = true, too_many_links = true,
}

local function octal(digits) return tonumber(digits, 8) end

local function warn(run, message, fields) run:warn("artifacts.failed", message, fields) end

--- Who may write the directory above may delete artifacts too, such as a node that gave it to another user.
local function shared_bits(run)
  if run.temporary_artifacts then return 0 end
  local above <close> = workspace.open(run.artifacts:path() .. "/..")
  local status = above and above:stat "."
  -- In a sticky directory users delete only what is theirs.
  if not status or status.mode & octal "1000" ~= 0 then return 0 end
  local group = status.mode & octal "020" ~= 0 and octal "070" or 0
  local others = status.mode & octal "002" ~= 0 and octal "007" or 0
  return group | others
end

local function make(run)
  local environment = run.environment
  local path = first_set(environment, { "CYNODE_ARTIFACTS_DIR" })
  if not path and run.result_directory then path = run.result_directory .. "artifacts" end
  if path then
    local ok, failure = file.make_directory(path)
    return ok and path, failure
  end
  local parent = first_set(environment, { "TMPDIR" }) or "/tmp"
  local temporary, failure = file.make_temporary_directory(parent)
  run.temporary_artifacts = temporary
  return temporary, failure
end

---@param run run
function artifacts.open(run)
  local path, failure = make(run)
  if path then run.artifacts, failure = workspace.open(path) end
  if not failure then return end
  warn(run, failure.message .. "; the job has no artifacts", { code = failure.code })
end

--- What stands behind a name and slashes; nil: the path does not begin with the name.
local function below(path, name)
  if path == name then return "" end
  if path:sub(1, #name + 1) ~= name .. "/" then return nil end
  return (path:sub(#name + 1):gsub("^/+", ""))
end

---resolve_path of sba.job_context.
---@param run run
---@param path string
---@return native.root?, string|native.failure, string?
function artifacts.resolve(run, path)
  local root, rest = run.artifacts, below(path, NAME) or below(path, IN_BRACES)
  if rest and not root then
    local message = path .. ": this job has no artifacts directory; give a path of the workspace"
    return nil, { code = "not_found", message = message }
  end
  if rest then return root, rest == "" and "." or rest, NAME .. "/" end
  local may_be_artifact = root and path:sub(1, 1) == "/" and not run.workspace:relative(path)
  if may_be_artifact and root:relative(path) then return root, path, NAME .. "/" end
  return run.workspace, path, ""
end

local function log_unread(run, files)
  local count, first = 0, nil
  for _, artifact in ipairs(files) do
    local is_unread = not artifact.sha256 and not artifact.is_large
    if is_unread then count, first = count + 1, first or artifact end
  end
  if not first then return end
  local message = "cannot read %d artifacts, so they have no sha256; the first: %s"
  if not first.problem then
    message = "the time was up before all artifacts were read; %d have no sha256, starting with %s"
  end
  local path = redact(first.path)
  local about = first.problem and redact(first.problem) or path
  local code = first.problem and "not_read"
  warn(run, message:format(count, about), { count = count, path = path, code = code })
end

--- Hashes files, the smallest first, until a time. What has gone is left out. Lua that goes on past
--- its time is stopped, so what comes before and after has some of its own: to sort a hundred
--- thousand files twice takes half a second.
local function digest(root, files, till)
  local order, there, is_over = table.move(files, 1, #files, 1, {}), array {}, false
  interrupt.rearm(math.max(2 * LISTING, till - interrupt.now()))
  table.sort(files, function(a, b) return a.path < b.path end)
  table.sort(order, function(a, b) return a.size_bytes < b.size_bytes end)
  interrupt.rearm(math.max(0, till - interrupt.now()))
  for _, found in ipairs(order) do
    local read, failure
    if not is_over then
      read, failure = root:read(found.path, READ)
      is_over = interrupt.reason() ~= nil
      if is_over then interrupt.rearm(LISTING) end
    end
    if read then
      found.sha256, found.size_bytes, found.is_large = read.sha256, read.size_bytes, not read.sha256
    elseif not is_over then
      found.problem, found.has_gone = failure.message, gone[failure.code]
    end
  end
  for _, found in ipairs(files) do
    if not found.has_gone then there[#there + 1] = found end
  end
  return there
end

--- Returns the files, and a failure, or true: there are more. Directories get the shared bits.
local function find(run)
  local files, is_own = {}, claims.judge(run)
  local shared, closed
  local walk <close>, failure = run.artifacts:walk "."
  while walk do
    local entry, problem, entered = walk:next()
    if not entry then return files, problem end
    if entry.type == "file" and is_own(walk:path()) then
      if #files == MOST then return files, true end
      files[#files + 1] = { path = walk:path(), size_bytes = entry.size_bytes }
    elseif entry.type == "directory" then
      shared = shared or shared_bits(run)
      local path, mode = walk:path(), entry.mode | shared
      if mode ~= entry.mode then run.artifacts:chmod(path, mode) end
      if not entered and not closed then
        closed = redact(path)
        local message = "cannot read the directory %s in the artifacts; its files are not listed"
        warn(run, message:format(closed), { path = closed })
      end
    end
  end
  return files, failure
end

---@param run run
---@param seconds number for hashing
function artifacts.list(run, seconds)
  if not run.artifacts then return end
  local till = interrupt.now() + seconds
  interrupt.rearm(seconds + LISTING)
  local files, problem = find(run)
  if problem == true or problem and problem.code == "timeout" then
    warn(run, ("only %d artifacts are listed: there are more than %d, or the time was up"):format(#files, MOST))
  elseif problem then
    warn(run, problem.message, { code = problem.code })
  end
  if #files == 0 then return end
  files = digest(run.artifacts, files, till)
  log_unread(run, files)
  -- A file whose name held a secret is not uploaded: none has the redacted name.
  for _, artifact in ipairs(files) do
    artifact.path, artifact.problem, artifact.is_large = redact(artifact.path), nil, nil
  end
  run.record.artifacts = files
end

---@param run run
---@return boolean there may be some
function artifacts.any(run)
  local entries = not run.artifacts and {} or listing.entries(run.artifacts, ".", 1)
  return not entries or #entries > 0
end

---Removes a temporary artifacts directory, unless an upload failed.
---@param run run
function artifacts.close(run)
  local path = run.temporary_artifacts
  if not path then return end
  run.temporary_artifacts = nil
  if run.upload_failed then
    return warn(run, "some artifacts were not uploaded; all are kept in " .. path, { path = path })
  end
  local ok, failure = file.remove_directory(path)
  if not ok then warn(run, failure.message, { code = failure.code }) end
end

return artifacts
