-- SPDX-License-Identifier: Apache-2.0
-- Applies a diff to the files of a workspace: all of it, or none.
--
-- Several parts for one file apply one after the other. As in git, a copy takes the content from before the diff, and a rename may go to a
-- path that another file leaves later, so files can be swapped. Only a part of mode 120000 changes a link. Nothing is read or written
-- through a link.

local diffs = require "sba.patch.diff"
local explain = require "sba.patch.explain"
local fail = require "sba.util.fail"
local lpeg = require "lpeg"
local names = require "sba.patch.names"
local overlay = require "sba.patch.overlay"
local printable = require "sba.util.printable"
local text = require "native.text"
local tolerated = require "sba.patch.tolerated"

local LONGEST_HEADER <const> = 80 -- bytes of an @@ line that is shown
local LINK, PLAIN, EXECUTABLE = 40960, 33188, 33261 -- 0120000, 0100644, 0100755

local function kind_of(mode)
  return mode == LINK and "link" or "file"
end

---The permission bits of a file that gets a mode of git's. The two modes that git itself writes only tell whether the file may be run.
local function permissions(mode, before)
  if not mode or mode == LINK then return before end
  if mode ~= PLAIN and mode ~= EXECUTABLE then return mode & 511 end -- 0777
  if not before then return mode == EXECUTABLE and 493 or nil end -- 0755
  if mode == EXECUTABLE then return before | (before & 292) >> 2 end -- whoever may read it (0444) may run it
  return before & ~73 -- 0111
end

---A link must stay inside. A transaction sees to that too, but a dry run has none.
local function check_target(files, path, target)
  if target == "" or target:find("\0", 1, true) then return fail("invalid_patch", "the link's target is empty or has a NUL byte") end
  if target:sub(1, 1) ~= "/" and files.directory:relative((path:match("^.*/") or "") .. target) then return true end
  return fail("path_escape", "path escapes workspace: the link would point to %s", target)
end

local newline = lpeg.P "\n"
local line = (1 - newline) ^ 0 * (newline + -1)
local old_side = lpeg.Cs((-lpeg.P(-1) * (newline + (lpeg.S " -" / "") * line + (lpeg.S "+\\" * line) / "")) ^ 0)

--- Says why a hunk cannot be applied.
local function explained(change, bytes, failure)
  local code, message, diff = failure.code, failure.message, change.diff
  local hunk = ('hunk %d of %d %s'):format(failure.hunk or 0, change.file.hunks,
    failure.header and printable.quoted(diff:match("^[^\r\n]*", failure.header), LONGEST_HEADER))
  if code == "patch_ambiguous" then
    return fail(code, "%s fits as well at line %d as at line %d; give it more lines of context", hunk, failure.line, failure.other)
  elseif code == "already_applied" then
    return fail(code, "%s: the change is already there, at line %d", hunk, failure.line)
  elseif code ~= "patch_mismatch" then
    return nil, failure
  elseif failure.line == 0 then
    return fail(code, "%s: %s", hunk, message)
  end
  local old = lpeg.match(old_side, diff:sub(failure.body, failure.last))
  if old == "" then return fail(code, "%s only adds lines, and nothing that the file has says where they belong", hunk) end
  local why = explain(bytes, old, "the diff", failure.line)
  return fail(code, "%s does not fit: %s", hunk,
    why or "its first lines are there, but not all of it, or not where it belongs: below the hunk before it, or at the end")
end

--- One hunk that only adds, at line 0, means that the file is new or empty. Git writes the same for lines inserted at the top without
--- context (-U0), but then its header names the content that was there.
local function refused_as_there(change, bytes)
  local file = change.file
  if not file.is_new or file.hunks > 1 or bytes == "" then return false end
  if change.parsed.hunks:apply(file.first, 1, "") == bytes then
    return true, fail("already_applied", "the change is already there: the file is as the diff would make it")
  end
  return not file.not_empty,
    fail("already_exists", "the diff says that the file is new or empty, but it has %d lines", text.count_lines(bytes))
end

---The change that a part makes to an entry, which goes to path; nil: it is deleted.
---@return sba.overlay.entry|nil, native.edit.report|native.failure
local function changed(change, files, before, path)
  local bytes, report = before.bytes, { hunks = 0, added = 0, removed = 0, offset = 0, fuzz = 0, tolerated = {} }
  if change.file.hunks > 0 then
    local is_there, _, failure = refused_as_there(change, bytes)
    if is_there then return nil, failure end
    bytes, report = change.parsed.hunks:apply(change.file.first, change.file.hunks, before.bytes)
    if not bytes then return explained(change, before.bytes, report) end
  end
  local entry = { kind = before.kind, bytes = bytes, mode = permissions(change.file.new_mode, before.mode) }
  if entry.kind == "link" and path then
    local good, failure = check_target(files, path, bytes)
    if not good then return nil, failure end
  end
  return entry, report
end

---The entry, if it is of the kind that the diff means.
local function of_kind(file, entry, failure)
  if not entry then return nil, failure end
  if not file.old_mode and not file.new_mode and file.hunks == 0 then return entry end
  local old = kind_of(file.old_mode or (file.action ~= "created" and file.new_mode) or nil)
  if file.new_mode and file.old_mode and kind_of(file.new_mode) ~= old then
    return fail("invalid_patch", "a file becomes a link, or a link a file, only by a deletion and a creation")
  end
  if entry.kind == old then return entry end
  if old == "file" then return fail("patch_mismatch", "it is a symbolic link, and the diff is not for one (mode 120000)") end
  return fail("patch_mismatch", "it is not a symbolic link, but the diff is for one (mode 120000)")
end

local actions = {}

function actions.created(change, files)
  local path = change.new
  local entry, report = changed(change, files, { kind = kind_of(change.file.new_mode), bytes = "" }, path)
  if not entry then return nil, report end
  local there = files:exists(path) and files:get(path)
  local good, failure = files:create(path, entry)
  if good then return report end
  if failure.code == "already_exists" and there and there.kind == entry.kind and there.bytes == entry.bytes then
    return fail("already_applied", "the change is already applied: the file is as the diff would make it")
  end
  return nil, failure
end

function actions.deleted(change, files)
  local before, failure = of_kind(change.file, files:get(change.old))
  if not before then return nil, failure end
  local entry, report = changed(change, files, before)
  if not entry then return nil, report end
  if change.file.whole then
    report.removed = text.count_lines(entry.bytes)
  elseif entry.bytes ~= "" then
    return fail("patch_mismatch", "the diff deletes the file, but leaves %d of its bytes", #entry.bytes)
  end
  files:remove(change.old)
  return report
end

---Changes an entry and puts it at the new path: with files.put, or with files.create, where nothing may be.
local function changed_into(change, files, put, before, failure)
  before, failure = of_kind(change.file, before, failure)
  if not before then return nil, failure end
  local entry, report = changed(change, files, before, change.new)
  if not entry then return nil, report end
  local good
  good, failure = put(files, change.new, entry)
  return good and report, failure
end

function actions.modified(change, files)
  local before, failure = files:get(change.new)
  if not before and failure.code == "not_found" and change.file.may_create then
    change.action = "created"
    return actions.created(change, files)
  end
  return changed_into(change, files, files.put, before, failure)
end

actions.mode_changed = actions.modified

function actions.copied(change, files)
  change.action = "created"
  return changed_into(change, files, files.create, files:get_original(change.old))
end

function actions.renamed(change, files)
  if not change.file.plain and not files:known(change.old) and files:exists(change.new) and change.file.hunks > 0 then
    change.action = "modified" -- already renamed, as in patch: only its content changes
    return actions.modified(change, files)
  end
  local report, failure = changed_into(change, files, files.create, files:get(change.old))
  if report then files:remove(change.old) end
  return report, failure
end

---Turns the names of a part into paths of the workspace.
local function locate(change, files, strip, prefixes)
  local file = change.file
  local function exists(name)
    local path = files:path(name)
    return path ~= nil and files:exists(path)
  end
  local found, failure = names.resolve(file, strip, prefixes, exists)
  if not found then return nil, failure end
  for side, name in pairs(found) do
    change[side], failure = files:path(name)
    if not change[side] then return nil, failure end
  end
  change.old, change.new = change.old or change.new, change.new or change.old
  if change.file.from and change.old == change.new then
    return fail("invalid_patch", "%s is renamed or copied to itself", change.old)
  end
  return true
end

---Returns nil and the failure, as one line that begins with the file.
local function about(change, failure)
  local message = failure.message
  local path = change.action == "deleted" and change.old or change.new or change.old
  local begins = path and message:sub(1, #path) == path and message:find("^[: ]", #path + 1)
  if path and not begins then message = path .. ": " .. message end
  return nil, { code = failure.code, message = printable.line(message) }
end

local function entry_of(change, report)
  return {
    path = change.action == "deleted" and change.old or change.new,
    old_path = change.action == "renamed" and change.old or nil,
    action = change.action,
    hunks = report.hunks, added = report.added, removed = report.removed, offset = report.offset, fuzz = report.fuzz,
    recounted = change.file.recounted > 0 and change.file.recounted or nil,
    line_ends = report.line_ends,
    tolerated = tolerated.list(change.file.tolerated, report.tolerated),
  }
end

--- Applies a diff as it is written to an overlay.
local function apply_diff(diff, files, strip)
  local parsed, failure = diffs.parse(diff)
  if not parsed then return nil, failure end
  local changes, entries = {}, {}
  local prefixes = names.prefixes(parsed.files)
  for i, file in ipairs(parsed.files) do
    local change = { parsed = parsed, file = file, action = file.action, diff = diff }
    local good
    good, failure = locate(change, files, strip, prefixes)
    if not good then return about(change, failure) end
    if change.action == "deleted" or change.action == "renamed" then files:leave(change.old) end
    files:use(change.old)
    if change.new ~= change.old then files:use(change.new) end
    changes[i] = change
  end
  for i, change in ipairs(changes) do
    local report
    report, failure = actions[change.action](change, files)
    if not report then return about(change, failure) end
    entries[i] = entry_of(change, report)
  end
  return entries, parsed.tolerated
end

--- Runs a way to apply the change, and commits all of it or nothing.
local function attempt(directory, arguments, commit, apply)
  local files <close> = overlay.new(directory, not arguments.dry_run)
  local entries, more = apply(files)
  if not entries then return nil, more end
  if not arguments.dry_run then
    local good, failure = files:commit(commit)
    if not good then return nil, failure end
  end
  return entries, more
end

-- Failures of a diff whose lines of context may have lost their blank.
local readable <const> = { invalid_patch = true, patch_mismatch = true }

local BLOCK <const> = "\n<<<<<<< SEARCH"

---Reads a diff and changes the files as it says.
---@param directory native.root
---@param arguments { diff: string, strip?: integer, dry_run?: boolean }
---@param commit? fun(transaction: native.transaction): true?, native.failure? as overlay:commit takes it
---@return table[]? entries one for each part of the diff: path, old_path, action and the fields of native.edit.report
---@return native.failure|string[]|nil tolerated of the whole diff; or the failure
return function(directory, arguments, commit)
  local function try(diff)
    return attempt(directory, arguments, commit, function(files) return apply_diff(diff, files, arguments.strip) end)
  end
  local entries, more = try(arguments.diff)
  if entries then return entries, tolerated.list(more) end
  if not readable[more.code] then return nil, more end
  if text.find("\n" .. arguments.diff, BLOCK, 1) then
    return fail("invalid_patch", "SEARCH/REPLACE blocks are not a diff; make each of them a call of replace_in_file")
  end
  for _, diff in ipairs(diffs.with_blanks(arguments.diff)) do
    local other
    entries, other = try(diff)
    if entries then return entries, tolerated.list(other, { bare_context = true }) end
    if more.code == "invalid_patch" then more = other end -- this one tells where the hunks do not fit
  end
  return nil, more
end
