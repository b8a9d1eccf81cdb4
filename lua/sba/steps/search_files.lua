-- SPDX-License-Identifier: Apache-2.0
-- The step search_files: a regular expression over the lines of the workspace's files.

local counted = require "sba.util.humanize".counted
local fail = require "sba.util.fail"
local is = require "sba.util.schema_check"
local json = require "sba.util.json"
local search = require "native.search"

local MAX_MATCHES <const> = 1000

local function result_of(found)
  return {
    matches = json.verbatim("[" .. found.json .. "]"),
    files_searched = found.files_searched, truncated = found.limit ~= nil,
  }
end

local function text_of(found)
  local words, unreadable = found.shown, found.files_unreadable
  if found.count == 0 then
    words = ("no match in %s\n"):format(counted(found.files_searched, "file"))
  end
  if found.limit then
    local form = "%s[stopped after %s; there are more: narrow pattern, path or include]\n"
    words = form:format(words, counted(found.count, "matching line"))
  end
  if unreadable > 0 then
    words = ("%s[%s could not be read]\n"):format(words, counted(unreadable, "file"))
  end
  return words
end

local function check(arguments)
  local regex <close>, failure = search.compile(arguments.pattern, { include = arguments.include })
  if regex then return end
  -- Which is no mistake of the arguments.
  if failure.code == "out_of_memory" then error "not enough memory" end
  return failure.message, failure.code == "invalid_glob" and "include" or "pattern"
end

local function run(arguments, job_context)
  local bound, path = job_context.max_output_bytes, arguments.path
  local regex <close> = fail.check(search.compile(arguments.pattern,
    { ignore_case = arguments.ignore_case, include = arguments.include }))
  local found, failure = regex:files(job_context.workspace, path ~= "" and path or ".", {
    max_matches = arguments.max_matches or MAX_MATCHES,
    max_bytes = bound - 1, -- two brackets, and one comma less than matches
  })
  if found and found.limit == "max_bytes" and not job_context.agent then
    local message = "the matches take more than the job's max_output_bytes (%d); "
      .. "narrow the pattern, path or include, or set max_matches"
    failure = { code = "constraint_violation", message = message:format(bound) }
  end
  found = found or failure.found -- until it was interrupted
  if not found then return nil, failure end
  local result, words = result_of(found), text_of(found)
  if not failure then return result, words end
  return fail.with(failure.code, failure.message, result, words)
end

return {
  name = "search_files",
  summary = "Search the lines of files in the workspace for a regular expression.",
  arguments = is.object {
    "pattern!", is.text("Regular expression (PCRE2, UTF-8), matched against each line by itself; "
      .. "\\w, \\d, \\s and \\b know ASCII only."),
    "path", is.text("File or directory to search, with all below it but directories named .git. "
      .. "Links and binary files are passed over.", { nul = false, default = "." }),
    "include", is.text("Only files that this glob matches: by name (*.c) or, where it holds a slash, "
      .. "by path (src/**/*.{c,h}).", { nul = false }),
    "max_matches", is.count("Matching lines to return at most.", { minimum = 1, default = MAX_MATCHES }),
    "ignore_case", is.flag(nil, { default = false }),
  },
  for_model = {
    wants_room = true, -- a command does the same
    summary = "Search the lines of files for a regular expression.",
    order = { "pattern", "path", "include", "ignore_case" },
    descriptions = { include = "Glob of files, as in *.c or src/**/*.py" },
    called = {
      "grep", "search", "rg", "ripgrep", "grep_search", "search_code", "find_in_files",
      "search_file", "search_text",
    },
  },
  result = is.object {
    "matches!", {
      type = "array",
      description = "In the order of list_tree (names in byte order, a directory's files where its "
        .. "name stands), then by line.",
      items = is.object {
        "path!", is.text(),
        "line!", is.count(nil, { minimum = 1 }),
        "text!", is.text "The line; of a long one what is around the match.",
      },
    },
    "files_searched!", is.count(),
    "truncated!", is.flag "There are more matches than were asked for.",
  },
  check = check,
  redacts = true,
  run = run,
}
