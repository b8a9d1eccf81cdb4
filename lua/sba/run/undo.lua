-- SPDX-License-Identifier: Apache-2.0
-- Commits changes of several files so that a kill cannot leave them half done. The journal gets the plan before the first file changes, and
-- the originals are kept until the journal has the end of the step. In between, --resume restores them.

local array = require "sba.util.json".array
local redact = require "native.secret".redact

local changes = {}

local text <const>, count <const> = { type = "string" }, { type = "integer", minimum = 0 }
local number <const> = { type = "integer" }

local directories_schema = { type = "object", required = { "path", "mode" }, properties = { path = text, mode = count } }
local change_schema = {
  type = "object", required = { "kind", "path" },
  properties = {
    kind = { type = "string", enum = { "put", "remove", "mode" } }, path = text, other = text, aside = text, kept = count, old_mode = count,
    old_inode = number, new_inode = number, -- only in plans of 0.1.0
  },
}

--- The fields of the line in the journal.
changes.schema = {
  type = "object", required = { "changes", "directories" },
  properties = {
    changes = { type = "array", items = change_schema },
    directories = { type = "array", items = directories_schema }, artifacts = { type = "boolean" },
  },
}

--- Encodes a name, which may have bytes that JSON cannot hold.
local function written(name)
  name = name:gsub("%%", "%%25")
  if utf8.len(name) then return name end
  return (name:gsub("[\x80-\xff]", function(byte) return ("%%%02X"):format(byte:byte()) end))
end

local function read(name)
  return (name:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

local function with_names(plan, convert)
  for _, list in ipairs { plan.changes, plan.directories } do
    for _, entry in ipairs(list) do
      for _, field in ipairs { "path", "other", "aside" } do entry[field] = entry[field] and convert(entry[field]) end
    end
  end
  return plan
end

--- A plan of 0.1.0, which exchanged the two files or, where it could not, set the old one aside with a tilde after its name.
local function translate(root, plan)
  for _, change in ipairs(plan.changes) do
    if (change.old_inode or 0) ~= 0 and change.other then
      local there = root:stat(change.other)
      change.aside = there and there.inode ~= change.new_inode and change.other or change.other .. "~"
    end
  end
  return plan
end

--- Whether the journal keeps every name as it is.
local function can_be_kept(plan)
  for _, list in ipairs { plan.changes, plan.directories } do
    for _, entry in ipairs(list) do
      if redact(entry.path) ~= entry.path then return false end
    end
  end
  return true
end

--- Commits a step's changes.
---@param run run run.kept: the transaction, to be closed once the step's end is in the journal
---@param transaction native.transaction
---@param root? native.root whose files it changes; default: the workspace
---@return true?, native.failure?
function changes.commit(run, transaction, root)
  if not run.result_directory then return transaction:commit() end -- no journal: nobody can resume
  local plan, failure = transaction:plan()
  if not plan then return nil, failure end
  if can_be_kept(plan) then
    with_names(plan, written)
    run.journal:step_changes(run.record.count + 1, array(plan.changes), array(plan.directories), root ~= nil and root == run.artifacts)
  end
  local done
  done, failure = transaction:commit(true)
  if not done then return nil, failure end
  run.kept = transaction
  return true
end

--- Puts back the files that an interrupted run was changing or, if it had changed all of them, clears up.
---@param run run run.past: what the step or the model is to know of it
function changes.recover(run)
  local past, found = run.past, run.past.changes
  local root, done = run.workspace, nil
  local failure = { code = "not_found", message = "the artifacts that it was changing cannot be reached" }
  if found.plan.artifacts then root = run.artifacts end
  if root then done, failure = root:recover(translate(root, with_names(found.plan, read)), found.committed) end
  if found.committed then return end
  past.undone = done and "the files that it was changing are as they were before" or failure.message
  past.left = failure and { index = found.index, message = failure.message }
  run.log:event("warning", done and "step.undone" or "step.not_undone", { step = found.index, error = past.undone })
end

---Removes the temporary files of a step that was killed while it wrote them. Originals that could not be put back stay: their names are in
---the plans of the journal.
---@param run run
function changes.sweep(run)
  local past = run.past
  if not next(past.begun) or past.left then return end
  local keep = {}
  for name in pairs(past.planned) do
    keep[read(name)] = true
  end
  for _, root in ipairs { run.workspace, run.artifacts } do
    local removed, failure = root:sweep(past.job.started_wall // 1000, keep)
    if failure or removed > 0 then
      run.log:event("warning", "workspace.swept", { removed = removed, error = failure and failure.message })
    end
  end
end

return changes
