-- SPDX-License-Identifier: Apache-2.0
-- What was overlooked in an edit, or why its lines do not stand in the file. The lines that
-- resemble them most are found by votes: each word that both have is one for the line where they
-- would begin.

local lines = require "sba.util.excerpt".lines
local printable = require "sba.util.printable"
local redact = require "native.secret".redact
local text = require "native.text"

local explain = {}

local MOST_BYTES <const> = 4 * 1024 * 1024 -- of the file, from its beginning
local MOST_LINES <const> = 40 -- of the text
local MOST_SHOWN <const> = 12 -- lines
local LONGEST <const> = 160 -- bytes of a line that is shown
local MOST_COMPARED <const> = 64 << 10 -- bytes of two lines
local MOST_CODES <const> = 3 -- of a character with its accents
-- Lines of the text that one word votes for.
local MOST_PLACES <const> = 4
-- The share of the text's words that must be there, or of its first line.
local LEAST_SHARE <const> = 0.4
local LEAST_ALIKE <const> = 3 -- bytes of that

-- U+0300 to U+033F: the accent of the letter before.
local COMBINING <const> = "^\xCC[\x80-\xBF]"

--- As it looks to a reader: U+00A0, U+2000 to U+200B, U+202F and U+3000 are blanks, U+00AD and
--- U+FEFF are nothing.
local function visible(line)
  if not line:find "[\x80-\xFF]" then return line end
  line = line:gsub("\xC2\xA0", " "):gsub("\xE2\x80[\x80-\x8B\xAF]", " "):gsub("\xE3\x80\x80", " ")
  return (line:gsub("\xC2\xAD", ""):gsub("\xEF\xBB\xBF", ""))
end

local function first_lines(bytes)
  local found = {}
  for _, line in lines(bytes) do
    found[#found + 1] = line
    if #found == MOST_LINES then break end
  end
  return found
end

--- The numbers of lines by their words, and how many votes there can be.
local function words_of(old)
  local words, total = {}, 0
  for number, line in ipairs(old) do
    for word in visible(line):lower():gmatch("[%w_\x80-\xFF]+") do
      local numbers = words[word] or {}
      words[word] = numbers
      if numbers[#numbers] ~= number and #numbers < MOST_PLACES then
        numbers[#numbers + 1] = number
        total = total + 1
      end
    end
  end
  return words, total
end

local function best_start(bytes, old)
  local words, total = words_of(old)
  local votes, voted = {}, {}
  local number, best = 0, nil
  for _, line in lines(bytes) do
    number = number + 1
    for word in visible(line):lower():gmatch("[%w_\x80-\xFF]+") do
      for _, own in ipairs(voted[word] ~= number and words[word] or {}) do
        local start = number - own + 1
        votes[start] = (votes[start] or 0) + 1
        if not best or votes[start] > votes[best] then best = start end
      end
      voted[word] = words[word] and number
    end
  end
  if best and votes[best] >= total * LEAST_SHARE then return best end
end

--- The line that begins most as the text's first does: its words may be written in another way.
local function alike_start(bytes, old)
  local first, wanted = nil, nil
  for i, line in ipairs(old) do
    if line:find "%S" then
      first, wanted = i, text.trim(line)
      break
    end
  end
  if not wanted or #wanted > LONGEST then return nil end
  local best, most, number = nil, math.max(LEAST_ALIKE, #wanted * LEAST_SHARE), 0
  for _, line in lines(bytes) do
    number = number + 1
    local there, same = line:match "^%s*(.*)$", 0
    while same < #wanted and there:byte(same + 1) == wanted:byte(same + 1) do same = same + 1 end
    if same >= most then best, most = number - first + 1, same + 1 end
  end
  return best
end

local function shown(line) return printable.quoted(redact(line), LONGEST) end

--- The characters at a place, an accent of its own with its letter: "U+0065 U+0301".
local function code_points(line, at)
  local names = {}
  for _, code in utf8.codes(line:sub(at), true) do
    local is_more = #names > 0 and not utf8.char(code):find(COMBINING)
    if is_more or #names == MOST_CODES then break end
    names[#names + 1] = ("U+%04X"):format(code)
  end
  return names[1] and table.concat(names, " ") or "its end"
end

--- Where two lines differ first, if a reader may not see it: "the file has U+00A0 where old_text
--- has U+0020".
local function unseen(there, wanted, name)
  if not utf8.len(there) or not utf8.len(wanted) then return "" end
  local at, most = 1, math.min(#there, MOST_COMPARED)
  while at <= most and there:byte(at) == wanted:byte(at) do at = at + 1 end
  local function begins_inside(line)
    return line:find("^[\x80-\xBF]", at) or line:find(COMBINING, at)
  end
  while at > 1 and (begins_inside(there) or begins_inside(wanted)) do at = at - 1 end
  local one, other = there:sub(at, at), wanted:sub(at, at)
  if not (one .. other):find "[^ -~]" then return "" end
  local found, sought = code_points(there, at), code_points(wanted, at)
  return ("; the file has %s where %s has %s"):format(found, name, sought)
end

local function difference(number, there, wanted, name)
  local words = ("line %d is %s where %s has %s"):format(number, shown(there), name, shown(wanted))
  return words .. unseen(there, wanted, name)
end

---@param bytes string the file
---@param wanted_text string
---@param name string of the text, for people
---@param hint? integer line to compare with where none resembles the text
---@return string? what the first line that differs, as words; nil: none does, or nothing resembles
---the text
---@return string? numbered the lines of the file; nil: nothing resembles the text
function explain.difference(bytes, wanted_text, name, hint)
  bytes = bytes:sub(1, MOST_BYTES)
  local old = first_lines(wanted_text)
  local start = best_start(bytes, old) or hint or alike_start(bytes, old)
  if not start then return nil end
  local number, listed = 0, {}
  local problem, slight = nil, nil -- slight: only blanks differ
  if start < 1 then problem = difference(1, bytes:match("^[^\n]*"), old[1], name) end
  for _, line in lines(bytes) do
    number = number + 1
    local wanted = old[number - start + 1]
    if number >= start and not wanted or #listed == MOST_SHOWN then break end
    if wanted then
      if not problem and text.trim(line) ~= text.trim(wanted) then
        problem = difference(number, line, wanted, name)
      elseif not slight and line ~= wanted then
        slight = difference(number, line, wanted, name)
      end
      if problem or #listed < MOST_SHOWN // 2 then
        local part = text.cut(text.repair(redact(line)), LONGEST)
        listed[#listed + 1] = ("%6d  %s"):format(number, part)
      end
    end
  end
  local missing = old[number - start + 2]
  if missing and not problem then
    local first = math.max(number + 1, start)
    problem = ("the file ends before line %d, where %s has %s"):format(first, name, shown(missing))
  end
  return problem or slight, table.concat(listed, "\n") .. "\n"
end

---@param overlooked table<string, true>
---@return string[]? names nil: there are none
---@return string? words "tolerated: line ends, trailing blanks"
function explain.names(overlooked)
  local names = {}
  for name in pairs(overlooked) do names[#names + 1] = name end
  if not names[1] then return nil end
  table.sort(names)
  return names, "tolerated: " .. table.concat(names, ", "):gsub("_", " ")
end

return explain
