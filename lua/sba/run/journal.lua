-- SPDX-License-Identifier: Apache-2.0
-- run:emit tells what happens: first to journal.jsonl, one line and one write for each event, then to the todo list, the result, the log
-- and others that look on. The journal's events:
--
--   job               first line: which job
--   job.resumed       another run continues it
--   skills            agent: those of context.skill_ids
--   model.session     agent: the model, and the gateway's tools
--   model.exchange    agent: what was new in the request, and the reply
--   model.compacted   agent: the conversation was shortened
--   step.started      before the step does anything; of agents and checks with the arguments
--   step.changes      before the step changes several files: how to undo it
--   step.append       before the step appends to a file: the file's size; absent: no such file
--   step.finished     the step's entry of the result
--   step.interrupted  the runner was ended during the step; what it had said
--   job.finished      the result's other fields
--   job.reported      the report of the end arrived or was refused
--   journal.failed    last line: later events could not be written

local describe = require "sba.util.words".step
local entries = require "sba.result.entry"
local file = require "native.file"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local result_schema = require "sba.result.result_schema"
local text = require "native.text"

local journal = {}
journal.__index = journal

journal.ENTRY_PREFIX = '{"event":"step.finished","entry":' -- the entry and "}" follow
local SEPARATOR <const> = "}\n" .. journal.ENTRY_PREFIX -- from one entry to the next
-- The order of an event's own fields, which follow `event` and `at`.
local fields_schema = {
  properties = { result = result_schema },
  order = { "index", "id", "type", "check", "job_sha256", "protocol_version", "job_id", "task_id", "started_wall" },
}

---Opens and locks a journal, which stays as it is until journal.begin.
---@param path string
---@param create boolean
---@return native.file.log?, native.failure? failure not_locked: beside the log
function journal.lock(path, create)
  local log, failure = file.append(path, create)
  if not log then return nil, failure end
  local locked, why = log:lock()
  if locked or why.code ~= "locked" then return log, why and { code = "not_locked", message = why.message } end
  log:close()
  return nil, { code = "locked", message = ("another runner works in this job directory: %s is locked"):format(path) }
end

---@param log? native.file.log
---@param size integer bytes of it that stay
---@param failed fun(failure: native.failure) called once
---@return journal
function journal.begin(log, size, failed)
  local self = setmetatable({ failed = failed, log = log, size = size }, journal)
  if not log then return self end
  local done, failure = log:cut(size)
  if not done then
    self.log = nil
    failed(failure)
  end
  return self
end

--- Lets --resume refuse it. Cutting off the torn line, or else all, makes room for that.
local function end_early(self, failure)
  local log = self.log
  self.log = nil
  self.failed(failure)
  for _, size in ipairs { self.size, 0 } do
    if log:cut(size) and log:append { '{"event":"journal.failed"}' } then return end
  end
end

--- The first part is a string.
local function append_long(log, parts)
  local offset
  for _, part in ipairs(parts) do
    local done, failure
    if type(part) == "string" then
      done, failure = log:append({ part }, true)
    else
      done, failure = file.append_text(part, log)
      if part.file then part.file:close() end
    end
    if not done then return nil, failure end
    offset = offset or done
  end
  local at, size = log:append {}
  return at and offset, size
end

---@param parts (string|native.file.text)[] of a line
---@param is_long? boolean some are texts
---@return integer? offset
function journal:append(parts, is_long)
  if not self.log then return nil end
  local offset, size = (is_long and append_long or self.log.append)(self.log, parts)
  if not offset then return end_early(self, size) end
  self.size = size
  return offset
end

function journal:event(event, fields)
  if not self.log then return end
  self:append { json.continue('{"event":"' .. event .. '","at":"' .. interrupt.timestamp() .. '"', fields, fields_schema) }
end

---@param texts string[]|(string|native.file.text)[][] of entry.encode; one in parts comes alone
---@return integer? offset of the first; nil: they are not written
---@return integer? size of all, with what is between
function journal:steps_finished(texts)
  local line, is_long = { journal.ENTRY_PREFIX }, type(texts[1]) == "table"
  for i, entry in ipairs(is_long and texts[1] or texts) do
    if i > 1 and not is_long then line[#line + 1] = SEPARATOR end
    line[#line + 1] = entry
  end
  line[#line + 1] = "}"
  local offset = self:append(line, is_long)
  if offset then return offset + #journal.ENTRY_PREFIX, self.size - offset - #journal.ENTRY_PREFIX - #"}\n" end
end

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
  event.what = event.what or step.what or describe(step)
  return {
    step = event.index, steps = run.steps and not step.check and #run.steps or nil, id = step.id, type = step.type, check = step.check,
    what = event.what, again = event.before and true or nil, status = entry.status, duration_ms = entry.duration_ms,
    exit_code = entry.exit_code, error = entry.error, error_code = entry.error_code,
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
    at = at and at + size + #SEPARATOR
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
  if run.beginning and index > 1 then run.on_demand.orchestrator().report_start(run) end
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

--- At an end by exec.
tell["step.kept"] = function(run, event)
  add(run, { event.text }, event.entry.status, event.step.check)
  follow_end(run, event)
end

tell["step.taken_over"] = function(run, event)
  local old = run.past.entries[event.index]
  run.record:add_step(old.part, old.size, old.entry.status, old.entry.check)
  follow_end(run, event)
end

--- There may be very many: they share one write and one line of the log.
tell["steps.skipped"] = function(run, event)
  add(run, event.texts, "skipped")
  for index = event.first, event.last do run.todo:set(run.todo.steps[index], "dropped") end
  run.log:event("info", "steps.skipped", { step = event.first, steps = event.last })
end

tell["step.interrupted"] = function(run, event)
  local index, step, since, output = event.index, event.step, event.step.at, event.step.output
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
function journal.emit(run, name, event)
  if tell[name] then return tell[name](run, event) end
  run.journal:event(name, event)
end

return journal
