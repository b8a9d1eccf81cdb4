-- SPDX-License-Identifier: Apache-2.0
-- Finds the files of the workspace that the names in a diff mean: how many leading directories to strip.
--
-- If strip is given: that many, and one less from the names of "rename from" and the like, which have no prefix. Names in the form of "***
-- Begin Patch" have no prefix either. Otherwise the "diff --git" line of a file decides: a prefix on both names (a/ and b/) is always
-- stripped, whatever directories the workspace has. Two names that are the same have none, unless only the name without its first directory
-- exists. Without such a line, each file decides for itself:
--   two names that differ in the first directory alone (a/x and b/x, old/x and new/x): one;
--   the same name twice: none, unless only the name without its first directory is there;
--   one name alone (the other is /dev/null): one if its first directory is a, b or one that the pairs of this diff lose, unless only the
--   name with it is there; else none.
-- If two names still differ (x.orig and x), a diff without git's header means the second, or the first if the second only adds to it, or
-- else the one that exists.

local raise = require "sba.util.fail".raise

local names = {}

---@return string? the name without count leading directories; nil where it has no more than that
local function strip(name, count)
  for _ = 1, count do
    name = name:match("^[^/]*/+(.+)$")
    if not name then return nil end
  end
  return name
end

local function first_directory(name) return name:match("^([^/]*)/") end

---Whether the names differ in the first directory only.
local function is_prefixed_pair(old, new)
  return old and new and first_directory(old) ~= first_directory(new) and strip(old, 1) and strip(old, 1) == strip(new, 1)
end

---The first directories that do not belong to the names in this diff: those that its pairs of names show, and a and b.
---@param files sba.patch.file[]
---@return table<string, true>
function names.prefixes(files)
  local prefixes = { a = true, b = true }
  for _, file in ipairs(files) do
    local old, new = file.old_path, file.new_path
    if is_prefixed_pair(old, new) then prefixes[first_directory(old)], prefixes[first_directory(new)] = true, true end
  end
  return prefixes
end

local function only_below_is_there(name, exists)
  local below = strip(name, 1)
  return below and exists(below) and not exists(name)
end

local function found_strip(file, prefixes, exists)
  local old, new = file.old_path, file.new_path
  if (old or new):sub(1, 1) == "/" then return 0 end
  if file.prefix or is_prefixed_pair(old, new) then return 1 end
  if not old or not new then
    local name = old or new
    local below = file.prefix == nil and prefixes[first_directory(name)] and strip(name, 1)
    return below and (exists(below) or not exists(name)) and 1 or 0
  end
  if only_below_is_there(old, exists) or only_below_is_there(new, exists) then return 1 end
  local both = strip(old, 1) and strip(new, 1) and first_directory(old) ~= first_directory(new)
  return both and not exists(old) and not exists(new) and 1 or 0
end

---The file that two different names of a plain diff mean.
local function chosen(old, new, exists)
  local name, other = new, old
  if #old < #new and new:sub(1, #old) == old then name, other = old, new end
  if name ~= other and not exists(name) and exists(other) then return other end
  return name
end

local function stripped(name, count)
  return name and (strip(name, count) or raise("invalid_patch", "the name %s does not have more than %d directories to strip", name, count))
end

---@param file sba.patch.file
---@param count? integer as the step's argument says; nil: found out
---@param prefixes table<string, true> of this diff
---@param exists fun(path: string): boolean
---@return { old: string?, new: string? }
function names.resolve(file, count, prefixes, exists)
  local old, new = file.from or file.old_path, file.to or file.new_path
  if file.from or file.plain then
    count = count and math.max(count - 1, 0) or 0
  else
    count = count or found_strip(file, prefixes, exists)
  end
  local old_name, new_name = stripped(old, count), stripped(new, count)
  if old_name and new_name and not file.from then
    old_name = file.git and old_name or chosen(old_name, new_name, exists)
    if file.git and old_name ~= new_name then
      raise("invalid_patch", "%s and %s are two files, but the diff has no rename or copy lines", old_name, new_name)
    end
    new_name = old_name
  end
  return { old = old_name, new = new_name }
end

return names
