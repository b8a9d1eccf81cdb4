-- SPDX-License-Identifier: Apache-2.0
-- What happens is told once, by run:emit. The journal has it before it takes effect; then those who look on hear of it: the todo list,
-- what is live, the result, the status reporter, and the log, with the terminal and the trace behind it.

local describe = require "sba.util.words".step
local entries = require "sba.result.entry"
local json = require "sba.util.json"
local journal = require "sba.run.journal"
local on_demand = require "sba.run.on_demand"
local text = require "native.text"

---@class run.step_event
---@field index integer from 1
---@field step { id: string, type: string, arguments: table, check?: integer }
---@field arguments? table as the journal has them
---@field before? "interrupted"|"failed" how the step had ended in an earlier run
---@field entry? table the step's end
---@field text? string|(string|native.file.text)[] the same as JSON, see entry.encode
---@field what? string what the step is about, for the log
---@field ends_job? boolean

local none <const> = {}

--- The fields of the log. How many steps there are is known of a direct job; a check is none of them.
local function fields_of(run, event)
  local step, entry = event.step, event.entry or none
  event.what = event.what or describe(step)
  return {
    step = event.index, steps = run.steps and not step.check and #run.steps or nil, id = step.id, type = step.type, check = step.check,
    what = event.what, again = event.before and true or nil, status = entry.status, duration_ms = entry.duration_ms,
    exit_code = entry.exit_code, error = entry.error, error_code = entry.error_code,
  }
end

--- The todo item of a step, or of the criterion that it checks. The steps of a model have none.
local function follow(run, event, status, note)
  local check, todo = event.step.check, run.todo
  local item = check and todo.criteria[check] or run.steps and todo.steps[event.index]
  if not item then return end
  todo:set(item, status, note)
  if check then run.log:event("info", "todo.changed", { id = item.id, status = item.status }) end
end

local function follow_end(run, event)
  local entry, is_check = event.entry, event.step.check
  if not run.todo then return end
  if entry.status == "success" then return follow(run, event, "done", is_check and json.null or nil) end
  follow(run, event, is_check and "pending" or "dropped", is_check and ("%s: %s"):format(event.step.id, entry.error) or entry.error)
end

--- The text of an entry that has long texts: of those of files, what is shown.
local function join(parts)
  local list = {}
  for i, part in ipairs(parts) do list[i] = type(part) == "string" and part or json.encode(part.bytes or part.shown):sub(2, -2) end
  return table.concat(list)
end

--- Adds the entries of steps to journal and result: where the journal cannot be written, the result keeps their text.
local function add(run, texts, status, check)
  local at, size = run.journal:steps_finished(texts)
  for _, entry in ipairs(texts) do
    local is_string = type(entry) == "string"
    if is_string then size = #entry end
    run.record:add_step(at or is_string and entry or join(entry), at and size, status, check)
    at = at and at + size + journal.BETWEEN
  end
end

--- How many bytes of an output are there after it was cut.
local function kept_bytes(result, entry)
  if result.stdout then return #result.stdout + #result.stderr end
  return #(result.content or entry.output or "")
end

local function log_truncated(run, event)
  local entry, step, result = event.entry, event.step, event.entry.result or none
  if not (result.truncated or result.stdout_truncated or result.stderr_truncated) then return end
  local kept, limit = kept_bytes(result, entry), entries.limit(step, run.context)
  local of = result.size_bytes and (" of %d"):format(result.size_bytes) or ""
  run.log:event("warning", "step.output_truncated", {
    step = event.index, id = step.id, kept_bytes = kept, limit_bytes = limit, size_bytes = result.size_bytes,
    error = ("step %d (%s, %s): the output was cut to %d bytes%s (limit: %d)"):format(event.index, step.id, step.type, kept, of, limit),
  })
end

local tell = {}

tell["step.started"] = function(run, event)
  local index, step = event.index, event.step
  local module = run.catalogue.get(step.type)
  if run.beginning and index > 1 then on_demand.status().began(run) end
  if not (module.ticks or module.brief) then run.checkpoint:hurry() end
  run.journal:event("step.started", {
    index = index - 1, id = step.id, type = step.type, check = step.check, arguments = event.arguments,
  })
  follow(run, event, "in_progress", event.before and event.before .. ", run again" or nil)
  run.live:step(function() return fields_of(run, event) end, entries.limit(step, run.context))
  run.log:event("info", "step.started", fields_of(run, event))
end

tell["step.finished"] = function(run, event)
  local entry = event.entry
  add(run, { event.text }, entry.status, event.step.check)
  if run.kept then run.kept:close() end
  run.kept = nil
  run.live:finish()
  follow_end(run, event)
  run.checkpoint:changed()
  log_truncated(run, event)
  local fields, is_good = fields_of(run, event), entry.status == "success"
  if not is_good and entry.output then fields.output_tail = text.tail(entry.output, run.log.view.TAIL) end
  -- A failure that is an answer to a model is none of the job's.
  run.log:event(not is_good and (run.steps or event.ends_job) and "error" or "info", "step.finished", fields)
end

--- A step that the run did not end has an entry, at an end by exec.
tell["step.kept"] = function(run, event)
  add(run, { event.text }, event.entry.status, event.step.check)
  follow_end(run, event)
end

--- An earlier run finished the step: its journal has the entry.
tell["step.taken_over"] = function(run, event)
  local old = run.past.entries[event.index]
  run.record:add_step(old.part, old.size, old.entry.status, old.entry.check)
  follow_end(run, event)
end

--- Steps were not reached. There may be very many, and the time is up: they share one write and one line of the log.
tell["steps.skipped"] = function(run, event)
  add(run, event.texts, "skipped")
  for index = event.first, event.last do run.todo:set(run.todo.steps[index], "dropped") end
  run.log:event("info", "steps.skipped", { step = event.first, steps = event.last })
end

--- An earlier run was ended during the step.
tell["step.interrupted"] = function(run, event)
  local index, step, since = event.index, event.step, event.step.at
  run.journal:event("step.interrupted", { index = index - 1, id = step.id, type = step.type, since = since, output = step.output })
  run.log:event("warning", "step.interrupted", {
    step = index, id = step.id, type = step.type, since = since,
    error = ("step %d (%s, %s), which began%s, was interrupted; %s"):format(index, step.id, step.type, since and " at " .. since or "",
      run.steps and "it runs again" or "the model is told"),
    output_tail = step.output and text.tail(step.output, run.log.view.TAIL),
  })
end

---Tells what happens. Of an event that is not listed above only the journal hears.
---@param run run
---@param name string
---@param event table a run.step_event, or the fields of the journal's line
return function(run, name, event)
  if tell[name] then return tell[name](run, event) end
  run.journal:event(name, event)
end
