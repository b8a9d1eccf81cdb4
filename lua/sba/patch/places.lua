-- SPDX-License-Identifier: Apache-2.0
-- Finds a text in a file: exactly; or, as models copy files, by its lines without the blanks at their ends, or at both ends. Then the lines
-- of both are joined again, so that one search finds all places. Files and texts may have any size, so all work is linear.

local lines = require "sba.util.lines"
local text = require "native.text"

local places = { names = { "trailing_blanks", "line_ends", "final_newline", "indentation" } }

local MOST_TOLERATED <const> = 4 * 1024 * 1024 -- bytes of a file; a larger one must match exactly
local MOST_PLACES <const> = 100000 -- counted, if fewer are expected

---@class sba.place
---@field first integer its first byte in the file
---@field last integer its last byte
---@field shift? string indentation that the file has more on each line
---@field unshift? string indentation that the file has less on each line
---@field tab? integer blanks that stand for each tab by which the file indents

-- What is compared of each line, and what is tolerated by that.
local forms <const> = {
  { tolerates = "line_ends", of = function(line) return text.trim_end(line, "\r") end },
  { tolerates = "trailing_blanks", of = function(line) return text.trim_end(line, " \t\r") end },
  { tolerates = "indentation", of = text.trim },
}

---All places of a part. Two that overlap end the search.
---@param step integer bytes from one place to where the next may begin
local function find_all(bytes, part, step, expected)
  local found, at = {}, text.find(bytes, part, 1)
  while at and #found <= math.max(expected, MOST_PLACES) do
    found[#found + 1] = at
    local after = text.find(bytes, part, at + 1)
    if after and after < at + step then
      found.overlap = true
      return found
    end
    at = after
  end
  return found
end

--- The lines of a text in a form, each after a newline; the number of the line that begins at a byte there; and where each is in the text.
local function in_form(bytes, form)
  local list, numbers, spans, at = {}, {}, {}, 1
  for after, line, is_whole, first in lines(bytes) do
    local shown = form.of(line)
    list[#list + 1], numbers[at] = shown, #list + 1
    spans[#list] = { first = first, last = first + #text.trim_end(line, "\r") - 1, after = after - 1, is_whole = is_whole }
    at = at + #shown + 1
  end
  return "\n" .. table.concat(list, "\n") .. "\n", numbers, spans
end

--- The indentations of the lines of two texts that are the same but for them: { of the first, of the second }.
local function indentations(there, old)
  local found, at = {}, 1
  local next_line = lines(old)
  for _, line in lines(there) do
    local other
    at, other = next_line(old, at)
    if not at then break end
    if text.trim(line) ~= "" then found[#found + 1] = { line:match("^[ \t]*"), other:match("^[ \t]*") } end
  end
  return found
end

--- The indentation that one of the texts has more than the other, if it is the same on all lines.
--- @param more integer which of the two
local function shift_of(indents, more)
  local shift
  for _, pair in ipairs(indents) do
    local deep, shallow = pair[more], pair[3 - more]
    shift = shift or deep:sub(1, math.max(0, #deep - #shallow))
    if deep ~= shift .. shallow then return nil end
  end
  return shift
end

--- How many blanks of the second text stand for a tab of the first, if it is the same on all lines.
local function tab_of(indents)
  local tab
  for _, pair in ipairs(indents) do
    local tabs, blanks = pair[1], pair[2]
    if tabs:find("[^\t]") or blanks:find("[^ ]") then return nil end
    if tabs ~= "" then tab = tab or #blanks // #tabs end
    if #blanks ~= #tabs * (tab or 0) then return nil end
  end
  return tab and tab > 0 and tab or nil
end

--- Adds to a place how its indentation differs. Returns whether that is the same on all its lines.
local function compare_indentation(place, bytes, old)
  local indents = indentations(bytes:sub(place.first, place.last), old)
  place.shift = shift_of(indents, 1)
  place.unshift = not place.shift and shift_of(indents, 2) or nil
  place.tab = not place.shift and not place.unshift and tab_of(indents) or nil
  return place.shift or place.unshift or place.tab
end

local function find_in_form(bytes, old, form, expected)
  local part, _, wanted = in_form(old, form)
  if not part:find("%S") then return {} end
  local whole, numbers, spans = in_form(bytes, form)
  local starts, ends_whole = find_all(whole, part, #part - 1, expected), wanted[#wanted].is_whole
  local found = { overlap = starts.overlap }
  for _, at in ipairs(starts) do
    local last = spans[numbers[at] + #wanted - 1]
    local place = { first = spans[numbers[at]].first, last = ends_whole and last.after or last.last }
    local is_alike = form.tolerates ~= "indentation" or compare_indentation(place, bytes, old)
    if is_alike and (last.is_whole or not ends_whole) then found[#found + 1] = place end
  end
  return found
end

--- Keeps the places that begin a line.
local function beginning_lines(bytes, found)
  local kept = { overlap = found.overlap }
  for _, place in ipairs(found) do
    if place.first == 1 or bytes:byte(place.first - 1) == 10 then kept[#kept + 1] = place end
  end
  return kept
end

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
  for _, form in ipairs(forms) do
    local found = find_in_form(bytes, old, form, expected)
    if found.overlap or #found >= expected then return found, { [form.tolerates] = true } end
  end
  return exact, {}
end

return places
