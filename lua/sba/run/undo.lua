-- SPDX-License-Identifier: Apache-2.0
-- Changes of several files that a kill cannot leave half done: the journal gets the plan before the first file changes, the originals stay
-- until it has the end of the step, and in between --resume restores them.

local array = require "sba.util.json".array
local redact = require "native.secret".redact
local transaction = require "sba.patch.transaction"

local changes = {}

local text <const>, count <const> = { type = "string" }, { type = "integer", minimum = 0 }
local bits <const> = { type = "integer", minimum = 0, maximum = 4095 }

--- The fields of the line in the journal.
changes.schema = {
  type = "object", required = { "changes" },
  properties = {
    changes = { type = "array", items = {
      type = "object", required = { "kind", "path" },
      properties = {
        kind = { type = "string", enum = { "remove", "directory", "put", "mode" } },
        path = text, other = text, kept = count, aside = text, mode = bits, old_mode = bits,
      },
    } },
    artifacts = { type = "boolean" },
  },
}

local NEEDED <const> = { remove = "aside", directory = "old_mode", put = "other", mode = "old_mode" } -- to undo it

--- Encodes a name, which may have bytes that JSON cannot hold.
local function written(name)
  name = name:gsub("%%", "%%25")
  if utf8.len(name) then return name end
  return (name:gsub("[\x80-\xff]", function(byte) return ("%%%02X"):format(byte:byte()) end))
end

local function read(name)
  return (name:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

--- A copy with names converted.
local function with_names(list, convert)
  local copies = array {}
  for i, change in ipairs(list) do
    copies[i] = {}
    for field, value in pairs(change) do copies[i][field] = type(value) == "string" and convert(value) or value end
  end
  return copies
end

--- The changes of a plan that can be undone, those first that make room for others.
local function changes_of(plan)
  local list, others = {}, {}
  for _, change in ipairs(with_names(plan.changes, read)) do
    local to = (change.kind == "put" or change.kind == "mode") and others or list
    if change[NEEDED[change.kind]] then to[#to + 1] = change end
  end
  return table.move(others, 1, #others, #list + 1, list)
end

--- Whether the journal keeps every name as it is.
local function can_be_kept(list)
  for _, change in ipairs(list) do
    if redact(change.path) ~= change.path then return false end
  end
  return true
end

---Commits a step's changes, closed as run.kept once its end is in the journal.
---@param run run
---@param change sba.transaction
---@return true?, native.failure?
function changes.commit(run, change)
  local done, failure = change:plan()
  if done and run.result_directory and can_be_kept(done) then
    run:emit("step.changes", {
      index = run.record.count, changes = with_names(done, written), artifacts = change.root == run.artifacts or nil,
    })
  end
  if done then done, failure = change:commit() end
  if done then run.kept = change end
  return done, failure
end

---Puts back what an interrupted run was changing, or clears up.
---@param run run
function changes.recover(run)
  local past, found = run.past, run.past.changes
  local done, failure = nil, { code = "not_found", message = "the artifacts that it was changing cannot be reached" }
  local root = run[found.plan.artifacts and "artifacts" or "workspace"]
  if root then done, failure = transaction.recover(root, changes_of(found.plan), found.committed) end
  if found.committed then return end
  past.undone = done and "the files that it was changing are as they were before" or failure.message
  past.left = failure and { index = found.index, message = failure.message }
  run.log:event("warning", done and "step.undone" or "step.not_undone", { step = found.index, error = past.undone })
end

--- Removes a killed run's temporary files.
local function sweep(root, since, keep)
  local walk <close>, failure = root:walk "."
  local removed = 0
  while walk do
    local entry, problem = walk:next()
    if not entry then return removed, problem end
    if entry.name:sub(1, 5) == ".sba-" and not keep[walk:path()] and walk:remove_temporary(since) then removed = removed + 1 end
  end
  return removed, failure
end

---Removes what the step left during which an earlier run was killed, but for originals that are kept.
---@param run run
function changes.sweep(run)
  local past = run.past
  if past.left then return end
  local keep = {}
  for name in pairs(past.planned) do
    keep[read(name)] = true
  end
  for _, root in ipairs { run.workspace, run.artifacts } do
    local removed, failure = sweep(root, past.job.started_wall // 1000, keep)
    if failure or removed > 0 then
      run.log:event("warning", "workspace.swept", { removed = removed, error = failure and failure.message })
    end
  end
end

return changes
