-- SPDX-License-Identifier: Apache-2.0
-- Changes of several files that a kill cannot leave half done: before them the journal gets the plan, and until it has the end of the step
-- --resume restores the originals.

local array = require "sba.util.json".array
local interrupt = require "native.interrupt"
local names = require "sba.util.files"
local redact = require "native.secret".redact
local transaction = require "sba.patch.transaction"

local undo = {}

local NEEDED <const> = { remove = "aside", directory = "old_mode", put = "other", mode = "old_mode" } -- to undo it

local function with_names(list, convert)
  local copies = array {}
  for i, change in ipairs(list) do
    copies[i] = {}
    for field, value in pairs(change) do copies[i][field] = type(value) == "string" and convert(value) or value end
  end
  return copies
end

--- Those that can be undone. What makes room for others comes first.
local function changes_of(plan)
  local list, others = {}, {}
  for _, change in ipairs(with_names(plan.changes, names.decode_name)) do
    local to = (change.kind == "put" or change.kind == "mode") and others or list
    if change[NEEDED[change.kind]] then to[#to + 1] = change end
  end
  return table.move(others, 1, #others, #list + 1, list)
end

local function has_a_secret(list)
  for _, change in ipairs(list) do
    if redact(change.path) ~= change.path then return true end
  end
  return false
end

---Changes can be undone until their step has ended, which closes run.pending_undo.
---@param run run
---@param change sba.transaction
---@return true?, native.failure?
function undo.commit(run, change)
  local done, failure = change:plan()
  if done and run.result_directory and not has_a_secret(done) then
    run:emit("step.changes", {
      index = run.record.count, changes = with_names(done, names.encode_name), artifacts = change.root == run.artifacts or nil,
    })
  end
  if done then done, failure = change:commit() end
  if done then run.pending_undo = change end
  return done, failure
end

---Restores what a killed run was changing, or removes the originals where its step had succeeded.
---@param run run
function undo.recover(run)
  local found = run.history.changes
  local done, failure = nil, { code = "not_found", message = "the artifacts that it was changing cannot be reached" }
  local root = run[found.plan.artifacts and "artifacts" or "workspace"]
  if root then done, failure = transaction.recover(root, changes_of(found.plan), found.committed) end
  if found.committed then return end
  local message = done and "the files that it was changing are as they were before" or failure.message
  run.history.undone, run.history.undo_failed = message, failure and { index = found.index, message = message }
  run:warn(done and "step.undone" or "step.not_undone", message, { step = found.index })
end

local function remove_temporary(walk, firsts)
  for _, first in ipairs(firsts) do
    if walk:remove_temporary(first) then return 1 end
  end
  return 0
end

--- The journal has the first name of each run, whose others follow; so no file of a command is taken for one.
local function sweep(root, firsts, keep, until_when)
  local walk <close>, failure = root:walk "."
  local removed = 0
  while walk and interrupt.now() < until_when do
    local entry, problem = walk:next()
    if not entry then return removed, problem end
    local is_one = entry.name:sub(1, 5) == ".sba-" and not keep[walk:path()]
    if is_one then removed = removed + remove_temporary(walk, firsts) end
  end
  return removed, failure
end

---Removes temporary files of a killed run, but no originals that are still needed.
---@param run run
---@param until_when? number as interrupt.now
function undo.sweep(run, until_when)
  local history = run.history
  if history.undo_failed then return end
  local keep = {}
  for name in pairs(history.planned) do keep[names.decode_name(name)] = true end
  for _, root in pairs { run.workspace or nil, run.artifacts } do
    local removed, failure = sweep(root, history.temporary, keep, until_when or math.huge)
    if failure or removed > 0 then run:warn("workspace.swept", failure and failure.message, { removed = removed }) end
  end
end

return undo
