-- SPDX-License-Identifier: Apache-2.0
-- run:emit tells what happens: first to journal.jsonl, then to the result, the todo list, the log
-- and others that look on.

local journal = require "sba.journal.file"
local json = require "sba.util.json"
local lazy = require "sba.util.lazy"
local text = require "native.text"

local entries = lazy "sba.result.entry"
local reports = lazy "sba.outside.reports"

local listeners = {}

---@class run.step_event
---@field index integer from 1
---@field step table as for steps.run
---@field module? sba.step of its type
---@field what? string the step in a few words, for the log
---@field limit? integer bytes that it may return
---@field is_short? boolean nothing is written before it, see lua/types/step.lua
---@field arguments? table in the journal
---@field before? "interrupted"|"failed" in an earlier run
---@field entry? table
---@field text? string|(string|native.file.text)[] the entry encoded
---@field ends_job? boolean

local none <const> = {}

--- For the log. Only of a direct job it is known how many steps there are.
local function fields_of(run, event)
  local step, entry = event.step, event.entry or none
  local is_of_job = run.steps and not step.check
  return {
    step = event.index, steps = is_of_job and #run.steps or nil,
    id = step.id, type = step.type, check = step.check, what = event.what,
    again = event.before and true, status = entry.status, duration_ms = entry.duration_ms,
    exit_code = entry.exit_code, error = entry.error, error_code = entry.error_code,
    tolerated = entry.tolerated,
  }
end

--- Adds an entry to journal and result, or else to the result alone.
local function add_entry(run, event)
  local entry, check = event.entry, event.step.check
  local offset, size = run.journal:steps_finished { event.text }
  local part = offset or entries.joined(event.text)
  run.record:add_step(part, size, entry.status, check, entry.tolerated)
end

--- Of the todo list: the item of a check's criterion, or of a direct job's step.
local function set_item(run, event, status, note)
  local check, todo = event.step.check, run.todo
  local item = todo and run.steps and todo.steps[event.index]
  if todo and check then item = todo.criteria[check] end
  if not item then return end
  todo:set(item, status, note)
  if check then run.log:event("info", "todo.changed", { id = item.id, status = item.status }) end
end

local function end_item(run, event)
  local entry, step = event.entry, event.step
  if entry.status == "success" then return set_item(run, event, "done", step.check and json.null) end
  if not step.check then return set_item(run, event, "dropped", entry.error) end
  -- It may pass later.
  set_item(run, event, "pending", step.id .. ": " .. entry.error)
end

local function log_truncated(run, event)
  local entry, step, result = event.entry, event.step, event.entry.result or none
  local is_cut = result.truncated or result.stdout_truncated or result.stderr_truncated
  if not is_cut then return end
  local kept = #(result.content or entry.output or "")
  if result.stdout then kept = #result.stdout + #result.stderr end
  local index, limit, size = event.index, event.limit, result.size_bytes
  local sizes = kept .. " bytes" .. (size and " of " .. size or "")
  local message = "step %d (%s, %s): the output was cut to %s (limit: %d)"
  run:warn("step.output_truncated", message:format(index, step.id, step.type, sizes, limit), {
    step = index, id = step.id, kept_bytes = kept, limit_bytes = limit, size_bytes = size,
  })
end

local function log_end(run, event, left_out)
  local entry, level = event.entry, "info"
  local has_failed, fields = entry.status ~= "success", fields_of(run, event)
  fields.output_left_out_bytes = left_out
  if has_failed and entry.output then
    fields.output_tail = text.tail(entry.output, run.log.view.TAIL)
  end
  -- A failure that is an answer to a model is none of the job's.
  if has_failed and (run.steps or event.ends_job) then
    level = entry.tolerated and "warning" or "error"
  end
  run.log:event(level, "step.finished", fields)
end

local tell = {} -- by event

tell["step.started"] = function(run, event)
  local index, step = event.index, event.step
  if run.beginning and index > 1 then reports.start(run) end
  if not event.is_short then run.checkpoint:hurry() end
  run.journal:event("step.started", {
    index = index - 1, id = step.id, type = step.type, check = step.check,
    arguments = event.arguments,
  })
  set_item(run, event, "in_progress", event.before and event.before .. ", run again")
  run.progress:step(function() return fields_of(run, event) end, event.limit)
  run.log:event("info", "step.started", fields_of(run, event))
end

tell["step.finished"] = function(run, event)
  add_entry(run, event)
  -- The step's changes stay, so the originals that were set aside go.
  if run.pending_undo then run.pending_undo:close() end
  run.pending_undo = nil
  local left_out = run.progress:finish()
  end_item(run, event)
  run.checkpoint:changed()
  log_truncated(run, event)
  log_end(run, event, left_out)
end

--- At an end by exec.
tell["step.kept"] = function(run, event)
  add_entry(run, event)
  end_item(run, event)
end

tell["step.adopted"] = function(run, event)
  local old, index, entry = run.history, event.index, event.entry
  local offset, size = old.offsets[index], old.sizes[index]
  run.record:add_step(offset, size, entry.status, entry.check, entry.tolerated)
  run.record.report = old:report(index) or run.record.report
  end_item(run, event)
end

--- There may be very many: they share one write and one line of the log.
tell["steps.skipped"] = function(run, event)
  local at = run.journal:steps_finished(event.texts)
  for i, entry in ipairs(event.texts) do
    run.record:add_step(at or entry, at and #entry, "skipped")
    at = at and at + #entry + #journal.BETWEEN
    run.todo:set(run.todo.steps[event.first + i - 1], "dropped")
  end
  run.log:event("info", "steps.skipped", { step = event.first, steps = event.last })
end

tell["step.interrupted"] = function(run, event)
  local index, step = event.index, event.step
  local since, output = step.at, step.output
  run.journal:event("step.interrupted", {
    index = index - 1, id = step.id, type = step.type, since = since, output = output,
  })
  local began, how = since and " at " .. since or "", "the model is told"
  if run.steps then how = "it runs again" end
  local message = "step %d (%s, %s), which began%s, was interrupted; %s"
  run:warn("step.interrupted", message:format(index, step.id, step.type, began, how), {
    step = index, id = step.id, type = step.type, since = since,
    output_tail = output and text.tail(output, run.log.view.TAIL),
  })
end

---@param run run
---@param name string what `tell` lacks goes to the journal alone
---@param event table a run.step_event, or the fields of the journal's line
function listeners.emit(run, name, event)
  local listen = tell[name]
  if listen then return listen(run, event) end
  run.journal:event(name, event)
end

return listeners
