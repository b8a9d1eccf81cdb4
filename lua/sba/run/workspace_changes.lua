-- SPDX-License-Identifier: Apache-2.0
-- What the job did to the workspace: `workspace_changes` of the result, and changes.patch among the artifacts.

local array = require "sba.util.json".array
local interrupt = require "native.interrupt"
local real_path = require "native.confine".real_path
local secret = require "sba.util.secret"
local text = require "native.text"
local unified_diff = require "sba.run.unified_diff"

local workspace_changes = {}

local MIB <const> = 1024 * 1024
-- Of files as they were at the beginning.
local MOST_KEPT <const> = 256 * MIB
-- A larger file is in the list alone.
local LARGEST_FILE <const>, LARGEST_PATCH <const> = 16 * MIB, 32 * MIB
local MOST_LISTED <const> = 10000 -- files
-- Seconds for the list when the time for the patch is up.
local LISTING <const> = 0.6
local PATCH <const> = "changes.patch"
local UNREPORTED <const> = "the workspace's changes cannot be reported"

local actions <const> = { "created", "modified", "deleted", "mode_changed", "type_changed" }

local function warn(run, failure, what)
  run:warn("changes.failed", what .. ": " .. secret.redact(failure.message), { code = failure.code })
end

--- As a path of the workspace, if they lie in it.
local function artifacts_directory(run)
  local root = real_path(run.workspace:path())
  local path = run.artifacts and real_path(run.artifacts:path())
  if not root or not path then return nil end
  if path:sub(1, #root + 1) == root .. "/" then return path:sub(#root + 2) end
end

---Raises a failure when the job's time is up.
---@param run run
function workspace_changes.begin(run)
  local failure
  run.snapshot, failure = run.workspace:snapshot {
    directory = run.result_directory or run.environment.TMPDIR or "/tmp",
    most_bytes = MOST_KEPT, left_out = artifacts_directory(run),
  }
  if run.snapshot then return end
  if interrupt.reason() then error(failure) end
  warn(run, failure, UNREPORTED)
end

--- As git does, and where a directory's name ends in a blank: git cannot tell where that ends.
local function quoted(prefix, path)
  local name = prefix .. path
  if not name:find '[%c"\\\128-\255]' and not name:find(" /", 1, true) then return name end
  local function escape(byte) return ("\\%03o"):format(byte:byte()) end
  return '"' .. name:gsub('[%c"\\\128-\255]', escape) .. '"'
end

local LINK <const> = "120000"
local function git_mode(side)
  if side.type == "symlink" then return LINK end
  return side.mode & 64 ~= 0 and "100755" or "100644"
end

local function content_after(run, change)
  if not change.after then return "" end
  if change.after.size_bytes > LARGEST_FILE then return nil, "too_large" end
  if change.after.type == "symlink" then
    local status = run.workspace:stat(change.path)
    return status and status.target, "unreadable"
  end
  local file = run.workspace:read(change.path, { max_bytes = LARGEST_FILE })
  return file and file.content, "unreadable"
end

local function content_before(run, change)
  if not change.before then return "" end
  if change.before.size_bytes > LARGEST_FILE then return nil, "too_large" end
  if not change.original then return nil, "original_not_kept" end
  return run.snapshot:content(change.original), "unreadable"
end

local function section(path, before, after, old, new)
  local from, to = quoted("a/", path), quoted("b/", path)
  local old_mode, new_mode = before and git_mode(before), after and git_mode(after)
  local parts = { ("diff --git %s %s\n"):format(from, to) }
  if not old_mode then
    parts[2] = ("new file mode %s\n"):format(new_mode)
  elseif not new_mode then
    parts[2] = ("deleted file mode %s\n"):format(old_mode)
  elseif old_mode ~= new_mode or old_mode == LINK then -- of a link git's line "index" says it, by hashes
    parts[2] = ("old mode %s\nnew mode %s\n"):format(old_mode, new_mode)
  end
  local hunks = unified_diff.hunks(old, new)
  if hunks ~= "" then
    -- A name with a blank ends at a tab.
    local tab = path:find(" ", 1, true) and "\t" or ""
    from = before and from .. tab or "/dev/null"
    to = after and to .. tab or "/dev/null"
    parts[#parts + 1] = ("--- %s\n+++ %s\n"):format(from, to)
    parts[#parts + 1] = hunks
  end
  return #parts > 1 and table.concat(parts) or ""
end

--- A part of the patch, or why it has none for a change.
local function section_or_reason(run, change)
  local before, after, path = change.before, change.after, change.path
  if change.blocked then return nil, "blocked" end
  if change.action == "unreadable" then return nil, "unreadable" end
  if change.action == "mode_changed" then return section(path, before, after, "", "") end
  local old, unkept = content_before(run, change)
  if not old then return nil, unkept end
  local new, unread = content_after(run, change)
  if not new then return nil, unread end
  if old:find("\0", 1, true) or new:find("\0", 1, true) then return nil, "binary" end
  if change.action ~= "type_changed" then return section(path, before, after, old, new) end
  return section(path, before, nil, old, "") .. section(path, nil, after, "", new)
end

local function entry_of(change)
  return {
    path = secret.redact((text.repair(change.path))), action = change.action,
    left_out = change.left_out, size_bytes_before = change.before and change.before.size_bytes,
    size_bytes = change.after and change.after.size_bytes,
  }
end

--- What a command has put in its place goes, but not a directory that holds something. Returns its path, or why it is
--- not there.
local function write_patch(run, sections)
  local root = run.artifacts
  if #sections == 0 or not root then return nil end
  local there = root:stat(PATCH)
  local kind = there and there.type
  local how = kind == "directory" and kind or "file"
  if kind and kind ~= "file" then root:remove(PATCH, how) end
  local written, failure = root:write(PATCH, table.concat(sections), {})
  if written then return PATCH end
  warn(run, failure, "changes.patch cannot be written")
  return nil, secret.redact(failure.message)
end

--- Each change gets its section, or why it is left out.
local function add_sections(run, changes, till)
  local size = 0
  for _, change in ipairs(changes) do
    if interrupt.now() >= till or interrupt.reason() then
      change.left_out = "no_time"
    elseif size >= LARGEST_PATCH then
      change.left_out = "patch_too_large"
    else
      change.section, change.left_out = section_or_reason(run, change)
      size = size + #(change.section or "")
    end
  end
end

local function each_above(path, call)
  for slash in path:gmatch "()/" do call(path:sub(1, slash - 1)) end
end

--- Leaves out what lies below or above a path that is left out.
local function leave_out_neighbours(changes)
  local out, over, found = {}, {}, false
  for _, change in ipairs(changes) do
    if change.left_out then
      out[change.path] = true
      each_above(change.path, function(directory) over[directory] = true end)
    end
  end
  if not next(out) then return false end
  for _, change in ipairs(changes) do
    local blocked = over[change.path]
    each_above(change.path, function(directory) blocked = blocked or out[directory] end)
    if blocked and not change.left_out then change.left_out, found = "blocked", true end
  end
  return found
end

--- The list, and the sections of the patch: deletions come first, they make room.
local function report_of(run, changes, till)
  local report = { counts = {}, files = array {}, truncated = #changes > MOST_LISTED }
  local deletions, others = {}, {}
  for _, action in ipairs(actions) do report.counts[action] = 0 end
  add_sections(run, changes, till)
  while leave_out_neighbours(changes) do end
  for i, change in ipairs(changes) do
    report.counts[change.action] = (report.counts[change.action] or 0) + 1
    report.truncated = report.truncated or change.action == "unreadable"
    local list = change.after and others or deletions
    if not change.left_out and change.section ~= "" then list[#list + 1] = change.section end
    if i <= MOST_LISTED then report.files[i] = entry_of(change) end
  end
  return report, table.move(others, 1, #others, #deletions + 1, deletions)
end

---@param run run
---@param seconds number
function workspace_changes.finish(run, seconds)
  local snapshot <close> = run.snapshot
  local till = interrupt.now() + seconds
  -- Lua that goes on past its time is stopped after a million instructions: less than a long list
  -- takes, or the diff that is made just then.
  interrupt.rearm(seconds + LISTING)
  local changes, failure = snapshot:changes()
  local report, sections
  if changes then report, sections = report_of(run, changes, till) end
  interrupt.disarm()
  if not changes then return warn(run, failure, UNREPORTED) end
  report.patch, report.patch_error = write_patch(run, sections)
  report.since_resume = run.history.job ~= nil or nil
  run.record.workspace_changes = report
end

return workspace_changes
