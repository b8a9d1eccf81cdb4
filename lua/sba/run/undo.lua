-- SPDX-License-Identifier: Apache-2.0
-- Changes of several files that a kill cannot leave half done: before them the journal gets the plan,
-- and until it has the end of the step --resume restores the originals.

local array = require "sba.util.json".array
local interrupt = require "native.interrupt"
local names = require "sba.util.files"
local redact = require "native.secret".redact
local transaction = require "sba.patch.transaction"

local undo = {}

-- What undoes a change of that kind.
local NEEDED <const> = { remove = "backup", directory = "old_mode", put = "staged", mode = "old_mode" }
-- What the journal calls the fields of a change.
local IN_JOURNAL <const> = { staged = "other", backup = "aside", existing_prefix = "kept" }
local FROM_JOURNAL <const> = { other = "staged", aside = "backup", kept = "existing_prefix" }

local function converted(list, convert, fields)
  local copies = array {}
  for i, change in ipairs(list) do
    copies[i] = {}
    for field, value in pairs(change) do
      if type(value) == "string" then value = convert(value) end
      copies[i][fields[field] or field] = value
    end
  end
  return copies
end

--- Those that can be undone: what stands in a journal may not be ours.
local function changes_of(plan)
  local list = {}
  for _, change in ipairs(converted(plan.changes, names.decode_name, FROM_JOURNAL)) do
    if change[NEEDED[change.kind]] then list[#list + 1] = change end
  end
  return list
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
    local event = { index = run.record.count }
    event.changes = converted(done, names.encode_name, IN_JOURNAL)
    if change.root == run.artifacts then event.artifacts = true end
    run:emit("step.changes", event)
  end
  if done then done, failure = change:commit() end
  if done then run.pending_undo = change end
  return done, failure
end

---Restores what a killed run was changing, or removes the originals where its step had succeeded.
---@param run run
function undo.recover(run)
  local found = run.history.changes
  local done, failure = nil, { message = "the artifacts that it was changing cannot be reached" }
  local root = run[found.artifacts and "artifacts" or "workspace"]
  if root then done, failure = transaction.recover(root, changes_of(found), found.committed) end
  if found.committed then return end
  local message, index = "the files that it was changing are as they were before", found.index + 1
  if failure then
    message = failure.message
    run.history.undo_failed = { index = index, message = message }
  end
  run.history.undone = message
  run:warn(done and "step.undone" or "step.not_undone", message, { step = index })
end

local function remove_temporary(walk, runs)
  for _, runner in ipairs(runs) do
    if runner.temporary and walk:remove_temporary(runner.temporary) then return 1 end
  end
  return 0
end

--- The journal has the first name of each run, whose others follow; so no file of a command is taken for one.
local function sweep(root, runs, keep, until_when)
  local walk <close>, failure = root:walk "."
  local removed = 0
  while walk and interrupt.now() < until_when do
    local entry, problem = walk:next()
    if not entry then return removed, problem end
    local is_one = entry.name:sub(1, 5) == ".sba-" and not keep[walk:path()]
    if is_one then removed = removed + remove_temporary(walk, runs) end
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
    local removed, failure = sweep(root, history.runs, keep, until_when or math.huge)
    local problem = failure and failure.message
    if problem or removed > 0 then run:warn("workspace.swept", problem, { removed = removed }) end
  end
end

return undo
