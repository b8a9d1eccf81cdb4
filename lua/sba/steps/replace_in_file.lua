-- SPDX-License-Identifier: Apache-2.0
-- The step replace_in_file: replaces a text in a file of the workspace where it stands exactly so many times, atomically.

local json = require "sba.util.json"
local lines = require "sba.util.lines"
local nearest = require "sba.patch.nearest"
local places = require "sba.patch.places"
local text = require "native.text"

local MOST_BYTES <const> = 1 << 30 -- of the file
local MOST_NUMBERS <const> = 20 -- lines that a message lists
local MOST_LINKS <const> = 40 -- as the kernel

local function fail(code, message, ...)
  return nil, { code = code, message = message:format(...) }
end

--- The file that a path means: links are followed, for a transaction replaces them.
local function behind_links(directory, path)
  for _ = 1, MOST_LINKS do
    local stat = directory:stat(path)
    if not stat or stat.type ~= "symlink" then break end
    path = stat.target:sub(1, 1) == "/" and stat.target or (path:match("^(.*/)") or "") .. stat.target
  end
  return path
end

local function counted(count)
  return count == 1 and "once" or count .. " times"
end

--- "line 3", "lines 3, 7, 9 and 12 more"
local function lines_of(bytes, found)
  local numbers, number = {}, 0
  for after in lines(bytes) do
    number = number + 1
    while #numbers < MOST_NUMBERS and found[#numbers + 1] and found[#numbers + 1].first < after do numbers[#numbers + 1] = number end
    if #numbers == MOST_NUMBERS or #numbers == #found then break end
  end
  local more = #found > #numbers and (" and %d more"):format(#found - #numbers) or ""
  return (#found == 1 and "line " or "lines ") .. table.concat(numbers, ", ") .. more
end

local function names_of(tolerated)
  local names = {}
  for _, name in ipairs(places.names) do
    if tolerated[name] then names[#names + 1] = name end
  end
  return names
end

--- "; tolerated: line ends"
local function taken(tolerated)
  local names = table.concat(names_of(tolerated), ", "):gsub("_", " ")
  return names ~= "" and "tolerated: " .. names or nil
end

local function too_many(bytes, path, found, tolerated, expected)
  local aside = taken(tolerated)
  aside = aside and (" (%s)"):format(aside) or ""
  if found.overlap then
    return fail("text_ambiguous", "old_text is in %s at places that overlap%s, %s; add lines around it so that only one place fits",
      path, aside, lines_of(bytes, found))
  end
  return fail("text_ambiguous",
    "old_text is in %s %s%s, %s; expected_count is %d: add lines around it so that only the wanted places fit, or change expected_count",
    path, counted(#found), aside, lines_of(bytes, found), expected)
end

local function too_few(bytes, path, found, arguments)
  if #found > 0 then
    return fail("text_not_found", "old_text is in %s %s (%s); expected_count is %d", path, counted(#found), lines_of(bytes, found),
      arguments.expected_count)
  end
  local difference, numbered = nearest(bytes, arguments.old_text)
  local _, failure = fail("text_not_found", "old_text is not in %s; %s", path, difference and "of what resembles it " .. difference
    or "no line of it resembles old_text: read the file, and copy the text from it")
  failure.text = numbered
  return nil, failure
end

---A text with the indentation of a place; nil: it cannot have it.
local function shifted(bytes, place)
  local kept = true
  local result = bytes:gsub("[^\n]+", function(line)
    if text.trim_end(line) == "" then return nil end
    if place.shift then return place.shift .. line end
    if line:sub(1, #place.unshift) ~= place.unshift then kept = false end
    return line:sub(#place.unshift + 1)
  end)
  return kept and result or nil
end

local function has_crlf_throughout(bytes)
  local first = text.find(bytes, "\n", 1)
  return first and first > 1 and bytes:byte(first - 1) == 13 and not bytes:find("[^\r]\n")
end

--- What takes the old text's place, with the line ends of the file.
local function with_line_ends(bytes, old, new)
  if text.find(old, "\r\n", 1) then
    return text.find(bytes, "\r\n", 1) and new or new:gsub("\r\n", "\n")
  elseif text.find(new, "\n", 1) and not text.find(new, "\r\n", 1) and has_crlf_throughout(bytes) then
    return new:gsub("\n", "\r\n")
  end
  return new
end

--- What takes the place of the old text at one place, written as the file is there.
local function fitted(bytes, arguments, place, tolerated, new)
  if tolerated.indentation then new = shifted(new, place) end
  if new and tolerated.typography then
    local there = bytes:sub(place.first, place.last)
    if places.plain(there, there) == there then new = places.plain(new, arguments.old_text) end
  end
  return new
end

---@return string? content of the file
---@return native.failure|table<string, true> tolerated or failure
local function replaced_in_lines(bytes, path, arguments)
  local old, expected = arguments.old_text, arguments.expected_count
  local found, tolerated = places.find(bytes, old, expected)
  if found.overlap or #found > expected then return too_many(bytes, path, found, tolerated, expected) end
  if #found < expected then return too_few(bytes, path, found, arguments) end
  local new = with_line_ends(bytes, old, arguments.new_text)
  tolerated.line_ends = tolerated.line_ends or new ~= arguments.new_text
  local parts, from = {}, 1
  for _, place in ipairs(found) do
    local fits = fitted(bytes, arguments, place, tolerated, new)
    if not fits then
      return fail("text_not_found", "old_text is in %s at %s with less indentation, which new_text cannot lose: indent both as the file is",
        path, lines_of(bytes, { place }))
    end
    parts[#parts + 1] = bytes:sub(from, place.first - 1)
    parts[#parts + 1] = fits
    from = place.last + 1
  end
  parts[#parts + 1] = bytes:sub(from)
  return table.concat(parts), tolerated
end

--- As replaced_in_lines; an old text that ends its last line may be at the end of a file that does not.
local function replaced(bytes, path, arguments)
  local content, more = replaced_in_lines(bytes, path, arguments)
  if content or more.code ~= "text_not_found" or bytes:sub(-1) == "\n" or arguments.old_text:sub(-1) ~= "\n" then return content, more end
  local ended, tolerated = replaced_in_lines(bytes .. "\n", path, arguments)
  if not ended then return nil, more end
  tolerated.final_newline = true
  return arguments.new_text:sub(-1) == "\n" and ended:sub(1, -2) or ended, tolerated
end

--- What the file is to hold.
local function changed(read, failure, path, arguments)
  local is_empty = arguments.old_text == ""
  if not read then
    if is_empty and failure.code == "not_found" then return arguments.new_text, {} end
    return nil, failure
  end
  if read.truncated then return fail("too_large", "%s is larger than %d MiB", path, MOST_BYTES >> 20) end
  if is_empty and read.size_bytes == 0 then return arguments.new_text, {} end
  if is_empty then
    return fail("already_exists", "%s is there already, and old_text is empty: name the text to replace, or append with write_file", path)
  end
  return replaced(read.content, path, arguments)
end

--- Writes the file so that --resume undoes it where the runner dies before the step has ended: an edit is not made twice.
local function write(job_context, root, path, content)
  local transaction <close> = root:transaction()
  local good, failure = transaction:write(path, content)
  if not good then return nil, failure end
  if job_context.commit then return job_context.commit(transaction, root) end
  return transaction:commit()
end

---@param arguments { path: string, old_text: string, new_text: string, expected_count: integer }
---@param job_context sba.job_context
---@return table? result
---@return string|native.failure text or failure
local function run(arguments, job_context)
  local root, place, prefix = job_context.place(arguments.path)
  if not root then return nil, place end
  local path, failure = root:relative(behind_links(root, place))
  if not path then return nil, failure end
  local read
  read, failure = root:read(path, { max_bytes = MOST_BYTES })
  local content, tolerated = changed(read, failure, prefix .. path, arguments)
  if not content then return nil, tolerated end
  local good
  good, failure = write(job_context, root, path, content)
  if not good then return nil, failure end
  local names, count = names_of(tolerated), arguments.old_text == "" and 1 or arguments.expected_count
  local note = #names > 0 and (" (%s)"):format(taken(tolerated)) or ""
  local result = {
    path = prefix .. root:relative(place), count = count, created = not read,
    tolerated = json.array(names), sha256 = text.sha256(content),
  }
  return result, ("%s %s%s\n"):format(read and ("replaced %s in"):format(counted(count)) or "created", result.path, note)
end

local function check(arguments)
  local old, count = arguments.old_text, arguments.expected_count
  if old ~= "" and old == arguments.new_text then return "new_text is the same as old_text: nothing would change", "new_text" end
  if old == "" and count and count > 1 then return "expected_count must be 1 where old_text is empty", "expected_count" end
end

return {
  name = "replace_in_file",
  summary = "Replace a text in a file of the workspace where it stands exactly expected_count times.",
  arguments = {
    type = "object",
    required = { "path", "old_text", "new_text" },
    order = { "path", "old_text", "new_text", "expected_count" },
    additionalProperties = false,
    properties = {
      path = {
        type = "string", nul = false, minLength = 1,
        description = "Relative to the workspace or absolute below it. A link is followed, where it stays inside.",
      },
      old_text = {
        type = "string",
        description = "What the file holds, with enough lines around it that no other place fits. Empty: create the file with new_text.",
      },
      new_text = { type = "string", description = "What takes its place; may be empty." },
      expected_count = { type = "integer", minimum = 1, default = 1, description = "Places to replace: no more, no fewer." },
    },
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
  result = {
    type = "object",
    required = { "path", "count", "created", "tolerated", "sha256" },
    order = { "path", "count", "created", "tolerated", "sha256" },
    additionalProperties = false,
    properties = {
      path = { type = "string", description = "Relative to the workspace; an artifact's begins with $CYNODE_ARTIFACTS_DIR." },
      count = { type = "integer", minimum = 1, description = "Places that were replaced." },
      created = { type = "boolean", description = "There was no such file before." },
      tolerated = {
        type = "array", items = { type = "string", enum = places.names },
        description = "How old_text differs from the file. new_text is written as the file is.",
      },
      sha256 = { type = "string", description = "Of the whole file, in hex." },
    },
  },
  check = check,
  brief = true,
  run = run,
}
