-- SPDX-License-Identifier: Apache-2.0
-- Shows the files of a workspace as they will be after the changes made so far, until all changes are committed at once. Raises failures.

local fail = require "sba.util.fail"
local transaction = require "sba.patch.transaction"

local check, raise = fail.check, fail.raise

local overlay = {}
overlay.__index = overlay

local MOST_BYTES <const> = 1 << 30 -- of a file

---@class sba.overlay.entry
---@field kind "file"|"link"
---@field bytes string content, or the target of a link
---@field mode? integer permission bits of a file; nil: whatever a new file gets

---@param directory native.root
---@param writes boolean false: nothing is staged
---@return table to be declared <close>
function overlay.new(directory, writes)
  return setmetatable({
    directory = directory, writes = writes, transaction = transaction.new(directory),
    original = {}, current = {}, arriving = {}, touched = {}, stats = {}, leaving = {}, left = {}, uses = {},
  }, overlay)
end

---What is at path in the workspace: a stat result, or false.
local function look(self, path)
  local known = self.stats[path]
  if known ~= nil then return known end
  local stat, problem = self.directory:stat(path)
  if not stat and problem.code ~= "not_found" and problem.code ~= "not_a_directory" then error(problem, 0) end
  self.stats[path] = stat or false
  return stat or false
end

local function load(self, path)
  local stat = look(self, path)
  if not stat then return false end
  if stat.type == "directory" then return { kind = "directory" } end
  if stat.type == "symlink" then return { kind = "link", bytes = stat.target } end
  local read = check(self.directory:read(path, { max_bytes = MOST_BYTES }))
  if read.truncated then raise("too_large", "%s is larger than %d MiB", path, MOST_BYTES >> 20) end
  return { kind = "file", bytes = read.content, mode = read.mode & 511 }
end

---The entry in the workspace as it was found; false: there is nothing.
local function original(self, path)
  if self.original[path] == nil then self.original[path] = load(self, path) end
  return self.original[path]
end

---Checks that only directories lead to path. Links on the way are refused, wherever they lead.
---@param reads boolean the way is that of the workspace as it is, else as it will be
local function check_way(self, path, reads)
  for slash in path:gmatch "()/" do
    local parent = path:sub(1, slash - 1)
    local entry = not reads and self.current[parent]
    if entry == nil or reads then entry = look(self, parent) end
    local kind = entry and (entry.kind or entry.type)
    if kind == "link" or kind == "symlink" then
      raise("path_escape", "path escapes workspace: %s is behind the symbolic link %s; a patch does not follow links", path, parent)
    elseif kind and kind ~= "directory" and (reads or not self.leaving[parent]) then
      raise("not_a_directory", "cannot create %s: %s is not a directory", path, parent)
    end
  end
end

---A path of the workspace, as the overlay names it. Errors: path_escape, invalid_patch.
---@param name string
---@return string
function overlay:path(name)
  for part in name:gmatch("[^/]+") do
    if part == ".." then raise("path_escape", "path escapes workspace: %s has a '..' in it", name) end
    if part:lower() == ".git" then
      raise("invalid_patch", "%s: a patch may not change .git, where git keeps programs that it runs", name)
    end
  end
  local path = check(self.directory:relative(name))
  if path == "." or name:sub(-1) == "/" then raise("invalid_patch", "%s names a directory, not a file", name) end
  return path
end

---Says that what is at path now will be gone at the end, so that something else may take its place before.
---@param path string
function overlay:leave(path)
  self.leaving[path] = true
  for slash in path:gmatch "()/" do self.left[path:sub(1, slash - 1)] = true end
end

---Says that a change is about path.
---@param path string
function overlay:use(path)
  self.uses[path] = (self.uses[path] or 0) + 1
end

---@param path string
---@return boolean whether a file or link is there now
function overlay:exists(path)
  local current = self.current[path]
  if current ~= nil then return current ~= false end
  local stat = look(self, path)
  return stat and stat.type ~= "directory" or false
end

---@param path string
---@return boolean whether something is there now or was before the changes
function overlay:known(path)
  return self.current[path] ~= nil or look(self, path) ~= false
end

---What is at path now, with the changes made so far.
---@param path string
---@return sba.overlay.entry
function overlay:get(path)
  local entry = self.current[path]
  if entry == nil then
    check_way(self, path, true)
    entry = original(self, path)
  end
  if not entry then raise("not_found", "%s: no such file", path) end
  if entry.kind == "directory" then raise("is_a_directory", "%s is a directory", path) end
  return entry
end

---What was at path before any change or, if there was nothing, what is there now.
---@param path string
---@return sba.overlay.entry
function overlay:get_original(path)
  check_way(self, path, true)
  local entry = original(self, path)
  if entry and entry.kind ~= "directory" then return entry end
  return self:get(path)
end

local function set(self, path, entry)
  if self.current[path] == nil then self.touched[#self.touched + 1] = path end
  self.current[path] = entry
end

local function stage(change, path, old, new)
  local is_same = old and new and old.kind == new.kind and old.bytes == new.bytes
  if not new then
    if old then check(change:remove(path)) end
  elseif new.kind == "link" then
    if not is_same then check(change:symlink(path, new.bytes)) end
  elseif not is_same then
    check(change:write(path, new.bytes, new.mode))
  elseif new.mode and old.mode ~= new.mode then
    check(change:chmod(path, new.mode))
  end
end

---Puts an entry at path. A file that only one change is about is staged at once and not kept, so that a large diff does not hold every
---file in memory.
---@param path string
---@param entry sba.overlay.entry
function overlay:put(path, entry)
  check_way(self, path, false)
  local before = self.original[path]
  if self.uses[path] ~= 1 or not before or before.kind ~= "file" or entry.kind ~= "file" then return set(self, path, entry) end
  self.original[path], self.current[path] = nil, { kind = "file" }
  if self.writes then stage(self.transaction, path, before, entry) end
end

---Puts an entry where nothing is; where something is still to leave, once it has. Errors: already_exists.
---@param path string
---@param entry sba.overlay.entry
function overlay:create(path, entry)
  local there = self.current[path]
  if there == nil then there = original(self, path) end
  local is_directory = there and there.kind == "directory"
  if there and not (is_directory and self.left[path]) then
    if is_directory or not self.leaving[path] then
      raise("already_exists", "%s already exists%s", path, is_directory and ", a directory" or "")
    end
    check_way(self, path, false)
    self.arriving[path] = entry
  else
    self:put(path, entry)
  end
end

---@param path string
function overlay:remove(path)
  set(self, path, self.arriving[path] or false)
  self.leaving[path], self.arriving[path] = nil, nil
end

---Makes all changes, or none.
---@param commit? fun(change: sba.transaction): true?, native.failure? does it, and closes the transaction that it did
function overlay:commit(commit)
  local change = self.transaction
  for _, path in ipairs(self.touched) do stage(change, path, self.original[path], self.current[path]) end
  check((commit or change.commit)(change))
  if commit then self.transaction = nil end
end

---Undoes what was not committed.
function overlay:__close()
  if self.transaction then self.transaction:close() end
end

return overlay
