-- SPDX-License-Identifier: Apache-2.0
-- Replaces a text in the bytes of a file, if it is there exactly so many times.

local fail = require "sba.util.fail"
local lines = require "sba.util.lines"
local nearest = require "sba.patch.nearest"
local places = require "sba.patch.places"
local text = require "native.text"

local replace = {}

local MOST_NUMBERS <const> = 20 -- line numbers in a message
local MOST_NEW <const> = 64 * 1024 * 1024 -- bytes that all places get together

---@param count integer
---@return string
function replace.counted(count)
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

---@param tolerated table<string, true>
---@return string[] of places.names, in their order
function replace.names(tolerated)
  local names = {}
  for _, name in ipairs(places.names) do
    if tolerated[name] then names[#names + 1] = name end
  end
  return names
end

---"tolerated: trailing blanks, line ends"
---@param names string[]
---@return string
function replace.taken(names)
  return "tolerated: " .. table.concat(names, ", "):gsub("_", " ")
end

local function too_many(bytes, path, found, tolerated, expected)
  local names = replace.names(tolerated)
  local aside = #names > 0 and (" (%s)"):format(replace.taken(names)) or ""
  if found.overlap then
    return fail("text_ambiguous", "old_text is in %s at places that overlap%s, %s; add lines around it so that only one place fits",
      path, aside, lines_of(bytes, found))
  end
  return fail("text_ambiguous",
    "old_text is in %s %s%s, %s; expected_count is %d: add lines around it so that only the wanted places fit, or change expected_count",
    path, replace.counted(#found), aside, lines_of(bytes, found), expected)
end

--- Says so where the new text is there: the change may have been made before.
local function already(bytes, new)
  local first = text.trim(new) ~= "" and text.find(bytes, new, 1)
  return first and ("new_text is already there (%s)"):format(lines_of(bytes, { { first = first } })) or nil
end

local function too_few(bytes, path, found, arguments)
  if #found > 0 then
    return fail("text_not_found", "old_text is in %s %s (%s); expected_count is %d", path, replace.counted(#found), lines_of(bytes, found),
      arguments.expected_count)
  end
  local difference, numbered = nearest(bytes, arguments.old_text)
  local there = already(bytes, arguments.new_text)
  local why = difference and "of what resembles it " .. difference
    or not there and "no line of it resembles old_text: read the file, and copy the text from it"
  local _, failure = fail("text_not_found", "old_text is not in %s; %s%s", path, there or "", (there and why and "; " or "") .. (why or ""))
  failure.text = numbered
  return nil, failure
end

--- A line of the new text with the indentation of a place; nil: it cannot have it.
local function indented(line, place)
  if place.shift then return place.shift .. line end
  if place.unshift then return line:sub(1, #place.unshift) == place.unshift and line:sub(#place.unshift + 1) or nil end
  local indent = line:match("^[ \t]*")
  if not indent:find("[^\t]") then return line end
  if indent:find("\t", 1, true) or #indent % place.tab > 0 then return nil end
  return ("\t"):rep(#indent // place.tab) .. line:sub(#indent + 1)
end

---The text with the indentation of a place; nil: its lines cannot have it.
local function shifted(bytes, place)
  local fits = true
  local result = bytes:gsub("[^\n]+", function(line)
    if text.trim_end(line) == "" then return nil end
    local better = indented(line, place)
    fits = fits and better ~= nil
    return better
  end)
  return fits and result or nil
end

local function has_crlf_throughout(bytes)
  local first = text.find(bytes, "\n", 1)
  return first and first > 1 and bytes:byte(first - 1) == 13 and not bytes:find("[^\r]\n")
end

--- The new text with the line ends of the file.
local function with_line_ends(bytes, old, new)
  if text.find(old, "\r\n", 1) then
    return text.find(bytes, "\r\n", 1) and new or new:gsub("\r\n", "\n")
  elseif text.find(new, "\n", 1) and not text.find(new, "\r\n", 1) and has_crlf_throughout(bytes) then
    return new:gsub("\n", "\r\n")
  end
  return new
end

---@return string? content of the file
---@return native.failure|table<string, true> tolerated or failure
local function replaced_in_lines(bytes, path, arguments)
  local old, expected = arguments.old_text, arguments.expected_count
  local found, tolerated = places.find(bytes, old, expected, arguments.whole_lines)
  if found.overlap or #found > expected then return too_many(bytes, path, found, tolerated, expected) end
  if #found < expected then return too_few(bytes, path, found, arguments) end
  local new = with_line_ends(bytes, old, arguments.new_text)
  if #found * #new > MOST_NEW then return fail("too_large", "the change would write more than %d MiB into %s", MOST_NEW >> 20, path) end
  tolerated.line_ends = tolerated.line_ends or new ~= arguments.new_text
  local parts, from = {}, 1
  for _, place in ipairs(found) do
    local fits = new
    if tolerated.indentation then fits = shifted(new, place) end
    if not fits then
      return fail("text_not_found", "old_text is in %s at %s with %s: indent both as the file is", path, lines_of(bytes, { place }),
        place.tab and "tabs, which new_text cannot be given" or "less indentation, which new_text cannot lose")
    end
    parts[#parts + 1] = bytes:sub(from, place.first - 1)
    parts[#parts + 1] = fits
    from = place.last + 1
  end
  parts[#parts + 1] = bytes:sub(from)
  return table.concat(parts), tolerated
end

---Replaces the text. If it ends with a newline, it may be at the end of a file that does not.
---@param bytes string the file
---@param path string as messages name it
---@param arguments { old_text: string, new_text: string, expected_count: integer, whole_lines?: boolean } old_text is not empty;
---whole_lines: it begins a line
---@return string? content
---@return native.failure|table<string, true> tolerated what of old_text is not as the file; or the failure: text_ambiguous, text_not_found
function replace.apply(bytes, path, arguments)
  local content, more = replaced_in_lines(bytes, path, arguments)
  if content or more.code ~= "text_not_found" or bytes:sub(-1) == "\n" or arguments.old_text:sub(-1) ~= "\n" then return content, more end
  local ended, tolerated = replaced_in_lines(bytes .. "\n", path, arguments)
  if not ended then return nil, more end
  tolerated.final_newline = true
  return arguments.new_text:sub(-1) == "\n" and ended:sub(1, -2) or ended, tolerated
end

return replace
