-- SPDX-License-Identifier: Apache-2.0
-- The files of a workspace as they will be once the changes made so far are committed. Raises
-- failures.

local fail = require "sba.util.fail"
local transaction = require "sba.patch.transaction"

local check, raise = fail.check, fail.raise

local overlay = {}
overlay.__index = overlay

-- Of a file; and how many are read before its size is looked at.
local MOST_BYTES <const>, FIRST_BYTES <const> = 1 << 30, 1 << 20

---@class sba.overlay.entry
---@field type "file"|"symlink"
---@field bytes string|native.edit.content content, or the target of a link
---@field mode? integer permission bits of a file; nil: whatever a new file gets

---@param directory native.root
---@param writes boolean false: nothing is staged
---@return table to be declared <close>
function overlay.new(directory, writes)
  return setmetatable({
    directory = directory, writes = writes, transaction = transaction.new(directory),
    uses = {}, -- path -> how many parts of the diff are about it
    leaving = {}, -- what is still to be deleted or renamed
    left = {}, -- the directories that it is in
    original = {}, -- path -> entry, as far as it was read; false: nothing
    current = {}, -- path -> entry, as far as it was changed; false: nothing
    arriving = {}, -- path -> entry that takes its place once what is there has left
    touched = {}, -- paths in the order of their changes
  }, overlay)
end

local function load(self, path)
  local function read_up_to(most) return self.directory:read(path, { max_bytes = most, nofollow = true }) end
  local read, failure = read_up_to(FIRST_BYTES)
  local has_more = read and read.truncated and read.size_bytes <= MOST_BYTES
  if has_more then read, failure = read_up_to(MOST_BYTES) end
  if not read then
    local stat = self.transaction:look(path)
    if not stat or stat.type == "directory" then return stat end
    if stat.type ~= "symlink" then error(failure, 0) end
    return { type = "symlink", bytes = stat.target }
  end
  self.transaction.seen[path] = { type = "file", mode = read.mode }
  if read.truncated then raise("too_large", "%s is larger than %d MiB", path, MOST_BYTES >> 20) end
  return { type = "file", bytes = read.content, mode = read.mode & 511 }
end

local function original(self, path)
  if self.original[path] == nil then self.original[path] = load(self, path) end
  return self.original[path]
end

--- The entry at path now, or what the workspace has there; false: nothing.
local function now(self, path)
  local entry = self.current[path]
  if entry == nil then return self.transaction:look(path) end
  return entry
end

--- Checks that only directories lead to path. Links on the way are refused, wherever they lead.
--- reads: the way as it is in the workspace, else as it will be.
local function check_way(self, path, reads)
  for slash in path:gmatch "()/" do
    local parent = path:sub(1, slash - 1)
    local entry
    if reads then entry = self.transaction:look(parent) else entry = now(self, parent) end
    if entry and entry.type == "symlink" then
      local message = "path escapes workspace: %s is behind the symbolic link %s; a patch does not follow links"
      raise("path_escape", message, path, parent)
    elseif entry and entry.type ~= "directory" and (reads or not self.leaving[parent]) then
      raise("not_a_directory", "cannot create %s: %s is not a directory", path, parent)
    end
  end
end

---A path as the other functions take it. Errors: path_escape, invalid_patch.
---@param name string
---@return string
function overlay:path(name)
  for part in name:gmatch("[^/]+") do
    if part == ".." then
      raise("path_escape", "path escapes workspace: %s has a '..' in it", name)
    elseif part:lower() == ".git" then
      raise("invalid_patch", "%s: a patch may not change .git, where git keeps programs that it runs", name)
    end
  end
  local path = check(self.directory:relative(name))
  if path == "." or name:sub(-1) == "/" then
    raise("invalid_patch", "%s names a directory, not a file", name)
  end
  return path
end

---Says, before the first change, that one will be about path.
---@param path string
---@param leaves? boolean what is there now will be gone at the end: something else may take its
---place before
function overlay:use(path, leaves)
  self.uses[path] = (self.uses[path] or 0) + 1
  if not leaves then return end
  self.leaving[path] = true
  for slash in path:gmatch "()/" do self.left[path:sub(1, slash - 1)] = true end
end

---@param path string
---@return boolean whether a file or link is there now
function overlay:exists(path)
  local entry = now(self, path)
  return entry and entry.type ~= "directory" or false
end

---@param path string
---@return boolean something is there now or was before the changes
function overlay:known(path)
  return self.current[path] ~= nil or self.transaction:look(path) ~= false
end

---What is at path now. Errors: not_found, is_a_directory.
---@param path string
---@return sba.overlay.entry
function overlay:get(path)
  local entry = self.current[path]
  if entry == nil then
    check_way(self, path, true)
    entry = original(self, path)
  end
  if not entry then raise("not_found", "%s: no such file", path) end
  if entry.type == "directory" then raise("is_a_directory", "%s is a directory", path) end
  return entry
end

---What was at path before any change or, if there was nothing, what is there now.
---@param path string
---@return sba.overlay.entry
function overlay:get_original(path)
  check_way(self, path, true)
  local entry = original(self, path)
  if entry and entry.type ~= "directory" then return entry end
  return self:get(path)
end

local function set(self, path, entry)
  if self.current[path] == nil then self.touched[#self.touched + 1] = path end
  self.current[path] = entry
end

local function stage(change, path, old, new)
  local is_same = old and new and old.type == new.type and old.bytes == new.bytes
  if not new then
    if old then check(change:remove(path)) end
  elseif new.type == "symlink" then
    if not is_same then check(change:symlink(path, new.bytes)) end
  elseif not is_same then
    check(change:write(path, new.bytes, new.mode))
  elseif new.mode and old.mode ~= new.mode then
    check(change:chmod(path, new.mode))
  end
end

---Whether what is put at path, if it is a file, is staged at once: a large diff must not hold every
---file in memory. So are files that only one part is about.
---@param path string
---@return boolean
function overlay:stages_at_once(path)
  local before = self.original[path]
  if self.uses[path] ~= 1 or not before then return false end
  return before.type == "file"
end

---Puts an entry at path.
---@param path string
---@param entry sba.overlay.entry
function overlay:put(path, entry)
  check_way(self, path, false)
  local before = self.original[path]
  if not self:stages_at_once(path) or entry.type ~= "file" then return set(self, path, entry) end
  self.original[path], self.current[path] = nil, { type = "file" }
  if self.writes then stage(self.transaction, path, before, entry) end
end

---Puts an entry where nothing is; where something is still to leave, once it has. Errors:
---already_exists.
---@param path string
---@param entry sba.overlay.entry
function overlay:create(path, entry)
  local there = now(self, path)
  local is_directory = there and there.type == "directory"
  if not there or is_directory and self.left[path] then return self:put(path, entry) end
  if is_directory or not self.leaving[path] then
    raise("already_exists", "%s already exists%s", path, is_directory and ", a directory" or "")
  end
  check_way(self, path, false)
  self.arriving[path] = entry
end

---@param path string
function overlay:remove(path)
  set(self, path, self.arriving[path] or false)
  self.leaving[path], self.arriving[path] = nil, nil
end

---Makes all changes, or none.
---@param commit? fun(change: sba.transaction): true?, native.failure? does it, and then also closes
---the transaction
function overlay:commit(commit)
  local change = self.transaction
  for _, path in ipairs(self.touched) do
    stage(change, path, self.original[path], self.current[path])
  end
  check((commit or change.commit)(change))
  if commit then self.transaction = nil end
end

function overlay:__close()
  if self.transaction then self.transaction:close() end
end

return overlay
