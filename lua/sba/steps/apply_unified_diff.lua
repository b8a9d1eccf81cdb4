-- SPDX-License-Identifier: Apache-2.0
-- The step apply_unified_diff: changes files as a unified diff says, all of them or none.

local apply = require "sba.patch.apply"
local counted = require "sba.util.humanize".counted
local explain = require "sba.patch.explain"
local is = require "sba.util.schema_check"
local json = require "sba.util.json"
local printable = require "sba.util.printable"

--- "modified src/a.c: 2 hunks, +3 -1 (offset 4, fuzz 1)"
local function line_of(entry, tolerated)
  local line = entry.action:gsub("_", " ") .. " "
  if entry.old_path then line = line .. entry.old_path .. " to " end
  line = line .. entry.path
  if entry.hunks > 0 then
    line = line .. ": " .. counted(entry.hunks, "hunk")
    line = ("%s, +%d -%d"):format(line, entry.added, entry.removed)
  end
  local notes, recounted, line_ends = {}, entry.recounted, entry.line_ends
  if entry.offset > 0 then notes[1] = "offset " .. entry.offset end
  if entry.fuzz > 0 then notes[#notes + 1] = "fuzz " .. entry.fuzz end
  if recounted then notes[#notes + 1] = counted(recounted, "hunk") .. " recounted" end
  if line_ends then notes[#notes + 1] = "line ends made " .. line_ends:upper() end
  notes[#notes + 1] = tolerated
  if notes[1] then line = ("%s (%s)"):format(line, table.concat(notes, ", ")) end
  return printable.line(line)
end

--- Makes the set `tolerated` of the result, or of an entry, a list of names. Returns it as words.
local function name_tolerated(result)
  local names, words = explain.names(result.tolerated)
  result.tolerated = names and json.array(names)
  return words
end

local function run(arguments, job_context)
  local entries, tolerated = apply(job_context.workspace, arguments, job_context.commit)
  if not entries then return nil, tolerated end
  local result = { files = entries, tolerated = tolerated, dry_run = arguments.dry_run or nil }
  local lines = {}
  for i, entry in ipairs(entries) do lines[i] = line_of(entry, name_tolerated(entry)) end
  local words = name_tolerated(result)
  if words then lines[#lines + 1] = "(" .. words .. ")" end
  if arguments.dry_run then lines[#lines + 1] = "(dry run: nothing was written)" end
  return result, table.concat(lines, "\n") .. "\n"
end

local function names(description, enum)
  local name = is.text(nil, { enum = enum })
  return { type = "array", minItems = 1, items = name, description = description }
end

local file <const> = is.object {
  "path!", is.text(),
  "old_path", is.text "Where a renamed file was.",
  "action!", is.text(nil, { enum = { "created", "modified", "deleted", "renamed", "mode_changed" } }),
  "hunks!", is.count(),
  "added!", is.count "Lines.",
  "removed!", is.count "Lines.",
  "offset!", is.count "Lines that a hunk was off at most.",
  "fuzz!", is.count("Lines of context left out at an end of a hunk, at most.", { maximum = 2 }),
  "recounted", is.count("Hunks whose @@ line had wrong counts.", { minimum = 1 }),
  "line_ends", is.text("The file's, which the diff's lines were given.", { enum = { "crlf", "lf" } }),
  "tolerated", names("What of the diff was not as git writes it, where only one place fits.", {
    "no_git_line", "no_line_numbers", "blank_lines", "trailing_blanks", "line_ends",
    "final_newline", "indentation",
  }),
}

return {
  name = "apply_unified_diff",
  summary = "Change files of the workspace as a unified diff says, all of them or none.",
  arguments = is.object {
    "diff!", is.text("A unified diff of one or more files, as diff -u and git diff write it: "
      .. "--- a/FILE, +++ b/FILE, @@ -1,3 +1,4 @@ and lines that begin with ' ', '+' or '-'. "
      .. "/dev/null stands for a created or deleted file; git's rename, copy and mode lines "
      .. "are understood. The form *** Begin Patch ... *** End Patch is taken too."),
    "strip", is.count("Leading directories to strip from names, as patch -p. "
      .. "Default: guessed from the names and existing files."),
    "dry_run", is.flag("Only say what would be done.", { default = false }),
  },
  for_model = {
    hidden = true, -- replace_in_file and write_file go wrong less often
    order = { "diff" },
    called = { "apply_patch", "apply_diff", "patch", "git_apply" },
  },
  result = is.object {
    "files!", { type = "array", items = file },
    "tolerated", names("What stood around the diff, or that it was of another form.", {
      "code_fence", "prose", "begin_patch", "bare_context", "properties",
    }),
    "dry_run", is.flag "True where nothing was written.",
  },
  run = run,
}
