-- SPDX-License-Identifier: Apache-2.0
-- The step replace_in_file: replaces a text in a file of the workspace where it stands exactly so many times, atomically.

local explain = require "sba.patch.explain"
local fail = require "sba.util.fail"
local json = require "sba.util.json"
local object = require "sba.util.schema_check".object
local replace = require "sba.patch.replace"
local text = require "native.text"
local transaction = require "sba.patch.transaction"

local MOST_BYTES <const> = 64 * 1024 * 1024 -- of the file
local MOST_LINKS <const> = 40 -- as the kernel

--- The file that a path means: links are followed, for a transaction replaces them.
local function behind_links(directory, path)
  for _ = 1, MOST_LINKS do
    local stat = directory:stat(path)
    if not stat or stat.type ~= "symlink" then break end
    path = stat.target:sub(1, 1) == "/" and stat.target or (path:match("^(.*/)") or "") .. stat.target
  end
  return path
end

--- What the file is to hold, and what was overlooked in the edit.
local function changed(read, failure, path, arguments)
  local is_empty = arguments.old_text == ""
  if not read and is_empty and failure.code == "not_found" then return arguments.new_text, {} end
  if not read then return nil, failure end
  if read.truncated then return fail("too_large", "%s is larger than %d MiB", path, MOST_BYTES >> 20) end
  if not is_empty then return replace.apply(read.content, path, arguments) end
  if read.size_bytes == 0 then return arguments.new_text, {} end
  return fail("already_exists", "%s is there already, and old_text is empty: name the text to replace, or append with write_file", path)
end

--- Puts the content in place. --resume undoes it if the runner dies before the step has ended, so that no edit is made twice; a
--- transaction that was committed so is the run's to close.
local function put(job_context, root, path, content, mode)
  local change = transaction.new(root)
  local done, failure = change:write(path, content, mode)
  if done then done, failure = (job_context.commit or change.commit)(change) end
  if not done or not job_context.commit then change:close() end
  return done, failure
end

local function run(arguments, job_context)
  local root, place, prefix = job_context.place(arguments.path)
  if not root then return nil, place end
  local path, failure = root:relative(behind_links(root, place))
  if not path then return nil, failure end
  local read, problem = root:read(path, { max_bytes = MOST_BYTES })
  local content, more = changed(read, problem, prefix .. path, arguments)
  if not content then return nil, more end
  local done
  done, failure = put(job_context, root, path, content, read and read.mode & 511)
  if not done then return nil, failure end
  local names, words = explain.names(more)
  local count = arguments.old_text == "" and 1 or arguments.expected_count
  local result = {
    path = prefix .. root:relative(place), count = count, created = not read,
    tolerated = json.array(names or {}), sha256 = text.sha256(content),
  }
  local what = result.created and "created" or ("replaced %s in"):format(replace.counted(count))
  return result, ("%s %s%s\n"):format(what, result.path, words and (" (%s)"):format(words) or "")
end

local function check(arguments)
  local old, count = arguments.old_text, arguments.expected_count
  if old ~= "" and old == arguments.new_text then return "new_text is the same as old_text: nothing would change", "new_text" end
  if old == "" and count and count > 1 then return "expected_count must be 1 where old_text is empty", "expected_count" end
end

return {
  name = "replace_in_file",
  summary = "Replace a text in a file of the workspace where it stands exactly expected_count times.",
  arguments = object {
    "path!", {
      type = "string", nul = false, minLength = 1,
      description = "Relative to the workspace or absolute below it. A link is followed, where it stays inside.",
    },
    "old_text!", {
      type = "string",
      description = "What the file holds, with enough lines around it that no other place fits. Empty: create the file with new_text.",
    },
    "new_text!", { type = "string", description = "Replacement text; may be empty." },
    "expected_count", { type = "integer", minimum = 1, default = 1, description = "Places to replace: no more, no fewer." },
  },
  for_model = {
    summary = "Replace old_text in a file, where it is found exactly expected_count times. Copy it from the file, without line numbers.",
    order = { "path", "old_text", "new_text", "expected_count" },
    descriptions = {
      old_text = "With enough lines to be found only there. Empty: new_text is a new file", expected_count = "Default 1",
    },
    called = {
      "replace", "edit", "edit_file", "str_replace", "string_replace", "search_replace", "search_and_replace", "replace_string_in_file",
      "replace_text", "file_edit",
    },
  },
  result = object {
    "path!", { type = "string", description = "Relative to the workspace; an artifact's begins with $CYNODE_ARTIFACTS_DIR." },
    "count!", { type = "integer", minimum = 1, description = "Places that were replaced." },
    "created!", { type = "boolean", description = "There was no such file before." },
    "tolerated!", {
      type = "array", items = { type = "string", enum = explain.tolerated.replaced },
      description = "How old_text differs from the file. new_text is written as the file is.",
    },
    "sha256!", { type = "string", description = "Of the whole file, in hex." },
  },
  check = check,
  brief = true,
  run = run,
}
