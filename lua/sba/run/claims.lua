-- SPDX-License-Identifier: Apache-2.0
-- Which files of the artifacts directory are this job's: those that one of its runs wrote. What lay
-- there before its first run stands in the journal's `job` line, and is another job's as long as it
-- is unchanged.

local array = require "sba.util.json".array
local file = require "native.file"
local json = require "sba.util.json"
local lazy = require "sba.util.lazy"
local redact = require "native.secret".redact

local json_file = lazy "sba.util.json_file"
local names = lazy "sba.util.files"

local claims = {}

local MOST <const> = 100000 -- files, as artifacts.lua lists
local PATCH <const> = "changes.patch" -- see sba.run.workspace_changes
local IDENTITY <const> = { "inode", "size_bytes", "changed_ns" } -- of a file as it was

local function key(path) return redact(names.encode_name(path)) end

--- An object of a file, and in it a list, which may be long; or an empty one.
local function read(log, name)
  local object, extent = json_file.outline(log, 0, "steps")
  if not json.is_object(object) then return {} end
  if extent.left[name] then object[name] = json_file.whole(log, extent.left[name]) end
  if not json.is_array(object[name]) then object[name] = nil end
  return object
end

--- Whether the patch there is that of the run whose result stands.
local function lists_patch(path)
  local log <close> = file.open(path)
  for _, artifact in ipairs(log and read(log, "artifacts").artifacts or {}) do
    if json.table_of(artifact).path == PATCH then return true end
  end
  return false
end

---Reads what is needed of an earlier job's journal and result, before they go.
---@param run run
function claims.remember(run)
  local log = run.journal_file
  if not log or log:size() == 0 or run.history.job then return end
  local job = read(log, "earlier_artifacts")
  if job.event ~= "job" then return end
  run.has_old_patch = lists_patch(run.settings.result)
  if job.job_id == run.job.job_id then run.earlier_artifacts = job.earlier_artifacts end
end

local function look(root)
  local found = array {}
  local walk <close> = root:walk "."
  local entry = walk and walk:next()
  while entry and #found < MOST do
    local path = walk:path()
    local status = entry.type == "file" and root:stat(path)
    if status then
      local one = { path = key(path) }
      for _, field in ipairs(IDENTITY) do one[field] = status[field] end
      found[#found + 1] = one
    end
    entry = walk:next()
  end
  return found
end

---Before the journal's first line: notes what lies there. The patch of an earlier job goes, and that of an earlier run
---which this one does not resume: it says nothing of what is done now.
---@param run run
function claims.begin(run)
  local root = run.artifacts
  if not root or run.history.job then return end
  if run.has_old_patch then root:remove(PATCH, "file") end
  run.earlier_artifacts = run.earlier_artifacts or look(root)
end

---@param run run
---@return fun(path: string): boolean is_own
function claims.judge(run)
  local known, earlier = {}, run.earlier_artifacts
  if run.history.job then earlier = run.history.job.earlier_artifacts end
  for _, one in ipairs(json.table_of(earlier)) do
    local path = json.table_of(one).path
    if path then known[path] = one end
  end
  return function(path)
    local before = next(known) and known[key(path)]
    local status = before and run.artifacts:stat(path)
    if not status then return true end
    for _, field in ipairs(IDENTITY) do
      if before[field] ~= status[field] then return true end
    end
    return false
  end
end

return claims
