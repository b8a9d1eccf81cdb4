-- SPDX-License-Identifier: Apache-2.0
-- run:emit tells what happens: first to journal.jsonl, then to the todo list, the result, the log and others that look on.

local entries = require "sba.result.entry"
local journal = require "sba.journal.file"
local json = require "sba.util.json"
local text = require "native.text"

local listeners = {}

---@class run.step_event
---@field index integer from 1
---@field step table as for steps.run
---@field arguments? table in the journal
---@field before? "interrupted"|"failed" in an earlier run
---@field entry? table
---@field text? string|(string|native.file.text)[] the entry encoded
---@field what? string for the log
---@field ends_job? boolean

local none <const> = {}

--- For the log. Only of a direct job it is known how many steps there are.
local function fields_of(run, event)
  local step, entry = event.step, event.entry or none
  event.what = event.what or step.what or run.catalogue.what(step)
  return {
    step = event.index, steps = run.steps and not step.check and #run.steps or nil, id = step.id, type = step.type, check = step.check,
    what = event.what, again = event.before and true or nil, status = entry.status, duration_ms = entry.duration_ms,
    exit_code = entry.exit_code, error = entry.error, error_code = entry.error_code, tolerated = entry.tolerated,
  }
end

local function follow(run, event, status, note)
  local check, todo = event.step.check, run.todo
  local item = todo and (check and todo.criteria[check] or run.steps and todo.steps[event.index])
  if not item then return end
  todo:set(item, status, note)
  if check then run.log:event("info", "todo.changed", { id = item.id, status = item.status }) end
end

local function follow_end(run, event)
  local entry, is_check = event.entry, event.step.check
  if entry.status == "success" then return follow(run, event, "done", is_check and json.null or nil) end
  follow(run, event, is_check and "pending" or "dropped", is_check and ("%s: %s"):format(event.step.id, entry.error) or entry.error)
end

--- Adds entries to journal and result, or else to the result alone.
local function add(run, texts, status, check)
  local at, size = run.journal:steps_finished(texts)
  for _, entry in ipairs(texts) do
    if type(entry) == "string" then size = #entry end
    run.record:add_step(at or entries.joined(entry), at and size, status, check)
    at = at and at + size + #journal.BETWEEN
  end
end

local function log_truncated(run, event)
  local entry, step, result = event.entry, event.step, event.entry.result or none
  if not (result.truncated or result.stdout_truncated or result.stderr_truncated) then return end
  local kept = result.stdout and #result.stdout + #result.stderr or #(result.content or entry.output or "")
  local limit, size = entries.limit(step, run.context), result.size_bytes
  local message = "step %d (%s, %s): the output was cut to %d bytes%s (limit: %d)"
  run:warn("step.output_truncated", message:format(event.index, step.id, step.type, kept, size and " of " .. size or "", limit), {
    step = event.index, id = step.id, kept_bytes = kept, limit_bytes = limit, size_bytes = size,
  })
end

local tell = {}

tell["step.started"] = function(run, event)
  local index, step = event.index, event.step
  local module = run.catalogue.get(step.type)
  if run.beginning and index > 1 then run.lazy.reports().start(run) end
  if not (module.ticks or module.brief) then run.checkpoint:hurry() end
  run.journal:event("step.started", {
    index = index - 1, id = step.id, type = step.type, check = step.check, arguments = event.arguments,
  })
  follow(run, event, "in_progress", event.before and event.before .. ", run again" or nil)
  run.progress:step(function() return fields_of(run, event) end, entries.limit(step, run.context))
  run.log:event("info", "step.started", fields_of(run, event))
end

--- A failure that is an answer to a model is none of the job's.
local function level_of(run, event, is_good)
  if is_good or not run.steps and not event.ends_job then return "info" end
  return event.entry.tolerated and "warning" or "error"
end

tell["step.finished"] = function(run, event)
  local entry = event.entry
  add(run, { event.text }, entry.status, event.step.check)
  if run.pending_undo then run.pending_undo:close() end
  run.pending_undo = nil
  local left_out = run.progress:finish()
  follow_end(run, event)
  run.checkpoint:changed()
  log_truncated(run, event)
  local is_good = entry.status == "success"
  local module = run.catalogue.get(event.step.type)
  if is_good and module and module.what then event.what = run.catalogue.what(event.step, entry.result) end
  local fields = fields_of(run, event)
  fields.output_left_out_bytes = left_out
  if not is_good and entry.output then fields.output_tail = text.tail(entry.output, run.log.view.TAIL) end
  run.log:event(level_of(run, event, is_good), "step.finished", fields)
end

--- At an end by exec.
tell["step.kept"] = function(run, event)
  add(run, { event.text }, event.entry.status, event.step.check)
  follow_end(run, event)
end

tell["step.adopted"] = function(run, event)
  local old, index = run.history, event.index
  run.record:add_step(old.offsets[index], old.sizes[index], old.statuses[index], old.checks[index])
  run.record.report = old:report(index) or run.record.report
  follow_end(run, event)
end

--- There may be very many: they share one write and one line of the log.
tell["steps.skipped"] = function(run, event)
  add(run, event.texts, "skipped")
  for index = event.first, event.last do run.todo:set(run.todo.steps[index], "dropped") end
  run.log:event("info", "steps.skipped", { step = event.first, steps = event.last })
end

tell["step.interrupted"] = function(run, event)
  local index, step = event.index, event.step
  local since, output = step.at, step.output
  run.journal:event("step.interrupted", { index = index - 1, id = step.id, type = step.type, since = since, output = output })
  local began, how = since and " at " .. since or "", run.steps and "it runs again" or "the model is told"
  local message = ("step %d (%s, %s), which began%s, was interrupted; %s"):format(index, step.id, step.type, began, how)
  run:warn("step.interrupted", message, {
    step = index, id = step.id, type = step.type, since = since, output_tail = output and text.tail(output, run.log.view.TAIL),
  })
end

---@param run run
---@param name string what `tell` lacks goes to the journal alone
---@param event table a run.step_event, or the fields of the journal's line
function listeners.emit(run, name, event)
  if tell[name] then return tell[name](run, event) end
  run.journal:event(name, event)
end

return listeners
