-- SPDX-License-Identifier: Apache-2.0
-- Direct jobs: the job's steps, one after the other, until one fails.

local describe = require "sba.run.describe"
local entries = require "sba.result.entry"
local failures = require "sba.result.failure"
local interrupt = require "native.interrupt"

local direct = {}

--- What goes before a message about a step.
local function named(step, index, message)
  return ("step %d (%s, %s): %s"):format(index, step.id, step.type, message)
end

local function log_step(run, index, step)
  return { step = index, steps = #run.job.steps, id = step.id, type = step.type, what = describe(step) }
end

--- An entry takes its place: in the journal first, then in the result.
local function keep(run, index, entry, text)
  run.journal:step_finished(text)
  run.record:add_step(text, entry.status)
  local done, skipped = entry.status == "success", entry.status == "skipped"
  local item = run.todo:follow(index, done and "done" or "dropped", not done and not skipped and entry.error or nil)
  run.log:event("info", "todo.changed", { id = item.id, status = item.status })
end

local function log_finished(run, index, step, entry)
  local fields = log_step(run, index, step)
  fields.status, fields.duration_ms, fields.exit_code = entry.status, entry.duration_ms, entry.exit_code
  fields.error, fields.error_code = entry.error, entry.error_code
  local result = entry.result or {}
  if result.truncated or result.stdout_truncated or result.stderr_truncated then
    run.log:event("warning", "step.output_truncated", { step = index, id = step.id, error = named(step, index, "output was cut") })
  end
  run.log:event(entry.status == "success" and "info" or "error", "step.finished", fields)
end

local function begin(run, index, step, again)
  run.journal:step_started(index, step)
  local item = run.todo:follow(index, "in_progress", again and "interrupted, run again" or nil)
  run.log:event("info", "todo.changed", { id = item.id, status = item.status })
  local fields = log_step(run, index, step)
  fields.again = again
  run.log:event("info", "step.started", fields)
end

--- Runs a step; returns its entry, the entry's JSON, and the step's failure.
local function execute(run, index, step, module)
  local wall, begun = interrupt.wall(), interrupt.now()
  local entry, failure = entries.make(xpcall(module.run, failures.traced, step.arguments, run.context))
  entry.index, entry.id, entry.type = index - 1, step.id, step.type
  entry.started_at = interrupt.timestamp(wall)
  entry.duration_ms = math.floor((interrupt.now() - begun) * 1000 + 0.5)
  local ok, text = xpcall(entries.encode, failures.traced, entry, module)
  if ok then return entry, text, failure end
  -- What the step returned does not go into JSON: the entry says so instead of holding it.
  failure = failures.caught(text)
  entry.result, entry.status, entry.error, entry.error_code = nil, "failure", failure.message, failure.code
  return entry, entries.encode(entry), failure
end

--- Runs one step with all that goes with it; returns its failure as the job's.
local function perform(run, index, step, again)
  local module = run.catalogue.get(step.type)
  begin(run, index, step, again)
  local entry, text, failure = execute(run, index, step, module)
  keep(run, index, entry, text)
  log_finished(run, index, step, entry)
  if index < #run.job.steps and not failure then run.checkpoint:changed(#text) end
  return failure and { code = failure.code, message = named(step, index, failure.message), traceback = failure.traceback }
end

--- Takes over a step that an earlier run finished.
local function take_over(run, index, old)
  local entry = old.entry
  run.record:add_step(old.text, entry.status)
  run.todo:follow(index, entry.status == "success" and "done" or "dropped", entry.error)
  if entry.status == "success" or entry.status == "skipped" then return nil end
  local failure = failures.of_step(entry.error_code, entry.error)
  return { code = failure.code, message = named(run.job.steps[index], index, failure.message) }
end

--- Runs the steps that are left; returns the job's failure, or nil when all went well.
---@param run table
---@return failure?
function direct.run(run)
  local history = run.history or { entries = {}, begun = {} }
  for index, step in ipairs(run.job.steps) do
    local failure
    local old = history.entries[index]
    if old then
      failure = take_over(run, index, old)
    else
      failure = interrupt.reason() or perform(run, index, step, history.begun[index])
    end
    if failure then return failure end
  end
end

--- Reports the steps that were not reached.
---@param run table
function direct.skip_rest(run)
  local history = run.history or { entries = {} }
  for index = #run.record.steps + 1, #run.job.steps do
    local step, old = run.job.steps[index], history.entries[index]
    if old then
      take_over(run, index, old)
    else
      local entry = {
        index = index - 1, id = step.id, type = step.type, status = "skipped", started_at = interrupt.timestamp(),
        duration_ms = 0,
      }
      keep(run, index, entry, entries.encode(entry))
    end
  end
end

return direct
