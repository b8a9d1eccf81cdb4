-- SPDX-License-Identifier: Apache-2.0
-- Applies a diff to the files of a workspace: all of it, or none.
--
-- As in git, a copy takes the content from before the diff, and a rename may go to a path that
-- another file leaves later: files can be swapped. Only a part of mode 120000 changes a link;
-- nothing goes through one.

local diffs = require "sba.patch.diff"
local explain = require "sba.patch.explain"
local fail = require "sba.util.fail"
local header = require "sba.patch.header"
local lpeg = require "lpeg"
local overlay = require "sba.patch.overlay"
local printable = require "sba.util.printable"
local text = require "native.text"

local caught, check, raise = fail.caught, fail.check, fail.raise
-- Bytes of an @@ line that is shown.
local LONGEST_HEADER <const> = 80
-- Bytes of a hunk that does not fit.
local MOST_EXPLAINED <const> = 64 << 10
-- Codes of a diff that may be meant in another way.
local RETRIED <const> = { invalid_patch = true, patch_mismatch = true }
local LINK <const> = 40960 -- 0120000

local function type_of(mode) return mode == LINK and "symlink" or "file" end

--- A mode of git's only tells whether the file may be run.
local function permissions(mode, before)
  if not mode or mode == LINK then return before end
  local runs = mode & 64 ~= 0 -- 0100
  if not before then return runs and 493 or nil end -- 0755
  if not runs then return before & ~73 end -- 0111
  -- 292 is 0444: whoever may read it may run it.
  return before | (before & 292) >> 2
end

--- A link must stay inside. A transaction checks that too, but a dry run commits none.
local function check_target(workspace, path, target)
  if target == "" or target:find("\0", 1, true) then
    raise("invalid_patch", "the link's target is empty or has a NUL byte")
  end
  local directory = path:match "^.*/" or ""
  if target:sub(1, 1) ~= "/" and workspace:relative(directory .. target) then return end
  raise("path_escape", "path escapes workspace: the link would point to %s", target)
end

local newline = lpeg.P "\n"
local line = (1 - newline) ^ 0 * (newline + -1)
local old_line = newline + (lpeg.S " -" / "") * line
local new_line = lpeg.S "+\\" * line -- or of "\ No newline"
local old_side = lpeg.Cs((-lpeg.P(-1) * (old_line + new_line / "")) ^ 0)

--- Why a hunk does not fit, by the lines of the file that resemble it most.
local function difference(patch, bytes, problem)
  local body = patch.diff:sub(problem.body, math.min(problem.last, problem.body + MOST_EXPLAINED))
  local old = lpeg.match(old_side, body)
  if old == "" then return "it only adds lines, and nothing that the file has says where they belong" end
  return explain.difference(bytes, old, "the diff", problem.line)
    or "its first lines are there, but not all of it, or not where it belongs: below the hunk before it, or at the end"
end

local function refuse_hunk(patch, file, bytes, problem)
  if not problem.hunk then error(problem, 0) end
  local at_line = patch.diff:match("^[^\r\n]*", problem.header)
  at_line = printable.quoted(at_line, LONGEST_HEADER)
  local code, line_there, why = problem.code, problem.line, problem.message
  local hunk = ("hunk %d of %d %s"):format(problem.hunk, file.hunks, at_line)
  if code == "patch_ambiguous" then
    local message = "%s fits as well at line %d as at line %d; give it more lines of context"
    raise(code, message, hunk, line_there, problem.other)
  elseif code == "already_applied" then
    raise(code, "%s: the change is already there, at line %d", hunk, line_there)
  end
  if line_there > 0 then why = difference(patch, bytes, problem) end
  raise(code, "%s does not fit: %s", hunk, why)
end

--- One hunk that only adds, at line 0, means that the file is new or empty. Git writes the same for
--- lines inserted at the top with -U0, but then its header names the content that was there.
local function check_absence(patch, file, bytes)
  if not file.is_new or bytes == "" then return end
  if patch.hunks:apply(file.first, 1, "") == bytes then
    raise("already_applied", "the change is already there: the file is as the diff would make it")
  elseif not file.not_empty then
    raise("already_exists", "the diff says that the file is new or empty, but it has %d lines", text.count_lines(bytes))
  end
end

--- keeps: the entry is only staged, so that its bytes need not be a string.
local function changed(patch, file, before, keeps)
  local bytes = before.bytes
  local report = { hunks = 0, added = 0, removed = 0, offset = 0, fuzz = 0, tolerated = {} }
  if file.hunks > 0 then
    check_absence(patch, file, bytes)
    bytes, report = patch.hunks:apply(file.first, file.hunks, bytes, keeps)
    if not bytes then refuse_hunk(patch, file, before.bytes, report) end
  end
  if patch.is_crlf and before.bytes == "" and bytes:find("\r\n", 1, true) then
    -- All lines of the diff have them: they are the transport's.
    bytes = bytes:gsub("\r\n", "\n")
    report.line_ends = "lf"
  end
  if before.type == "symlink" and file.action ~= "deleted" then
    check_target(patch.overlay.directory, file.new, bytes)
  end
  local mode = permissions(file.new_mode, before.mode)
  return { type = before.type, bytes = bytes, mode = mode }, report
end

local function check_type(file, entry)
  if not file.old_mode and not file.new_mode and file.hunks == 0 then return entry end
  local old = type_of(file.old_mode or file.action ~= "created" and file.new_mode)
  if file.new_mode and file.old_mode and type_of(file.new_mode) ~= old then
    raise("invalid_patch", "a file becomes a link, or a link a file, only by a deletion and a creation")
  elseif entry.type == old then
    return entry
  elseif old == "file" then
    raise("patch_mismatch", "it is a symbolic link, and the diff is not for one (mode 120000)")
  end
  raise("patch_mismatch", "it is not a symbolic link, but the diff is for one (mode 120000)")
end

-- put: overlay.put or overlay.create
local function change_into(patch, file, put, before)
  local keeps = put == overlay.put and patch.overlay:stages_at_once(file.new)
  local entry, report = changed(patch, file, check_type(file, before), keeps)
  put(patch.overlay, file.new, entry)
  return report
end

-- By the action of a part; each returns a native.edit.report.
local actions = {}

function actions.created(patch, file)
  local files, path = patch.overlay, file.new
  local there = files:exists(path) and not files.leaving[path] and files:get(path)
  local entry, report = changed(patch, file, { type = type_of(file.new_mode), bytes = "" })
  if there and there.type == entry.type and there.bytes == entry.bytes then
    raise("already_applied", "the change is already applied: the file is as the diff would make it")
  end
  files:create(path, entry)
  return report
end

function actions.deleted(patch, file)
  local entry, report = changed(patch, file, check_type(file, patch.overlay:get(file.new)))
  if file.is_begin then
    report.removed = text.count_lines(entry.bytes)
  elseif entry.bytes ~= "" then
    raise("patch_mismatch", "the diff deletes the file, but leaves %d of its bytes", #entry.bytes)
  end
  patch.overlay:remove(file.new)
  return report
end

function actions.modified(patch, file)
  local before, problem = caught(overlay.get, patch.overlay, file.new)
  local may_be_new = file.is_plain and file.hunks == 1 and not file.removes
  if not before and problem.code == "not_found" and may_be_new then
    file.action = "created"
    return actions.created(patch, file)
  end
  return change_into(patch, file, overlay.put, check(before, problem))
end

actions.mode_changed = actions.modified

function actions.copied(patch, file)
  file.action = "created"
  return change_into(patch, file, overlay.create, patch.overlay:get_original(file.old))
end

function actions.renamed(patch, file)
  local files, only_changes = patch.overlay, not file.is_begin and file.hunks > 0
  if only_changes and not files:known(file.old) and files:exists(file.new) then
    -- Already renamed, as in patch: only its content changes.
    file.action = "modified"
    return actions.modified(patch, file)
  end
  local report = change_into(patch, file, overlay.create, files:get(file.old))
  files:remove(file.old)
  return report
end

--- Sets file.old and file.new.
local function locate(patch, file)
  local files = patch.overlay
  local function exists(name)
    local path = caught(files.path, files, name)
    return path ~= nil and files:exists(path)
  end
  local old, new = header.resolve(file, patch.strip, patch.prefixes, exists)
  file.old, file.new = files:path(old), files:path(new)
  if file.from and file.old == file.new then
    raise("invalid_patch", "%s is renamed or copied to itself", file.old)
  end
  files:use(file.old, file.action == "deleted" or file.action == "renamed")
  if file.new ~= file.old then files:use(file.new) end
end

--- A failure becomes one line that begins with the file.
local function about(file, run, patch)
  local report, problem = caught(run, patch, file)
  if not problem then return report end
  local message, path = problem.message, file.new
  local begins = path and message:sub(1, #path) == path and message:find("^[: ]", #path + 1)
  if path and not begins then message = path .. ": " .. message end
  error({ code = problem.code, message = printable.line(message) }, 0)
end

local function entry_of(file, report)
  for name in pairs(file.tolerated) do report.tolerated[name] = true end
  report.path, report.action, report.recounted = file.new, file.action, file.recounted
  if file.action == "renamed" then report.old_path = file.old end
  return report
end

local function apply_parsed(directory, patch, arguments, commit)
  local files <close> = overlay.new(directory, not arguments.dry_run)
  local entries = {}
  patch.overlay, patch.strip = files, arguments.strip
  patch.prefixes = header.prefixes(patch.files)
  patch.is_crlf = not patch.diff:find "^\n" and not patch.diff:find "[^\r]\n"
  for _, file in ipairs(patch.files) do about(file, locate, patch) end
  for i, file in ipairs(patch.files) do
    entries[i] = entry_of(file, about(file, actions[file.action], patch))
  end
  if not arguments.dry_run then files:commit(commit) end
  return entries, patch.tolerated
end

--- Lines below a hunk that may be its own are so where they then stand in the file.
local function apply_diff(directory, diff, arguments, commit)
  local patch = diffs.parse(diff)
  if patch then
    local entries, more = caught(apply_parsed, directory, patch, arguments, commit)
    local is_final = entries or not patch.is_doubtful or not RETRIED[more.code]
    if is_final then return check(entries, more), more end
  end
  return apply_parsed(directory, check(diffs.parse(diff, true)), arguments, commit)
end

---@param directory native.root
---@param arguments { diff: string, strip?: integer, dry_run?: boolean }
---@param commit? fun(change: sba.transaction): true?, native.failure? as of overlay:commit
---@return table[]? entries of each part: path, old_path, action, recounted, and the fields of
---native.edit.report
---@return native.failure|table<string, true> tolerated in the whole diff; or the failure
return function(directory, arguments, commit)
  local entries, more = caught(apply_diff, directory, arguments.diff, arguments, commit)
  if entries or not RETRIED[more.code] then return entries, more end
  if text.find("\n" .. arguments.diff, "\n<<<<<<< SEARCH", 1) then
    local message = "SEARCH/REPLACE blocks are not a diff; make each of them a call of replace_in_file"
    return nil, { code = "invalid_patch", message = message }
  end
  for _, diff in ipairs(diffs.with_blanks(arguments.diff)) do
    local other
    entries, other = caught(apply_diff, directory, diff, arguments, commit)
    if entries then
      other.bare_context = true
      return entries, other
    end
    -- The other failure tells where hunks do not fit.
    if more.code == "invalid_patch" then more = other end
  end
  return nil, more
end
