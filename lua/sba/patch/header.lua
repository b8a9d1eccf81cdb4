-- SPDX-License-Identifier: Apache-2.0
-- Reads what a diff says of a file before its hunks: names, dates, modes, git's lines. Lines come without their end.

local lpeg = require "lpeg"
local text = require "native.text"

local P, R, S, C, Cp, Cs = lpeg.P, lpeg.R, lpeg.S, lpeg.C, lpeg.Cp, lpeg.Cs

local header = {}

local NULL <const> = "/dev/null"
local LONGEST <const> = 16 << 10 -- bytes of a name
local LONGEST_DATE <const> = 48
local NO_NAME <const> = "no file name can be read here (empty, too long, with a NUL, or its quotes are wrong)"
header.NO_NAME = NO_NAME

local letters = { a = "\a", b = "\b", t = "\t", n = "\n", v = "\v", f = "\f", r = "\r", ['"'] = '"', ["\\"] = "\\" }
local octal = C(R "03" * R "07" * R "07") / function(digits) return string.char(tonumber(digits, 8)) end
local escape = P "\\" / "" * (S 'abtnvfr"\\' / letters + octal)
local quoted = P '"' * Cs((escape + (1 - S '"\\')) ^ 1) * '"' * Cp()

local function usable(name) return name and name ~= "" and #name <= LONGEST and not name:find("\0", 1, true) and name or nil end

--- A name that is quoted, or all of the text. nil: it is none.
local function whole(written)
  if written:sub(1, 1) ~= '"' then return usable(written) end
  local name, after = lpeg.match(quoted, written)
  return after == #written + 1 and usable(name) or nil
end
header.name = whole

local DATE <const> = "()[ \t]+(%d%d%d%d%-%d%d%-%d%d) %d%d:%d%d:(%d%d)%.?%d* ?[+-]?%d?%d?:?%d?%d?$"
local epoch <const> = { ["1970-01-01"] = true, ["1969-12-31"] = true } -- in any zone

--- The name after "--- " or "+++ ": quoted, or what stands before a date or a tab.
---@return string? name, boolean is_absent the date stands for a file that is not there: the epoch
local function dated(written)
  if written:sub(1, 1) == '"' then return usable((lpeg.match(quoted, written))), false end
  local tail = math.max(1, #written - LONGEST_DATE)
  local at, day, second = written:sub(tail):match(DATE) -- bounded: LONGEST_DATE
  if not at then return usable(written:match "^[^\t]*"), false end
  return usable(text.trim_end(written:sub(1, tail + at - 2))), second == "00" and epoch[day] or false
end

--- Where the two names after "diff --git " part: at a quote, at /dev/null, where they are the same below their first directory, or in the
--- middle. From blank to blank the first name grows and the second shrinks, so there they have the same size at most once.
local function split(written)
  if written:sub(1, 1) == '"' then
    local _, after = lpeg.match(quoted, written)
    return after
  end
  local before_quote = written:find(' "', 1, true)
  if before_quote then return before_quote end
  if written:sub(1, #NULL + 1) == NULL .. " " then return #NULL + 1 end
  if written:sub(-#NULL - 1) == " " .. NULL then return #written - #NULL end
  local slash = written:find("/", 1, true)
  local other = slash
  for blank in written:gmatch "() " do
    if other and other < blank then other = written:find("/", blank, true) end
    if not other then break end
    if blank - slash == #written - other + 1 and written:sub(slash, blank - 1) == written:sub(other) then return blank end
  end
  local half = (#written + 1) // 2
  return written:sub(1, half - 1) == written:sub(half + 1) and half or nil
end

--- Whether two names are the same but for their first directory.
local function is_same(one, other) return one == other or one:find("/", 1, true) and one:match("/.*") == other:match("/.*") end

local function both_names(file, written)
  local at = split(written)
  local old, new = at and whole(written:sub(1, at - 1)), at and written:sub(at, at) == " " and whole(written:sub(at + 1))
  if not old or not new then return end
  file.old_path, file.new_path = old, new
  if old ~= NULL and new ~= NULL and is_same(old, new) then file.prefix = old ~= new end
end

--- Reads "--- a/x" or "+++ b/x". Below "diff --git" it must be the name that stands there.
local function name_of_side(side, plain_side, absent)
  return function(file, written)
    local name, is_epoch = dated(written)
    local plain = file[plain_side]
    if not name then return NO_NAME end
    if file.is_plain then
      file[side], file.action = name, is_epoch and absent or file.action
      return
    end
    local agrees = not plain
    if name ~= NULL then
      agrees = file.action ~= absent and (not file[side] or is_same(file[side], name))
        and (not plain or ("/" .. name):sub(-#plain - 1) == "/" .. plain)
    end
    if not agrees then return "this name is not the one that the lines above it say" end
    file[side] = name ~= NULL and file[side] or name
  end
end

local function plain_name(side, action)
  return function(file, written)
    file.action, file[side] = action, whole(written)
    return not file[side] and NO_NAME or nil
  end
end

local function mode(side, action)
  return function(file, written)
    file.action = action or file.action
    local value = written:find "^[0-7][0-7][0-7][0-7][0-7][0-7]$" and tonumber(written, 8) or 0
    if value == 57344 then return "mode 160000 is a submodule, which a patch of files cannot change" end
    if value & ~511 ~= 32768 and value ~= 40960 then return "a mode must be 100644, 100755 or the like, or 120000 (a symbolic link)" end
    file[side] = value
  end
end

--- Reads "1234567..89abcde 100644": whether the old content is empty, and the mode, if both sides have the same. The hash of what is empty
--- is e69de29..., of what is absent zeros.
local function index(file, written)
  local hash, blank = written:match "^[^.]*", written:find(" ", 1, true)
  file.not_empty = not hash:find "^0*$" and hash:sub(1, 7) ~= "e69de29"
  if blank and file.action ~= "deleted" then return mode "old_mode"(file, written:sub(blank + 1)) end
end

local lines_of_git = {
  ["diff --git "] = both_names, ["index "] = index,
  ["--- "] = name_of_side("old_path", "from", "created"), ["+++ "] = name_of_side("new_path", "to", "deleted"),
  ["old mode "] = mode "old_mode", ["new mode "] = mode "new_mode", ["new file mode "] = mode("new_mode", "created"),
  ["deleted file mode "] = mode("old_mode", "deleted"),
  ["rename from "] = plain_name("from", "renamed"), ["rename to "] = plain_name("to", "renamed"),
  ["copy from "] = plain_name("from", "copied"), ["copy to "] = plain_name("to", "copied"),
  ["similarity index "] = function() end, ["dissimilarity index "] = function() end,
}

local start = P(false)
for beginning in pairs(lines_of_git) do start = start + beginning end
header.known = start - "diff --git " -- the beginning of a line of git's
local start_of = C(start)

---Reads a line of git's.
---@param file sba.patch.file
---@param line string
---@return string? mistake
function header.read(file, line)
  local beginning = lpeg.match(start_of, line)
  return lines_of_git[beginning](file, line:sub(#beginning + 1))
end

---Makes one sense of all lines of a header.
---@param file sba.patch.file
---@return string? mistake
function header.settle(file)
  local is_moved = file.action == "renamed" or file.action == "copied"
  if is_moved ~= (file.from ~= nil) or is_moved ~= (file.to ~= nil) then
    return file.from and file.to and "the header above says two things about the file that exclude each other"
      or "the header above says only one of the two names"
  elseif is_moved then
    return nil
  end
  if file.old_path == NULL then file.old_path, file.action = nil, "created" end
  if file.new_path == NULL then file.new_path, file.action = nil, "deleted" end
  local is_created, is_deleted = file.action == "created", file.action == "deleted"
  if is_created and not file.is_plain then file.old_path = nil end
  if is_deleted and not file.is_plain then file.new_path = nil end
  local known = file.is_plain and (file.old_path or file.new_path) or (is_created or file.old_path) and (is_deleted or file.new_path)
  return not known and "the header above does not say which file it is about" or nil
end

return header
