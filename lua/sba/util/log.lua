-- SPDX-License-Identifier: Apache-2.0
-- The log, on stderr: one event a line, as JSON or, on a terminal, as text. A reader that is slow or gone never stops
-- the job: lines it does not read in time are dropped and counted, and the count is logged when it reads again.

local file = require "native.file"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local output_events = require "sba.util.output_events"
local version = require "native.bundle".version

local log = {}
log.__index = log

local STDERR <const> = 2
local TAIL <const> = 4096 -- bytes of a failed step's output in a line
local TAIL_IN_TEXT <const> = 65536 -- of which people see the last lines
local TIMEOUT <const> = 1 -- seconds without progress until a line is dropped; then none until something is read
local SLOWEST <const> = 2 -- seconds that a reader may take for one line

-- The order of an event's own fields, which follow ts, level, event, job_id, task_id and version.
local fields_schema <const> = { order = { "step", "steps", "id", "type", "check", "what", "status", "duration_ms", "exit_code" } }

---@class log.options
---@field format "json"|"text"|"auto"
---@field environment table<string, string>
---@field follow? boolean all output of steps and models is told; with "auto" as text
---@field terminal fun(): table gives util.terminal, which only a log for people needs

---@class log
---@field follow? boolean
---@field tail_size integer bytes: how much of a failed step's output step.finished is to have
---@field same string what every line has after its event, as JSON

local function line_of(self, level, event, fields)
  local head = '{"ts":"' .. interrupt.timestamp() .. '","level":"' .. level .. '","event":"' .. event .. self.same
  return json.continue(head, fields, fields_schema) .. "\n"
end

--- Writes a line (or, on a terminal, part of the view), or drops it. Once the reader takes lines again, they begin with how many it did
--- not take.
local function write(self, bytes)
  local dropped = self.dropped
  if dropped > 0 then
    bytes = (self.view and self.view:missed(dropped) or line_of(self, "warning", "log.dropped", { lines = dropped })) .. bytes
  end
  local all, written = file.write(STDERR, { self.torn and "\n" or "", bytes }, self.timeout, SLOWEST)
  self.torn = not all and written > 0
  self.timeout, self.dropped = all and TIMEOUT or 0, all and 0 or dropped + 1
end

--- Opens the log.
---@param options log.options
---@return log
function log.new(options)
  local columns = options.format ~= "json" and file.terminal_columns(STDERR) or nil
  local self = setmetatable({ dropped = 0, timeout = TIMEOUT, tail_size = TAIL, follow = options.follow }, log)
  self:identify("", "")
  if options.format == "text" or columns or options.follow and options.format ~= "json" then
    self.tail_size = TAIL_IN_TEXT
    self.follow = self.follow or columns ~= nil
    self.view = options.terminal().new(function(bytes) write(self, bytes) end, columns, options.environment, self.follow)
  end
  return self
end

--- Sets the ids that every line carries.
function log:identify(job_id, task_id)
  self.job_id, self.task_id = job_id, task_id
  local trace = self.trace_id and (',"trace_id":"%s"'):format(self.trace_id) or ""
  self.same = ('","job_id":%s,"task_id":%s,"version":%s%s'):format(json.encode(job_id), json.encode(task_id), json.encode(version), trace)
end

--- Every line names the trace from here on.
---@param trace_id string 32 hex digits
---@param observer? fun(level: string, event: string, fields: table) hears of every event
function log:observe(trace_id, observer)
  self.trace_id, self.observer = trace_id, observer
  self:identify(self.job_id, self.task_id)
end

--- Logs an event.
---@param level "debug"|"info"|"warning"|"error"
---@param event string "step.started"
---@param fields? table of the event's own, which becomes the log's
function log:event(level, event, fields)
  if self.observer then self.observer(level, event, fields or {}) end
  if self.view then return self.view:event(level, event, fields or {}, self.job_id) end
  write(self, line_of(self, level, event, fields or {}))
end

--- The final answer of a model, which people are shown with the job's end.
---@param words? string
function log:answer(words)
  if self.view then self.view.answer = words end
end

--- What a step, or a model, has said while it runs.
---@param kind "step"|"model"
---@param fields fun(): table of events about it
---@param output string UTF-8, without secrets
function log:output(kind, fields, output)
  if self.view then return self.view:output(output) end
  self.outputs = self.outputs or output_events.new(function(words, left_out)
    local event = self.output_fields()
    event.output, event.left_out_bytes = words, left_out
    self:event("info", self.output_kind .. ".output", event)
  end, interrupt.now, self.follow)
  self.output_kind, self.output_fields = kind, fields
  self.outputs:add(output)
end

--- It says nothing more.
---@return integer? left_out bytes that no event has, of what was told in events
function log:output_over()
  return self.outputs and self.outputs:finish()
end

--- To be called now and then while a step runs.
function log:tick()
  if self.outputs then self.outputs:tick() end
end

return log
