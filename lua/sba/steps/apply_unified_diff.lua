-- SPDX-License-Identifier: Apache-2.0
-- The step apply_unified_diff: changes files as a unified diff says, all of them or none.

local apply = require "sba.patch.apply"
local counted = require "sba.util.humanize".counted
local explain = require "sba.patch.explain"
local is = require "sba.util.schema_check"
local json = require "sba.util.json"
local printable = require "sba.util.printable"

--- "modified src/a.c: 2 hunks, +3 -1 (offset 4, fuzz 1)"
local function line_of(entry, words)
  local notes = {}
  local function note(when, form) notes[#notes + 1] = when and form:format(when) or nil end
  note(entry.offset > 0 and entry.offset, "offset %d")
  note(entry.fuzz > 0 and entry.fuzz, "fuzz %d")
  note(entry.recounted and counted(entry.recounted, "hunk"), "%s recounted")
  note(entry.line_ends and entry.line_ends:upper(), "line ends made %s")
  note(words, "%s")
  local line = ("%s %s%s"):format(entry.action:gsub("_", " "), entry.old_path and entry.old_path .. " to " or "", entry.path)
  if entry.hunks > 0 then line = ("%s: %s, +%d -%d"):format(line, counted(entry.hunks, "hunk"), entry.added, entry.removed) end
  return printable.line(notes[1] and ("%s (%s)"):format(line, table.concat(notes, ", ")) or line)
end

--- The result's, or an entry's, as a list of names. Returns them as words.
local function name_tolerated(result)
  local names, words = explain.names(result.tolerated)
  result.tolerated = names and json.array(names)
  return words
end

local function run(arguments, job_context)
  local entries, tolerated = apply(job_context.workspace, arguments, job_context.commit)
  if not entries then return nil, tolerated end
  local lines, result = {}, { files = entries, tolerated = tolerated, dry_run = arguments.dry_run or nil }
  for i, entry in ipairs(entries) do lines[i] = line_of(entry, name_tolerated(entry)) end
  local words = name_tolerated(result)
  if words then lines[#lines + 1] = "(" .. words .. ")" end
  if arguments.dry_run then lines[#lines + 1] = "(dry run: nothing was written)" end
  return result, table.concat(lines, "\n") .. "\n"
end


local function names(description, enum)
  return { type = "array", minItems = 1, items = is.text(nil, { enum = enum }), description = description }
end

return {
  name = "apply_unified_diff",
  summary = "Change files of the workspace as a unified diff says, all of them or none.",
  arguments = is.object {
    "diff!", {
      type = "string",
      description = "A unified diff of one or more files, as diff -u and git diff write it: --- a/FILE, +++ b/FILE, @@ -1,3 +1,4 @@ " ..
        "and lines that begin with ' ', '+' or '-'. /dev/null stands for a created or deleted file; git's rename, " ..
        "copy and mode lines are understood. The form *** Begin Patch ... *** End Patch is taken too.",
    },
    "strip", is.count "Leading directories to strip from names, as patch -p. Default: guessed from the names and existing files.",
    "dry_run", is.flag("Only say what would be done.", { default = false }),
  },
  for_model = {
    hidden = true, -- replace_in_file and write_file go wrong less often
    order = { "diff" },
    called = { "apply_patch", "apply_diff", "patch", "git_apply" },
  },
  result = is.object {
    "files!", {
      type = "array",
      items = is.object {
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
          "no_git_line", "no_line_numbers", "blank_lines", "trailing_blanks", "line_ends", "final_newline", "indentation",
        }),
      },
    },
    "tolerated", names("What stood around the diff, or that it was of another form.", {
      "code_fence", "prose", "begin_patch", "bare_context", "properties",
    }),
    "dry_run", is.flag "True where nothing was written.",
  },
  run = run,
}
