-- SPDX-License-Identifier: Apache-2.0
-- Which files of the artifacts directory are this job's: those that one of its runs wrote. What lay there before its
-- first run stands in the journal's `job` line, and is another job's as long as it is unchanged.

local array = require "sba.util.json".array
local json = require "sba.util.json"
local names = require "sba.util.files"
local redact = require "native.secret".redact

local claims = {}

local MOST <const> = 100000 -- files, as artifacts.lua lists
local LONGEST_LINE <const> = 32 << 20 -- bytes of a journal's line that is read
local LONGEST_HEAD <const> = 64 -- bytes of a line that name its event
local PATCH <const> = "changes.patch" -- see sba.run.workspace_changes

local function key(path) return redact(names.encode_name(path)) end

local function read_line(journal_file, at, size)
  local line = size <= LONGEST_LINE and journal_file:read(at, size)
  local event = line and json.decode_own(line)
  return json.is_object(event) and event or nil
end

--- Whether the journal's last end of a job lists the patch among the artifacts.
local function lists_patch(journal_file)
  local at, found, size = 0, nil, nil
  while true do
    local head, length = journal_file:line(at, LONGEST_HEAD)
    if not head then break end
    if head:find('"job.finished"', 1, true) then found, size = at, length end
    at = at + length
  end
  local event = found and read_line(journal_file, found, size)
  local result = event and event.result
  for _, artifact in ipairs(json.is_object(result) and result.artifacts or {}) do
    if artifact.path == PATCH then return true end
  end
  return false
end

---Reads what is needed of an earlier job's journal, before it is cut off.
---@param run run
function claims.remember(run)
  local journal_file = run.journal_file
  if not journal_file or run.history.job then return end
  local _, size = journal_file:line(0, 0)
  local job = math.type(size) == "integer" and read_line(journal_file, 0, size)
  if not job or job.event ~= "job" then return end
  if job.job_id == run.job.job_id then
    run.earlier_artifacts = json.is_array(job.earlier_artifacts) and job.earlier_artifacts or nil
  else
    run.has_foreign_patch = lists_patch(journal_file)
  end
end

local function look(root)
  local found = array {}
  local walk <close> = root:walk "."
  local entry = walk and walk:next()
  while entry and #found < MOST do
    local path = walk:path()
    local status = entry.type == "file" and root:stat(path)
    if status then
      found[#found + 1] = {
        path = key(path), inode = status.inode, size_bytes = status.size_bytes, changed_ns = status.changed_ns,
      }
    end
    entry = walk:next()
  end
  return found
end

---Before the journal's first line: notes what lies there. The patch of an earlier job, which its journal lists, goes.
---@param run run
function claims.begin(run)
  local root = run.artifacts
  if not root or run.history.job or run.earlier_artifacts then return end
  if run.has_foreign_patch then root:remove(PATCH, "file") end
  run.earlier_artifacts = look(root)
end

---@param run run
---@return fun(path: string): boolean is_own
function claims.judge(run)
  local known, earlier = {}, run.earlier_artifacts
  if run.history.job then earlier = run.history.job.earlier_artifacts end
  for _, one in ipairs(json.is_array(earlier) and earlier or {}) do
    if json.is_object(one) and one.path then known[one.path] = one end
  end
  return function(path)
    local before = next(known) and known[key(path)]
    local status = before and run.artifacts:stat(path)
    if not status then return true end
    return before.inode ~= status.inode or before.size_bytes ~= status.size_bytes or before.changed_ns ~= status.changed_ns
  end
end

return claims
