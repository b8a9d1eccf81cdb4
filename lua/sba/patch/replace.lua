-- SPDX-License-Identifier: Apache-2.0
-- Replaces a text in the bytes of a file, if it is there exactly so many times. One that is to be there once is also taken as a hunk of a
-- diff without line numbers: then blanks, line ends and indentation may differ.

local edit = require "native.edit"
local explain = require "sba.patch.explain"
local fail = require "sba.util.fail"
local text = require "native.text"

local replace = {}

local MOST_NUMBERS <const> = 20 -- line numbers in a message
local MOST_NEW <const> = 64 * 1024 * 1024 -- bytes that all places get together
local MOST_PLACES <const> = 100000 -- counted, if fewer are expected
local MOST_TOLERATED <const> = 4 * 1024 * 1024 -- bytes of a file; a larger one must match exactly

---@param count integer
---@return string
function replace.counted(count) return count == 1 and "once" or count .. " times" end

--- "line 3", "lines 3, 7, 9 and 12 more"
local function lines_of(bytes, found)
  local numbers, number, from = {}, 1, 1
  for i = 1, math.min(#found, MOST_NUMBERS) do
    local _, newlines = bytes:sub(from, found[i] - 1):gsub("\n", "")
    number, from = number + newlines, found[i]
    numbers[i] = number
  end
  local more = #found > #numbers and (" and %d more"):format(#found - #numbers) or ""
  return (#found == 1 and "line " or "lines ") .. table.concat(numbers, ", ") .. more
end

--- All places of a text. Two that overlap end the search.
local function find_all(bytes, old, expected)
  local found = {}
  local at = text.find(bytes, old, 1)
  while at and #found <= math.max(expected, MOST_PLACES) do
    found[#found + 1] = at
    local after = text.find(bytes, old, at + 1)
    found.overlap = after and after < at + #old
    if found.overlap then break end
    at = after
  end
  return found
end

local function wrong_count(bytes, path, found, expected)
  local is_more = found.overlap or #found > expected
  return fail(is_more and "text_ambiguous" or "text_not_found", "old_text is in %s %s (%s%s); expected_count is %d%s", path,
    replace.counted(#found), lines_of(bytes, found), found.overlap and ", overlapping" or "", expected,
    is_more and ": add lines around it so that only the wanted places fit, or change expected_count" or "")
end

local function not_found(bytes, path, arguments)
  local difference, numbered = explain.difference(bytes, arguments.old_text, "old_text")
  local first = text.trim(arguments.new_text) ~= "" and text.find(bytes, arguments.new_text, 1)
  local there = first and ("new_text is already there (%s)"):format(lines_of(bytes, { first })) or nil
  local why = difference and "of what resembles it " .. difference or numbered and "its first lines are there"
    or not there and "no line of it resembles old_text: read the file, and copy the text from it"
  local _, failure = fail("text_not_found", "old_text is not in %s; %s%s", path, there or "", (there and why and "; " or "") .. (why or ""))
  failure.text = numbered
  return nil, failure
end

local function has_crlf_throughout(bytes)
  local first = text.find(bytes, "\n", 1)
  return first and first > 1 and bytes:byte(first - 1) == 13 and not bytes:find("[^\r]\n")
end

local function replaced_exactly(bytes, path, arguments, found)
  local new, tolerated = arguments.new_text, {}
  if text.find(new, "\n", 1) and not text.find(arguments.old_text .. new, "\r\n", 1) and has_crlf_throughout(bytes) then
    new, tolerated.line_ends = new:gsub("\n", "\r\n"), true
  end
  if #found * #new > MOST_NEW then return fail("too_large", "the change would write more than %d MiB into %s", MOST_NEW >> 20, path) end
  local parts, from = {}, 1
  for _, at in ipairs(found) do
    parts[#parts + 1] = bytes:sub(from, at - 1)
    parts[#parts + 1] = new
    from = at + #arguments.old_text
  end
  parts[#parts + 1] = bytes:sub(from)
  return table.concat(parts), tolerated
end

--- The lines of a text, each with a mark.
local function marked(part, mark)
  if part ~= "" and part:sub(-1) ~= "\n" then part = part .. "\n" end
  return part == "" and "" or mark .. part:sub(1, -2):gsub("\n", "\n" .. mark) .. "\n"
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
    return fail("text_ambiguous",
      "old_text is in %s but for blanks or indentation, at lines %d and %d; add lines around it so that only one place fits", path,
      report.line, report.other)
  elseif report.code == "patch_mismatch" and report.line == 0 then
    return fail("text_not_found", "old_text is not in %s as it is: %s", path, report.message)
  elseif report.hunk then
    return not_found(bytes, path, arguments)
  end
  return nil, report
end

---@param bytes string the file
---@param path string as messages name it
---@param arguments { old_text: string, new_text: string, expected_count: integer } old_text is not empty
---@return string? content
---@return native.failure|table<string, true> tolerated how old_text differs from the file; or the failure: text_ambiguous, text_not_found
function replace.apply(bytes, path, arguments)
  local old, expected = arguments.old_text, arguments.expected_count
  local found = find_all(bytes, old, expected)
  if #found == expected and not found.overlap then return replaced_exactly(bytes, path, arguments, found) end
  if #found > 0 then return wrong_count(bytes, path, found, expected) end
  if expected > 1 or #bytes > MOST_TOLERATED or not old:find("%S") then return not_found(bytes, path, arguments) end
  return replaced_loosely(bytes, path, arguments)
end

return replace
