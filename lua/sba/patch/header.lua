-- SPDX-License-Identifier: Apache-2.0
-- Reads what a diff says of a file before its hunks, and finds the file of the workspace that it
-- means.

local lazy = require "sba.util.lazy"
local lpeg = require "lpeg"
local raise = require "sba.util.fail".raise
local text = require "native.text"

local dates = lazy "sba.patch.dates"

local P, R, S = lpeg.P, lpeg.R, lpeg.S
local C, Cp, Cs = lpeg.C, lpeg.Cp, lpeg.Cs

local header = {}

local NULL <const> = "/dev/null"
local LONGEST <const> = 16 << 10 -- bytes of a name
local LONGEST_DATE <const> = 80
local NO_NAME <const> = "no file name can be read here (empty, too long, with a NUL, or its quotes are wrong)"
header.NO_NAME = NO_NAME

local letters = {
  a = "\a", b = "\b", t = "\t", n = "\n", v = "\v", f = "\f", r = "\r", ['"'] = '"', ["\\"] = "\\",
}
local function byte_of(digits) return string.char(tonumber(digits, 8)) end
local octal = R "03" * R "07" * R "07" / byte_of
local escape = P "\\" / "" * (S 'abtnvfr"\\' / letters + octal)
local quoted = P '"' * Cs((escape + (1 - S '"\\')) ^ 1) * '"' * Cp()

local function usable(name)
  if not name or name == "" or #name > LONGEST or name:find("\0", 1, true) then return nil end
  return name
end

---@param written string
---@return string? name nil: it cannot be one
function header.name(written)
  if written:sub(1, 1) ~= '"' then return usable(written) end
  local name, after = lpeg.match(quoted, written)
  if after == #written + 1 then return usable(name) end
end

--- The name after "--- " or "+++ ", which ends at a date or a tab; and whether the date is the
--- epoch.
local function dated(written)
  if written:sub(1, 1) == '"' then return usable((lpeg.match(quoted, written))), false end
  local from = math.max(1, #written - LONGEST_DATE)
  for at, after in written:sub(from):gmatch "()[ \t]+()" do
    local is_date, is_epoch = dates.at(written, from + after - 1)
    if is_date and from + at > 2 then
      local name = text.trim_end(written:sub(1, from + at - 2)) -- it may hold a tab
      return usable(name), is_epoch
    end
  end
  return usable(written:match "^[^\t]*"), false
end

--- Where the two names after "diff --git " part: at a quote, at /dev/null, where they are the same
--- below their first directory, or in the middle. From blank to blank the first name grows and the
--- second shrinks: they have the same size at most once.
local function split(written)
  if written:sub(1, 1) == '"' then return select(2, lpeg.match(quoted, written)) end
  local before_quote = written:find(' "', 1, true)
  if before_quote then return before_quote end
  if written:sub(1, #NULL + 1) == NULL .. " " then return #NULL + 1 end
  if written:sub(-#NULL - 1) == " " .. NULL then return #written - #NULL end
  local slash = written:find("/", 1, true)
  local other = slash
  for blank in written:gmatch "() " do
    if other and other < blank then other = written:find("/", blank, true) end
    if not other then break end
    local is_half = blank - slash == #written - other + 1
    if is_half and written:sub(slash, blank - 1) == written:sub(other) then return blank end
  end
  local half = (#written + 1) // 2
  if written:sub(1, half - 1) == written:sub(half + 1) then return half end
end

local function same_below(one, other)
  return one == other or one:find("/", 1, true) ~= nil and one:match("/.*") == other:match("/.*")
end

local function both_names(file, written)
  local at = split(written)
  if not at or written:sub(at, at) ~= " " then return end
  local old, new = header.name(written:sub(1, at - 1)), header.name(written:sub(at + 1))
  if not old or not new then return end
  file.old_path, file.new_path = old, new
  if old ~= NULL and new ~= NULL and same_below(old, new) then file.prefix = old ~= new end
end

--- Below "diff --git" it must be the name that stands there.
local function name_of_side(side, plain_side, absent)
  return function(file, written)
    local name, is_absent = dated(written)
    if not name then return NO_NAME end
    if file.is_plain then
      file[side], file.action = name, is_absent and absent or file.action
      return
    end
    -- A name may end as a date does: the line "diff --git" tells.
    local whole = usable(written:match "^[^\t]*")
    if file[side] and whole and same_below(file[side], whole) then name = whole end
    local plain = file[plain_side]
    local agrees = not plain
    if name ~= NULL then
      -- svn names a file on the side where it is not, too.
      local may_stand = file.action ~= absent or written:find("(nonexistent)", 1, true)
      agrees = may_stand and (not file[side] or same_below(file[side], name))
        and (not plain or ("/" .. name):sub(-#plain - 1) == "/" .. plain)
    end
    if not agrees then return "this name is not the one that the lines above it say" end
    file[side] = name ~= NULL and file[side] or name
  end
end

local function plain_name(side, action)
  return function(file, written)
    file.action, file[side] = action, header.name(written)
    if not file[side] then return NO_NAME end
  end
end

local function mode(side, action)
  return function(file, written)
    file.action = action or file.action
    written = written:gsub("^10([0-7][0-7][0-7])$", "100%1") -- of svn diff --git
    if written == "160000" then
      return "mode 160000 is a submodule, which a patch of files cannot change"
    end
    if not written:find "^100[0-7][0-7][0-7]$" and written ~= "120000" then
      return "a mode must be 100644, 100755 or the like, or 120000 (a symbolic link)"
    end
    file[side] = tonumber(written, 8)
  end
end

--- Reads "1234567..89abcde 100644": whether the old content is empty (hash e69de29...) or absent
--- (zeros), and the mode of both sides.
local function index(file, written)
  local hash, blank = written:match "^[^.]*", written:find(" ", 1, true)
  file.not_empty = not hash:find "^0*$" and hash:sub(1, 7) ~= "e69de29"
  if blank and file.action ~= "deleted" then
    return mode "old_mode"(file, written:sub(blank + 1))
  end
end

local lines_of_git = {
  ["diff --git "] = both_names, ["index "] = index,
  ["--- "] = name_of_side("old_path", "from", "created"),
  ["+++ "] = name_of_side("new_path", "to", "deleted"),
  ["old mode "] = mode "old_mode", ["new mode "] = mode "new_mode",
  ["new file mode "] = mode("new_mode", "created"),
  ["deleted file mode "] = mode("old_mode", "deleted"),
  ["rename from "] = plain_name("from", "renamed"), ["rename to "] = plain_name("to", "renamed"),
  ["copy from "] = plain_name("from", "copied"), ["copy to "] = plain_name("to", "copied"),
  ["similarity index "] = function() end, ["dissimilarity index "] = function() end,
}

local start = P(false)
for beginning in pairs(lines_of_git) do start = start + beginning end
-- A pattern: the beginning of a line that header.read reads.
header.known = start - "diff --git "

local start_of = C(start)

---@param file sba.patch.file
---@param line string without its end
---@return string? mistake
function header.read(file, line)
  local beginning = lpeg.match(start_of, line)
  return lines_of_git[beginning](file, line:sub(#beginning + 1))
end

---Checks that all lines of a header make one sense.
---@param file sba.patch.file
---@return string? mistake
function header.settle(file)
  local is_moved = file.action == "renamed" or file.action == "copied"
  if is_moved ~= (file.from ~= nil) or is_moved ~= (file.to ~= nil) then
    if not (file.from and file.to) then return "the header above says only one of the two names" end
    return "the header above says two things about the file that exclude each other"
  elseif is_moved then
    return nil
  end
  if file.old_path == NULL then file.old_path, file.action = nil, "created" end
  if file.new_path == NULL then file.new_path, file.action = nil, "deleted" end
  local is_created, is_deleted = file.action == "created", file.action == "deleted"
  local is_known = file.old_path or file.new_path
  if not file.is_plain then
    if is_created then file.old_path = nil end
    if is_deleted then file.new_path = nil end
    local lacks_old = not is_created and not file.old_path
    local lacks_new = not is_deleted and not file.new_path
    is_known = not lacks_old and not lacks_new
  end
  if not is_known then return "the header above does not say which file it is about" end
end

-- How many leading directories to strip from names. Those of "rename from" and the like, and of
-- "*** Begin Patch", have no prefix: one less than the step's argument says, or none. Else, without
-- that argument:
--   two names that differ in the first directory alone (a/x and b/x, old/x and new/x): one,
--   whatever the workspace has;
--   the same name twice: none, unless only the name without its first directory is there;
--   one name alone (the other is /dev/null), if no "diff --git" line says that it has no prefix:
--   one if its first directory is a, b or one that the pairs of this diff lose, unless only the name
--   with it is there; else none.

--- The name without count leading directories; nil: it has no more than that.
local function strip(name, count)
  for _ = 1, count do
    name = name:match("^[^/]*/+(.+)$")
    if not name then return nil end
  end
  return name
end

local function first_directory(name) return name:match("^([^/]*)/") end

local function is_prefixed_pair(old, new)
  local below = old and new and strip(old, 1)
  return below and below == strip(new, 1) and first_directory(old) ~= first_directory(new)
end

---First directories that belong to no name: a, b, and those that pairs of names show. Notes the
---pairs.
---@param files sba.patch.file[]
---@return table<string, true>
function header.prefixes(files)
  local prefixes = { a = true, b = true }
  for _, file in ipairs(files) do
    local old, new = file.old_path, file.new_path
    if is_prefixed_pair(old, new) then
      file.prefix = true
      prefixes[first_directory(old)], prefixes[first_directory(new)] = true, true
    end
  end
  return prefixes
end

local function found_strip(file, prefixes, exists)
  local old, new = file.old_path, file.new_path
  local one = old or new
  if one:sub(1, 1) == "/" then return 0 end
  if file.prefix then return 1 end
  if not old or not new then
    local below = strip(one, 1)
    if not below or file.prefix == false or not prefixes[first_directory(one)] then return 0 end
    local is_whole = not exists(below) and exists(one)
    return is_whole and 0 or 1
  end
  local old_below, new_below = strip(old, 1), strip(new, 1)
  if old_below and not exists(old) and exists(old_below) then return 1 end
  if new_below and not exists(new) and exists(new_below) then return 1 end
  if not old_below or not new_below or exists(old) or exists(new) then return 0 end
  return first_directory(old) == first_directory(new) and 0 or 1
end

--- Which of two names a plain diff means: the second, the first if the second only adds to it (x
--- and x.orig), or the one that exists.
local function chosen(old, new, exists)
  local name, other = new, old
  if #old < #new and new:sub(1, #old) == old then name, other = old, new end
  if not exists(name) and exists(other) then return other end
  return name
end

local function stripped(name, count)
  local rest = name and strip(name, count)
  if rest or not name then return rest end
  raise("invalid_patch", "the name %s does not have more than %d directories to strip", name, count)
end

---@param file sba.patch.file
---@param count? integer the step's argument
---@param prefixes table<string, true>
---@param exists fun(path: string): boolean
---@return string old, string new the same where the diff names one file
function header.resolve(file, count, prefixes, exists)
  if file.from or file.is_begin then
    count = math.max((count or 0) - 1, 0)
  else
    count = count or found_strip(file, prefixes, exists)
  end
  local old = stripped(file.from or file.old_path, count)
  local new = stripped(file.to or file.new_path, count)
  if not old or not new or file.from then return old or new, new or old end
  if not file.is_plain and old ~= new then
    raise("invalid_patch", "%s and %s are two files, but the diff has no rename or copy lines", old, new)
  end
  local name = old == new and old or chosen(old, new, exists)
  return name, name
end

return header
