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

local caught, check, raise = fail.caught, fail.check, fail.raise
local LONGEST_HEADER <const> = 80 -- bytes of an @@ line that is shown
local MOST_EXPLAINED <const> = 64 << 10 -- bytes of a hunk that does not fit
local LINK <const> = 40960 -- 0120000

local function kind_of(mode) return mode == LINK and "link" or "file" end

---The permission bits of a file that gets a mode of git's, which only tells whether the file may be run.
local function permissions(mode, before)
  if not mode or mode == LINK then return before end
  local runs = mode & 64 ~= 0 -- 0100
  if not before then return runs and 493 or nil end -- 0755
  return runs and before | (before & 292) >> 2 or before & ~73 -- whoever may read it (0444) may run it; 0111
end

---A link must stay inside. A transaction sees to that too, but a dry run has none.
local function check_target(files, path, target)
  if target == "" or target:find("\0", 1, true) then raise("invalid_patch", "the link's target is empty or has a NUL byte") end
  if target:sub(1, 1) ~= "/" and files.directory:relative((path:match("^.*/") or "") .. target) then return end
  raise("path_escape", "path escapes workspace: the link would point to %s", target)
end

local newline = lpeg.P "\n"
local line = (1 - newline) ^ 0 * (newline + -1)
local old_side = lpeg.Cs((-lpeg.P(-1) * (newline + (lpeg.S " -" / "") * line + (lpeg.S "+\\" * line) / "")) ^ 0)

--- Says why a hunk cannot be applied.
local function refuse(change, bytes, problem)
  if not problem.hunk then error(problem, 0) end
  local header = change.diff:match("^[^\r\n]*", problem.header)
  local hunk = ("hunk %d of %d %s"):format(problem.hunk, change.file.hunks, printable.quoted(header, LONGEST_HEADER))
  local body = change.diff:sub(problem.body, math.min(problem.last, problem.body + MOST_EXPLAINED))
  local old, why = lpeg.match(old_side, body), problem.message
  if problem.code == "patch_ambiguous" then
    raise(problem.code, "%s fits as well at line %d as at line %d; give it more lines of context", hunk, problem.line, problem.other)
  elseif problem.code == "already_applied" then
    raise(problem.code, "%s: the change is already there, at line %d", hunk, problem.line)
  elseif problem.line > 0 then
    why = old == "" and "it only adds lines, and nothing that the file has says where they belong"
      or explain.difference(bytes, old, "the diff", problem.line)
      or "its first lines are there, but not all of it, or not where it belongs: below the hunk before it, or at the end"
  end
  raise(problem.code, "%s does not fit: %s", hunk, why)
end

--- One hunk that only adds, at line 0, means that the file is new or empty. Git writes the same for lines inserted at the top without
--- context (-U0), but then its header names the content that was there.
local function check_absence(change, bytes)
  local file = change.file
  if not file.is_new or file.hunks > 1 or bytes == "" then return end
  if change.parsed.hunks:apply(file.first, 1, "") == bytes then
    raise("already_applied", "the change is already there: the file is as the diff would make it")
  elseif not file.not_empty then
    raise("already_exists", "the diff says that the file is new or empty, but it has %d lines", text.count_lines(bytes))
  end
end

---The change that a part makes to an entry, which goes to path; nil: it is deleted.
---@return sba.overlay.entry, native.edit.report
local function changed(change, files, before, path)
  local bytes, report = before.bytes, { hunks = 0, added = 0, removed = 0, offset = 0, fuzz = 0, tolerated = {} }
  if change.file.hunks > 0 then
    check_absence(change, bytes)
    bytes, report = change.parsed.hunks:apply(change.file.first, change.file.hunks, bytes)
    if not bytes then refuse(change, before.bytes, report) end
  end
  if before.kind == "link" and path then check_target(files, path, bytes) end
  return { kind = before.kind, bytes = bytes, mode = permissions(change.file.new_mode, before.mode) }, report
end

---Returns the entry, which must be of the kind that the diff means.
local function of_kind(file, entry)
  if not file.old_mode and not file.new_mode and file.hunks == 0 then return entry end
  local old = kind_of(file.old_mode or file.action ~= "created" and file.new_mode)
  if file.new_mode and file.old_mode and kind_of(file.new_mode) ~= old then
    raise("invalid_patch", "a file becomes a link, or a link a file, only by a deletion and a creation")
  elseif entry.kind ~= old then
    raise("patch_mismatch", old == "file" and "it is a symbolic link, and the diff is not for one (mode 120000)"
      or "it is not a symbolic link, but the diff is for one (mode 120000)")
  end
  return entry
end

-- What each action does, and its report.
local actions = {}

function actions.created(change, files)
  local path = change.new
  local there = files:exists(path) and not files.leaving[path] and files:get(path)
  local entry, report = changed(change, files, { kind = kind_of(change.file.new_mode), bytes = "" }, path)
  if there and there.kind == entry.kind and there.bytes == entry.bytes then
    raise("already_applied", "the change is already applied: the file is as the diff would make it")
  end
  files:create(path, entry)
  return report
end

function actions.deleted(change, files)
  local entry, report = changed(change, files, of_kind(change.file, files:get(change.old)))
  if change.file.whole then
    report.removed = text.count_lines(entry.bytes)
  elseif entry.bytes ~= "" then
    raise("patch_mismatch", "the diff deletes the file, but leaves %d of its bytes", #entry.bytes)
  end
  files:remove(change.old)
  return report
end

---Changes an entry and puts it at the new path: with files.put, or with files.create, where nothing may be.
local function changed_into(change, files, put, before)
  local entry, report = changed(change, files, of_kind(change.file, before), change.new)
  put(files, change.new, entry)
  return report
end

function actions.modified(change, files)
  local before, problem = caught(files.get, files, change.new)
  if not before and problem.code == "not_found" and change.file.may_create then
    change.action = "created"
    return actions.created(change, files)
  end
  return changed_into(change, files, files.put, check(before, problem))
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
  local report = changed_into(change, files, files.create, files:get(change.old))
  files:remove(change.old)
  return report
end

---Turns the names of a part into paths of the workspace.
local function locate(change, files, strip, prefixes)
  local function exists(name)
    local path = caught(files.path, files, name)
    return path ~= nil and files:exists(path)
  end
  for side, name in pairs(names.resolve(change.file, strip, prefixes, exists)) do change[side] = files:path(name) end
  change.old, change.new = change.old or change.new, change.new or change.old
  if change.file.from and change.old == change.new then raise("invalid_patch", "%s is renamed or copied to itself", change.old) end
  if change.action == "deleted" or change.action == "renamed" then files:leave(change.old) end
  files:use(change.old)
  if change.new ~= change.old then files:use(change.new) end
end

---Calls a function for a part of the diff. Its failure becomes one line that begins with the file.
local function about(change, run, ...)
  local report, problem = caught(run, change, ...)
  if not problem then return report end
  local message = problem.message
  local path = change.action == "deleted" and change.old or change.new or change.old
  local begins = path and message:sub(1, #path) == path and message:find("^[: ]", #path + 1)
  if path and not begins then message = path .. ": " .. message end
  error({ code = problem.code, message = printable.line(message) }, 0)
end

local function entry_of(change, report)
  for name in pairs(change.file.tolerated) do report.tolerated[name] = true end
  return {
    path = change.action == "deleted" and change.old or change.new,
    old_path = change.action == "renamed" and change.old or nil,
    action = change.action,
    hunks = report.hunks, added = report.added, removed = report.removed, offset = report.offset, fuzz = report.fuzz,
    recounted = change.file.recounted > 0 and change.file.recounted or nil,
    line_ends = report.line_ends,
    tolerated = report.tolerated,
  }
end

--- Applies a diff as it is written, all of it or nothing.
local function apply_diff(directory, diff, arguments, commit)
  local files <close> = overlay.new(directory, not arguments.dry_run)
  local parsed = check(diffs.parse(diff))
  local changes, entries = {}, {}
  local prefixes = names.prefixes(parsed.files)
  for i, file in ipairs(parsed.files) do
    changes[i] = { parsed = parsed, file = file, action = file.action, diff = diff }
    about(changes[i], locate, files, arguments.strip, prefixes)
  end
  for i, change in ipairs(changes) do entries[i] = entry_of(change, about(change, actions[change.action], files)) end
  if not arguments.dry_run then files:commit(commit) end
  return entries, parsed.tolerated
end

-- Failures of a diff whose lines of context may have lost their blank.
local readable <const> = { invalid_patch = true, patch_mismatch = true }

---Reads a diff and changes the files as it says.
---@param directory native.root
---@param arguments { diff: string, strip?: integer, dry_run?: boolean }
---@param commit? fun(change: sba.transaction): true?, native.failure? as overlay:commit takes it
---@return table[]? entries one for each part of the diff: path, old_path, action and the fields of native.edit.report
---@return native.failure|table<string, true> tolerated of the whole diff; or the failure
return function(directory, arguments, commit)
  local entries, more = caught(apply_diff, directory, arguments.diff, arguments, commit)
  if entries or not readable[more.code] then return entries, more end
  if text.find("\n" .. arguments.diff, "\n<<<<<<< SEARCH", 1) then
    return fail("invalid_patch", "SEARCH/REPLACE blocks are not a diff; make each of them a call of replace_in_file")
  end
  for _, diff in ipairs(diffs.with_blanks(arguments.diff)) do
    local other
    entries, other = caught(apply_diff, directory, diff, arguments, commit)
    if entries then
      other.bare_context = true
      return entries, other
    end
    if more.code == "invalid_patch" then more = other end -- this one tells where the hunks do not fit
  end
  return nil, more
end
