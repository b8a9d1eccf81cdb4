-- SPDX-License-Identifier: Apache-2.0
-- The step replace_in_file: replaces a text where it stands exactly so many times. One that is to
-- be there once is also taken as a hunk of a diff without line numbers: then blanks, line ends and
-- indentation may differ.

local edit = require "native.edit"
local explain = require "sba.patch.explain"
local fail = require "sba.util.fail"
local is = require "sba.util.schema_check"
local json = require "sba.util.json"
local redact = require "native.secret".redact
local lines = require "sba.util.excerpt".lines
local text = require "native.text"
local transaction = require "sba.patch.transaction"

local check, raise = fail.check, fail.raise
local MOST_BYTES <const> = 64 << 20 -- of the file
-- Bytes that all places get together.
local MOST_NEW <const> = 64 << 20
-- Bytes; a larger file must match exactly.
local MOST_TOLERATED <const> = 4 << 20
local MOST_PLACES <const> = 100000 -- counted, if fewer are expected
local MOST_NUMBERS <const> = 20 -- line numbers in a message
-- Bytes of new_text, but for blanks, from which on it is surely no other text.
local LEAST_SPECIFIC <const> = 5
local MOST_LINKS <const> = 40 -- as the kernel
-- Bytes of a file whose new lines a model sees.
local LARGEST_SHOWN <const> = 1 << 20
local MOST_SHOWN <const>, LONGEST_SHOWN <const> = 12, 200 -- lines; bytes of one
-- Bytes of a file that is shown whole where no line of it resembles old_text.
local LARGEST_WHOLE <const> = 2048

local function times(count) return count == 1 and "once" or count .. " times" end

--- "line 3", "lines 3, 7, 9 and 12 more"
local function lines_of(bytes, found)
  local numbers, number, from = {}, 1, 1
  for i = 1, math.min(#found, MOST_NUMBERS) do
    number = number + text.count_lines(bytes:sub(from, found[i])) - 1
    numbers[i], from = number, found[i]
  end
  local more = #found > #numbers and (" and %d more"):format(#found - #numbers) or ""
  return (#found == 1 and "line " or "lines ") .. table.concat(numbers, ", ") .. more
end

--- All places of a text. Two that overlap end the search.
local function find_all(bytes, old, expected)
  local found, at = {}, text.find(bytes, old, 1)
  while at and not found.overlap and #found <= math.max(expected, MOST_PLACES) do
    found[#found + 1] = at
    at = text.find(bytes, old, at + 1)
    found.overlap = at and at < found[#found] + #old
  end
  return found
end

local function refuse_count(bytes, path, found, expected)
  local places, around = lines_of(bytes, found), ": add lines around it so that only the wanted places fit"
  if found.overlap then
    raise("text_ambiguous", "places of old_text in %s overlap each other (%s)" .. around, path, places)
  end
  local message = "old_text is in %s %s (%s); expected_count is %d"
  local code = "text_not_found"
  if #found > expected then
    message = message .. around .. ", or give expected_count " .. #found .. " for all"
    code = "text_ambiguous"
  else
    message = message .. ": give expected_count " .. #found .. ", if no other place is meant"
  end
  raise(code, message, path, times(#found), places, expected)
end

local function cuts_a_word(bytes, at, size)
  local is_in_one = at > 1 and bytes:find("^[%w_][%w_]", at - 1)
  return is_in_one or bytes:find("^[%w_][%w_]", at + size - 1)
end

--- What a file has of new_text, if that is long enough to tell: the change may have been made
--- before. As whole lines, in one place, it surely was.
local function state_of_new(bytes, new)
  new = text.trim_end(new, "\r\n")
  local _, blanks = new:gsub("%s", "")
  if #new - blanks < LEAST_SPECIFIC then return nil end
  local found = {}
  for _, at in ipairs(find_all(bytes, new, 1)) do
    if not cuts_a_word(bytes, at, #new) then found[#found + 1] = at end
  end
  if #found == 0 then return nil end
  local at = found[1]
  local begins_line = at == 1 or bytes:byte(at - 1) == 0x0A
  local ends_line = at + #new > #bytes or bytes:find("^\r?\n", at + #new)
  local is_whole = #found == 1 and begins_line and ends_line
  local said = is_whole and "new_text is already there (%s)" or "it has new_text already (%s)"
  return said:format(lines_of(bytes, found))
end

--- The whole of a short file, as the lines that resemble a text are shown.
local function all_lines(bytes)
  if #bytes > LARGEST_WHOLE or bytes == "" then return nil end
  local listed = {}
  for _, line in lines(bytes) do
    listed[#listed + 1] = ("%6d  %s\n"):format(#listed + 1, text.repair(line))
  end
  return table.concat(listed)
end

local function refuse_missing(bytes, path, arguments)
  local difference, numbered = explain.difference(bytes, arguments.old_text, "old_text")
  local there = state_of_new(bytes, arguments.new_text)
  local why = { there }
  if difference then
    why[#why + 1] = "of what resembles it " .. difference
  elseif numbered then
    why[#why + 1] = "its first lines are there"
  elseif not there then
    numbered = all_lines(bytes)
    local where = numbered and "these are its lines" or "read the file, and copy the text from it"
    why[#why + 1] = "no line of it resembles old_text: " .. where
  end
  local message = ("old_text is not in %s; %s"):format(path, table.concat(why, "; "))
  error({ code = "text_not_found", message = message, text = numbered }, 0)
end

--- A model that gives one text as both has mostly not seen the file.
local function refuse_same(bytes, path, arguments)
  local old, shown = arguments.old_text, all_lines(bytes)
  if not text.find(bytes, old, 1) then refuse_missing(bytes, path, arguments) end
  local what = "these are its lines: write the whole file, changed, with write_file"
  if not shown then
    shown = select(2, explain.difference(bytes, old, "old_text"))
    what = "give the lines that are to change as old_text, and what they are to be as new_text"
  end
  local message = "new_text is the same as old_text: nothing would change in " .. path .. "; " .. what
  error({ code = "text_unchanged", message = message, text = shown }, 0)
end

local function has_crlf_throughout(bytes)
  local first = text.find(bytes, "\n", 1)
  return first and first > 1 and bytes:byte(first - 1) == 0x0D and not bytes:find("[^\r]\n")
end

--- Whether each place is whole lines but for the last line's end.
local function are_lines(bytes, found, size)
  for _, at in ipairs(found) do
    local begins = at == 1 or bytes:byte(at - 1) == 10
    if not begins or not bytes:find("^\r?\n", at + size) then return false end
  end
  return true
end

--- takes_lines: where whole lines become nothing, their last line's end goes with them, as in a
--- diff. Models that take a line out give its text without the end.
local function replaced_exactly(bytes, path, arguments, found, takes_lines)
  local new, tolerated, size = arguments.new_text, {}, #arguments.old_text
  local is_gone = takes_lines and new == "" and arguments.old_text:sub(-1) ~= "\n"
  if is_gone and are_lines(bytes, found, size) then tolerated.final_newline = true end
  local has_lf = text.find(new, "\n", 1) and not text.find(arguments.old_text .. new, "\r\n", 1)
  if has_lf and has_crlf_throughout(bytes) then
    new, tolerated.line_ends = new:gsub("\n", "\r\n"), true
  end
  if #found * #new > MOST_NEW then
    raise("too_large", "the change would write more than %d MiB into %s", MOST_NEW >> 20, path)
  end
  local parts, from = {}, 1
  for _, at in ipairs(found) do
    parts[#parts + 1] = bytes:sub(from, at - 1)
    parts[#parts + 1] = new
    from = at + size
    if tolerated.final_newline then from = bytes:find("\n", from, true) + 1 end
  end
  parts[#parts + 1] = bytes:sub(from)
  return table.concat(parts), tolerated
end

--- The lines of a text, each behind a mark: one side of a hunk.
local function marked(part, mark)
  if part == "" then return "" end
  if part:sub(-1) == "\n" then part = part:sub(1, -2) end
  return mark .. part:gsub("\n", "\n" .. mark) .. "\n"
end

local function replaced_loosely(bytes, path, arguments)
  local hunk = marked(arguments.old_text, "-") .. marked(arguments.new_text, "+")
  local hunks <close> = edit.hunks(hunk)
  hunks:read(1, 1, 1, #hunk + 1, true)
  local content, report = hunks:apply(1, 1, bytes)
  if content then
    report.tolerated.line_ends = report.tolerated.line_ends or report.line_ends ~= nil or nil
    return content, report.tolerated
  elseif report.code == "patch_ambiguous" then
    local message = "old_text is in %s but for blanks or indentation, at lines %d and %d; "
      .. "add lines around it so that only one place fits"
    raise("text_ambiguous", message, path, report.line, report.other)
  elseif report.code == "patch_mismatch" and report.line == 0 then
    raise("text_not_found", "old_text is not in %s as it is: %s", path, report.message)
  elseif report.hunk then
    refuse_missing(bytes, path, arguments)
  end
  error(report, 0)
end

local function replaced(bytes, path, arguments, takes_lines)
  local old, expected = arguments.old_text, arguments.expected_count
  if old == arguments.new_text then refuse_same(bytes, path, arguments) end
  local found = find_all(bytes, old, expected)
  if #found == expected and not found.overlap then
    return replaced_exactly(bytes, path, arguments, found, takes_lines)
  end
  if #found > 0 then refuse_count(bytes, path, found, expected) end
  local may_differ = expected == 1 and #bytes <= MOST_TOLERATED and old:find("%S")
  if not may_differ then refuse_missing(bytes, path, arguments) end
  return replaced_loosely(bytes, path, arguments)
end

--- What the file is to hold, and what was tolerated.
local function changed(read, failure, path, arguments, takes_lines)
  local creates = arguments.old_text == ""
  local is_empty
  if read then is_empty = read.size_bytes == 0 else is_empty = failure.code == "not_found" end
  if creates and is_empty then return arguments.new_text, {} end
  check(read, failure)
  if read.truncated then raise("too_large", "%s is larger than %d MiB", path, MOST_BYTES >> 20) end
  if not creates then return replaced(read.content, path, arguments, takes_lines) end
  local message = "%s is there already, and old_text is empty: name the text to replace, "
    .. "or append with write_file"
  raise("already_exists", message, path)
end

--- The file that a path means: links are followed, for a transaction replaces them.
local function behind_links(directory, path)
  for _ = 1, MOST_LINKS do
    local stat = directory:stat(path)
    local target = stat and stat.target
    if not target then break end
    if target:sub(1, 1) ~= "/" then target = (path:match("^.*/") or "") .. target end
    path = target
  end
  return path
end

--- --resume undoes it if the runner dies before the step has ended, so that no edit is made twice. What job_context
---commits is the run's to close.
local function put(job_context, root, path, content, mode)
  local change = transaction.new(root)
  local done, failure = change:write(path, content, mode)
  if done then done, failure = (job_context.commit or change.commit)(change) end
  if not done or not job_context.commit then change:close() end
  check(done, failure)
end

--- How many bytes two texts share at their beginning. Halves what is left, so each byte is compared
--- twice at most.
local function shared(one, another)
  local from, to = 0, math.min(#one, #another)
  while from < to do
    local middle = (from + to + 1) // 2
    local are_same = one:sub(from + 1, middle) == another:sub(from + 1, middle)
    if are_same then from = middle else to = middle - 1 end
  end
  return from
end

--- The lines that are other ones now, with one around them on each side, as read_file numbers them:
--- a model that does not see what it made goes on to make it again.
local function lines_now(before, after)
  local head, tail = shared(before, after), shared(before:reverse(), after:reverse())
  local first = text.count_lines(after:sub(1, head) .. "x")
  -- Where a text stands twice now, both would count the copy that was there before.
  local last_end = after:sub(1, head):find "\n[^\n]*$" or 1
  local same = math.min(tail, math.min(#before, #after) - last_end + 1)
  local last = text.count_lines(after) - text.count_lines(after:sub(#after - same + 1)) + 1
  local shown, number = {}, 0
  for _, line in lines(after) do
    number = number + 1
    if number > last + 1 or #shown == MOST_SHOWN then break end
    if number >= first - 1 then
      local kept = text.cut(text.repair(redact(line)), LONGEST_SHOWN)
      shown[#shown + 1] = ("%d\t%s\n"):format(number, kept)
    end
  end
  return table.concat(shown)
end

local function run(arguments, job_context)
  local root, place, prefix = job_context.resolve_path(arguments.path)
  check(root, place)
  local path = check(root:relative(behind_links(root, place)))
  local read, failure = root:read(path, { max_bytes = MOST_BYTES })
  local content, tolerated = changed(read, failure, prefix .. path, arguments, job_context.agent)
  put(job_context, root, path, content, read and read.mode & 511)
  local names, words = explain.names(tolerated)
  local count = arguments.old_text == "" and 1 or arguments.expected_count
  local result = {
    path = prefix .. root:relative(place), count = count, created = not read,
    tolerated = json.array(names or {}), sha256 = text.sha256(content),
  }
  local what = result.created and "created" or ("replaced %s in"):format(times(count))
  local shown = what .. " " .. result.path
  if words then shown = ("%s (%s)"):format(shown, words) end
  local is_shown = job_context.agent and read and #content <= LARGEST_SHOWN
  local now = is_shown and lines_now(read.content, content) or ""
  if now ~= "" then shown = shown .. "; now:" end
  return result, shown .. "\n" .. now
end

--- A model's call that changes nothing is answered by run, which shows what the file holds.
local function check_arguments(arguments, is_of_model)
  local old, count = arguments.old_text, arguments.expected_count
  if old == "" then
    local is_more = count and count > 1
    if is_more then return "expected_count must be 1 where old_text is empty", "expected_count" end
  elseif old == arguments.new_text and not is_of_model then
    return "new_text is the same as old_text: nothing would change", "new_text"
  end
end

return {
  name = "replace_in_file",
  summary = "Replace a text in a file of the workspace where it stands exactly expected_count times.",
  arguments = is.object {
    "path!", is.text("Relative to the workspace or absolute below it. "
      .. "A link is followed, where it stays inside.", { nul = false, minLength = 1 }),
    "old_text!", is.text("What the file holds, with enough lines around it that no other place "
      .. "fits. Empty: create the file with new_text."),
    "new_text!", is.text "Replacement text; may be empty.",
    "expected_count", is.count("Places to replace: no more, no fewer.", { minimum = 1, default = 1 }),
  },
  for_model = {
    summary = "Replace old_text in a file. Copy it from the file, without line numbers.",
    order = { "path", "old_text", "new_text", "expected_count" },
    needed = { "path", "old_text", "new_text", "expected_count" },
    descriptions = {
      old_text = "With enough lines to be found only there",
      expected_count = "How often it is there. Default 1",
    },
    called = {
      "replace", "edit", "edit_file", "str_replace", "string_replace", "search_replace",
      "search_and_replace", "replace_string_in_file", "replace_text", "file_edit",
    },
  },
  result = is.object {
    "path!", is.text "Relative to the workspace; an artifact's begins with $CYNODE_ARTIFACTS_DIR.",
    "count!", is.count("Places that were replaced.", { minimum = 1 }),
    "created!", is.flag "There was no such file before.",
    "tolerated!", {
      type = "array",
      items = is.text(nil, {
        enum = { "trailing_blanks", "line_ends", "final_newline", "indentation" },
      }),
      description = "How old_text differs from the file. new_text is written as the file is.",
    },
    "sha256!", is.text "Of the whole file, in hex.",
  },
  check = check_arguments,
  brief = true,
  run = run,
}
