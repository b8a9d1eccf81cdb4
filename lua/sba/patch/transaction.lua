-- SPDX-License-Identifier: Apache-2.0
-- Changes several files of a directory: all of them or none.
--
-- New files are staged beside where they go. A commit renames what is there to a backup, and what is
-- staged to its path; if any part fails, everything is put back. The plan says before what is under
-- which name, so that the change can be undone after a crash. Names decide: what others wrote in
-- between is lost. A link at the end of a path is not followed. A path is changed once.

local fail = require "sba.util.fail"
local interrupt = require "native.interrupt"
local workspace = require "native.workspace"

local check, raise = fail.check, fail.raise

---@class sba.change
---@field kind "remove"|"directory"|"put"|"mode" directory: it goes, for a file comes in its place
---@field path string
---@field staged? string put: the new file's name until the commit
---@field existing_prefix? integer put: so many bytes of path name directories that were there before
---@field backup? string remove, put: where the old file or link goes; nil: there was none
---@field mode? integer mode: the new permission bits
---@field old_mode? integer directory, mode: what they were

---@class sba.transaction to be closed: what was not committed is undone
---@field root native.root
---@field changes sba.change[]
---@field seen table<string, table|false> path -> what look found there
---@field state "staging"|"planned"|"done"|"over"
local transaction = {}
transaction.__index = transaction

---@param root native.root
---@return sba.transaction
function transaction.new(root)
  return setmetatable({ root = root, changes = {}, seen = {}, state = "staging" }, transaction)
end

local absent <const> = { not_found = true, not_a_directory = true }

---What root:stat finds at a path before the change; it is asked once. Raises failures.
---@param path string
---@return table|false
function transaction:look(path)
  if self.seen[path] == nil then
    local stat, failure = self.root:stat(path)
    if not stat and not absent[failure.code] then error(failure, 0) end
    self.seen[path] = stat or false
  end
  return self.seen[path]
end

local function add(self, change)
  self.changes[#self.changes + 1] = change
  return true
end

local function add_staged(self, path, staged, failure)
  if not staged then return nil, failure end
  local existing = #(staged:match "^.*/" or "")
  return add(self, { kind = "put", path = path, staged = staged, existing_prefix = existing })
end

---@param path string as root:relative gives it, here and below
---@param content string
---@param mode? integer permission bits; default: 0644 less the umask
---@return true|nil, native.failure?
function transaction:write(path, content, mode)
  return add_staged(self, path, self.root:stage(path, content, mode))
end

---Errors: path_escape, where the target is outside.
---@param path string
---@param target string
---@return true|nil, native.failure?
function transaction:symlink(path, target)
  return add_staged(self, path, self.root:stage_link(path, target))
end

---Stages the removal of a file or link, and of the directories that become empty by it.
---@param path string
---@return true
function transaction:remove(path) return add(self, { kind = "remove", path = path }) end

---@param path string
---@param mode integer permission bits of a regular file
---@return true
function transaction:chmod(path, mode)
  return add(self, { kind = "mode", path = path, mode = mode })
end

--- A file replaces a directory and those that the removals below it leave empty.
local function plan_directories(self, top)
  local going = { [top] = true }
  for _, change in ipairs(self.changes) do
    if change.kind == "remove" and change.path:sub(1, #top + 1) == top .. "/" then
      for slash in change.path:gmatch("()/", #top + 2) do
        going[change.path:sub(1, slash - 1)] = true
      end
    end
  end
  for path in pairs(going) do
    local mode = check(self.root:stat(path)).mode
    add(self, { kind = "directory", path = path, old_mode = mode })
  end
end

--- The backup's name: beside the old file, or beside the directory above it that a file replaces.
local function backup_of(puts, path)
  for slash in path:gmatch "()/" do
    if puts[path:sub(1, slash - 1)] then path = path:sub(1, slash - 1) break end
  end
  return (path:match "^.*/" or "") .. workspace.temporary_name()
end

local function plan_change(self, change, puts)
  local there = self:look(change.path)
  if not there and change.kind == "put" then return end
  if not there then raise("not_found", "%s: no such file", change.path) end
  if change.kind == "put" and there.type == "directory" then
    return plan_directories(self, change.path)
  end
  if there.type ~= "file" and (there.type ~= "symlink" or change.kind == "mode") then
    raise("not_a_file", "%s is a %s, not a regular file", change.path, there.type)
  end
  if change.kind == "mode" then
    change.old_mode = there.mode
  else
    change.backup = backup_of(puts, change.path)
  end
end

local order <const> = { remove = 1, directory = 2, put = 3, mode = 4 }

local function is_before(a, b)
  if a.kind ~= b.kind then return order[a.kind] < order[b.kind] end
  -- What is in a directory goes before the directory itself.
  if a.kind == "directory" then return a.path > b.path end
  return a.path < b.path
end

local function plan_all(self)
  if self.state == "planned" then return self.changes end
  local puts = {}
  for _, change in ipairs(self.changes) do puts[change.path] = change.kind == "put" end
  for i = 1, #self.changes do plan_change(self, self.changes[i], puts) end
  table.sort(self.changes, is_before)
  self.state = "planned"
  return self.changes
end

---Says what commit will do, in this order. Nothing can be staged afterwards.
---@return sba.change[]|nil, native.failure?
function transaction:plan() return fail.caught(plan_all, self) end

local make = {}

function make.remove(root, change) check(root:move(change.path, change.backup, "")) end

function make.directory(root, change)
  local removed, failure = root:remove(change.path, "directory")
  if removed then return end
  raise("not_a_file", "cannot replace a directory by a file: %s", failure.message)
end

function make.put(root, change) check(root:move(change.staged, change.path, change.backup)) end

function make.mode(root, change) check(root:chmod(change.path, change.mode)) end

-- By the names alone, so that it can be done again after a part of it.
local undo = {}

function undo.remove(root, change)
  local there, failure = root:stat(change.backup)
  if not there then return failure.code == "not_found" end -- the path is as it was
  if not root:move(change.backup, change.path, "") then return false end
  -- If both were links to one file, the move did nothing.
  root:remove(change.backup, "file")
  return true
end

function undo.directory(root, change)
  local there = root:make_directory(change.path) and root:stat(change.path)
  return there and (there.mode == change.old_mode or root:chmod(change.path, change.old_mode))
end

local function undo_new(root, change)
  local is_staged, failure = root:stat(change.staged)
  if is_staged or failure.code ~= "not_found" then return is_staged ~= nil end
  local removed
  removed, failure = root:remove(change.path, "file") -- what was staged is at the path
  return removed or absent[failure.code] or failure.code == "is_a_directory"
end

function undo.put(root, change)
  local done = (change.backup and undo.remove or undo_new)(root, change)
  root:remove(change.staged, "file")
  local directory = change.path:match "^(.*)/"
  if directory then root:prune(directory, change.existing_prefix or #directory) end
  return done
end

function undo.mode(root, change) return root:chmod(change.path, change.old_mode) end

--- Undoes changes as far as they were made. Returns what could not be put back, as words.
local function undo_all(root, changes)
  local lost = {}
  for i = #changes, 1, -1 do
    local change = changes[i]
    if not undo[change.kind](root, change) then
      lost[#lost + 1] = change.path .. (change.backup and " is kept as " .. change.backup or "")
    end
  end
  return #lost > 0 and "could not be put back: " .. table.concat(lost, "; ") or nil
end

local function clear_up(root, changes)
  for _, change in ipairs(changes) do
    if change.backup then root:remove(change.backup, "file") end
    local directory = change.kind == "remove" and change.path:match "^(.*)/"
    if directory then root:prune(directory, 0) end
  end
end

local function uninterrupted(call, root, changes)
  local held = interrupt.hold(true)
  local ok, result, failure = pcall(call, root, changes)
  interrupt.hold(held)
  if not ok then error(result, 0) end
  return result, failure
end

local function make_all(root, changes)
  for _, change in ipairs(changes) do make[change.kind](root, change) end
end

local function make_or_undo(root, changes)
  local done, failure = pcall(make_all, root, changes)
  if done then return true end
  local lost = undo_all(root, changes)
  if type(failure) ~= "table" then error(failure, 0) end
  if lost then failure.message = failure.message .. "; " .. lost end
  return nil, failure
end

---All or nothing. Backups stay until close.
---@return true|nil, native.failure?
function transaction:commit()
  local done, failure = nil, interrupt.reason()
  if not failure then done, failure = self:plan() end
  if done then done, failure = uninterrupted(make_or_undo, self.root, self.changes) end
  if done then self.state = "done" else self:close() end
  return done, failure
end

local function undo_whole(root, changes, what)
  local lost = uninterrupted(undo_all, root, changes)
  if not lost then return true end
  return nil, { code = "incomplete", message = what .. " could not be undone completely; " .. lost }
end

---Takes a commit back, and closes it. Errors: incomplete, whose message names what was left where.
---@return true|nil, native.failure?
function transaction:revert()
  self.state = "over"
  return undo_whole(self.root, self.changes, "the change of a step that failed")
end

---Removes the backups of a commit, or else what is staged for one.
function transaction:close()
  if self.state == "done" then
    clear_up(self.root, self.changes)
  elseif self.state ~= "over" then
    for _, change in ipairs(self.changes) do
      if change.staged then self.root:remove(change.staged, "file") end
    end
  end
  self.state = "over"
end

transaction.__close, transaction.__gc = transaction.close, transaction.close

---Undoes the changes of a run that was killed or, where it made all, removes their backups. Can be
---done again. Errors: incomplete.
---@param root native.root
---@param changes sba.change[]
---@param made boolean
---@return true|nil, native.failure?
function transaction.recover(root, changes, made)
  if not made then return undo_whole(root, changes, "a change that was cut off") end
  clear_up(root, changes)
  return true
end

return transaction
