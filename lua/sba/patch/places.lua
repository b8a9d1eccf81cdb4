-- SPDX-License-Identifier: Apache-2.0
-- Finds a text in a file: exactly, or with differences that models make. Then a form of both is compared: without the blanks at line ends,
-- for instance. Files and texts may have any size, so all work is linear.

local lines = require "sba.util.lines"
local lpeg = require "lpeg"
local text = require "native.text"

local P, S, Cs = lpeg.P, lpeg.S, lpeg.Cs

local places = {}

local MOST_TOLERATED <const> = 4 * 1024 * 1024 -- bytes of a file; a larger one must match exactly
local MOST_PLACES <const> = 100000 -- counted, if fewer are expected

local ascii <const> = {
  ["‘"] = "'", ["’"] = "'", ["‚"] = "'", ["‛"] = "'", ["“"] = '"', ["”"] = '"', ["„"] = '"', ["‟"] = '"',
  ["‐"] = "-", ["‑"] = "-", ["‒"] = "-", ["–"] = "-", ["—"] = "-", ["―"] = "-", ["−"] = "-",
}

local typographic = P(false)
for character, plain in pairs(ascii) do typographic = typographic + P(character) / plain end

---@class sba.form what is compared
---@field ends string characters that do not count at line ends
---@field shifts? boolean indentation does not count, if it differs by the same on all lines
---@field typographic? boolean typographic quotes and dashes count as those of ASCII
---@field of table LPeg pattern that makes the form

local function form(ends, shifts, is_typographic)
  local odd = S(ends)
  local newline = P "\n"
  local blanks = shifts and (S " \t" ^ 1 / "") ^ -1 or P(true)
  local special = odd + newline
  local piece = (odd ^ 1 * #(newline + -1)) / "" + odd ^ 1 + newline * blanks
  if is_typographic then
    piece = piece + typographic + P "\xE2"
    special = special + P "\xE2"
  end
  return { ends = ends, shifts = shifts, typographic = is_typographic, of = Cs(blanks * (piece + (1 - special) ^ 1) ^ 0) }
end

local BLANKS <const> = " \t\r"
local forms <const> = {
  form "\r", form(BLANKS), form(BLANKS, true), form(BLANKS, false, true), form(BLANKS, true, true),
}

---@class sba.place
---@field first integer its first byte in the file
---@field last integer its last byte
---@field shift? string indentation that the file has more on each line
---@field unshift? string indentation that the file has less on each line

---All places of a part. Two that overlap end the search.
---@param step integer bytes from one place to where the next may begin
local function find_all(bytes, part, step, expected)
  local found = {}
  local at = text.find(bytes, part, 1)
  while at and #found <= math.max(expected, MOST_PLACES) do
    found[#found + 1] = at
    local after = text.find(bytes, part, at + 1)
    if after and after < at + step then
      found[#found + 1], found.overlap = after, true
      return found
    end
    at = after
  end
  return found
end

--- The column in a line for a column in its form.
local function column_in(line, wanted, column)
  if wanted.shifts then return column == 1 and 1 or #text.trim_end(line, wanted.ends) + 1 end
  return column
end

--- Counts on from a known pair of columns over the characters that are shorter in the form. The next of these is kept: to search for it
--- at each column would go over a long line again and again.
local function typographic_column(line, from, column)
  while true do
    from.next = from.next or line:find("\xE2", from.at, true) or #line + 1
    if from.shown + from.next - from.at >= column then break end
    local plain = ascii[line:sub(from.next, from.next + 2)]
    from.shown = from.shown + from.next - from.at + 1
    from.at, from.next = from.next + (plain and 3 or 1), nil
  end
  return from.at + column - from.shown
end

---Turns positions in a form into positions in the file.
---@param positions integer[] ascending
local function originals(bytes, wanted, positions)
  local found, offset = {}, 0
  for _, line, _, at in lines(bytes) do
    local size = #lpeg.match(wanted.of, line)
    local from = { at = 1, shown = 1 }
    while positions[#found + 1] and positions[#found + 1] - offset <= size + 1 do
      local column = positions[#found + 1] - offset
      column = wanted.typographic and not wanted.shifts and typographic_column(line, from, column) or column_in(line, wanted, column)
      found[#found + 1] = at - 1 + column
    end
    if #found == #positions then return found end
    offset = offset + size + 1
  end
  while #found < #positions do found[#found + 1] = #bytes + 1 end
  return found
end

local function indents(bytes)
  local found = {}
  for _, line in lines(bytes) do
    local indent, rest = line:match("^([ \t]*)([^ \t\r]?)")
    found[#found + 1] = rest ~= "" and indent or false
  end
  return found
end

--- The indentation that one text has more than another, if it is the same on all lines.
local function shift_between(more, less)
  local shift
  for i, indent in ipairs(more) do
    local other = less[i]
    if indent and other then
      shift = shift or indent:sub(1, math.max(0, #indent - #other))
      if indent ~= shift .. other then return nil end
    end
  end
  return shift
end

--- Keeps the places whose indentation differs by the same on all lines.
local function shifted_alike(bytes, old, found)
  local kept, theirs = {}, indents(old)
  for _, place in ipairs(found) do
    local ours = indents(bytes:sub(place.first, place.last))
    place.shift = shift_between(ours, theirs)
    place.unshift = not place.shift and shift_between(theirs, ours) or nil
    if place.shift or place.unshift then kept[#kept + 1] = place end
  end
  return kept
end

local function find_in_form(bytes, old, wanted, expected)
  local part = lpeg.match(wanted.of, old)
  if not part:find("[^\n]") then return {} end
  local whole, size = lpeg.match(wanted.of, bytes), #part
  local ends_line = wanted.shifts or text.trim_end(old, wanted.ends) ~= old
  if ends_line and part:sub(-1) ~= "\n" then whole, part = whole .. "\n", part .. "\n" end
  if wanted.shifts then whole, part = "\n" .. whole, "\n" .. part end -- the place begins one later, where this newline is in whole
  local starts, positions, found = find_all(whole, part, size, expected), {}, {}
  for _, at in ipairs(starts) do
    positions[#positions + 1] = at
    positions[#positions + 1] = starts.overlap and at or at + size
  end
  positions = originals(bytes, wanted, positions)
  for i = 1, #positions, 2 do found[#found + 1] = { first = positions[i], last = positions[i + 1] - 1 } end
  if starts.overlap then
    found.overlap = true
  elseif wanted.shifts then
    found = shifted_alike(bytes, old, found)
  end
  return found
end

local function trailing_blanks(bytes)
  local found = {}
  for _, line in lines(bytes) do
    line = text.trim_end(line, "\r")
    found[#found + 1] = line:sub(#text.trim_end(line, " \t") + 1)
  end
  return table.concat(found, "\n")
end

--- The differences that were ignored.
local function differences(bytes, old, wanted, found)
  local has = { indentation = wanted.shifts, typography = wanted.typographic }
  for _, place in ipairs(found) do
    local there = bytes:sub(place.first, place.last)
    has.trailing_blanks = has.trailing_blanks or trailing_blanks(there) ~= trailing_blanks(old)
    has.line_ends = has.line_ends or (text.find(there, "\r\n", 1) == nil) ~= (text.find(old, "\r\n", 1) == nil)
  end
  return has
end

--- Keeps the places that begin a line.
local function beginning_lines(bytes, found)
  local kept = { overlap = found.overlap }
  for _, place in ipairs(found) do
    if place.first == 1 or bytes:byte(place.first - 1) == 10 then kept[#kept + 1] = place end
  end
  return kept
end

places.names = { "trailing_blanks", "line_ends", "final_newline", "indentation", "typography" }

---Finds the places of a text. The first way of comparing that finds as many as expected, or more, decides.
---@param bytes string the file
---@param old string not empty
---@param expected integer
---@param whole_lines? boolean only where it begins a line
---@return sba.place[] found ascending; its field overlap: these two overlap
---@return table<string, true> tolerated what had to be overlooked, of places.names
function places.find(bytes, old, expected, whole_lines)
  local exact = find_all(bytes, old, #old, expected)
  for i, at in ipairs(exact) do exact[i] = { first = at, last = at + #old - 1 } end
  if whole_lines then exact = beginning_lines(bytes, exact) end
  if exact.overlap or #exact >= expected or #bytes > MOST_TOLERATED then return exact, {} end
  for _, wanted in ipairs(forms) do
    local found = find_in_form(bytes, old, wanted, expected)
    if whole_lines then found = beginning_lines(bytes, found) end
    if found.overlap or #found >= expected then return found, differences(bytes, old, wanted, found) end
  end
  return exact, {}
end

---Makes the typographic quotes and dashes of a text plain, if another text has them.
---@param bytes string
---@param used string the other text
---@return string
function places.plain(bytes, used)
  local present = P(false)
  for character, plain in pairs(ascii) do
    if text.find(used, character, 1) then present = present + P(character) / plain end
  end
  return lpeg.match(Cs((present + 1) ^ 0), bytes)
end

return places
