-- SPDX-License-Identifier: Apache-2.0
-- The log, on stderr: one event a line, as JSON or, on a terminal, as text (terminal.lua). A slow
-- reader never stops the job: lines that it does not read in time are dropped, and their count is
-- logged when it reads again.

local file = require "native.file"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local lazy = require "sba.util.lazy"
local text = require "native.text"
local version = require "native.bundle".version

local terminal = lazy "sba.util.terminal"

local log = {}
log.__index = log

-- What every line has besides its time, level and event.
local same_schema <const> = { order = { "job_id", "task_id", "version", "trace_id" } }

local STDERR <const> = 2
-- Seconds without progress until a line is dropped; the ones after it wait no more until one is read.
local TIMEOUT <const> = 1
local SLOWEST <const> = 2 -- seconds for one line
-- Seconds from the first output to the first event, and from one to the next.
local INTERVAL <const> = 1
local MOST <const> = 4096 -- bytes of output in one event
-- Of an event's own fields; others come after them.
local fields_schema <const> = {
  order = { "step", "steps", "id", "type", "check", "what", "status", "duration_ms", "exit_code" },
}

---@class log
---@field view log.view
---@field follow? boolean
---@field observer? fun(level: string, event: string, fields: table)
---@field job_id string
---@field task_id string
---@field trace_id? string
---@field dropped integer lines since the last one that was read in time
---@field torn? boolean the last line was written in part
---@field timeout number seconds that the next line waits

---@class log.view
---@field TAIL integer bytes of a failed step's output in step.finished
---@field identify fun(self, job_id: string, task_id: string, trace_id?: string)
---@field event fun(self, level: string, event: string, fields: table)
---@field output fun(self, text: string, kind: string, fields: fun(): table) of a step or a model
---@field end_output fun(self): integer? left_out bytes of an output of which events told only a part
---@field tick fun(self)
---@field missed fun(self, count: integer): string says that so many lines were dropped
---@field answer fun(self, answer?: string) a model's final one, which people see with the job's end

-- Output becomes events: one a second at the most, which has its last 4 KiB; or, with --follow, all of
-- it. pending: what no event has; left_out: bytes before it; not_before: when an event may come.
---@class json_lines: log.view
local json_lines = { TAIL = 4096 }
json_lines.__index = json_lines

function json_lines:identify(job_id, task_id, trace_id)
  local same = { job_id = job_id, task_id = task_id, version = version, trace_id = trace_id }
  self.same = '","' .. json.encode(same, same_schema):match '^{"(.*)}$'
end

local function line_of(self, level, event, fields)
  local head = '{"ts":"' .. interrupt.timestamp() .. '","level":"' .. level .. '","event":"'
  return json.continue(head .. event .. self.same, fields, fields_schema) .. "\n"
end

function json_lines:event(level, event, fields) self.write(line_of(self, level, event, fields)) end

function json_lines:missed(count) return line_of(self, "warning", "log.dropped", { lines = count }) end

function json_lines.answer() end

function json_lines.note() end

function json_lines:output(piece, kind, fields)
  if not self.not_before then
    self.not_before, self.kind, self.fields = interrupt.now() + INTERVAL, kind, fields
  end
  self.pending = self.pending .. piece
  if not self.follow and #self.pending > MOST then
    local kept = text.tail(self.pending, MOST)
    self.left_out, self.pending = self.left_out + #self.pending - #kept, kept
  end
  self:tick()
end

function json_lines:tick()
  if self.pending == "" or not self.follow and interrupt.now() < self.not_before then return end
  local event = self.fields()
  event.output, event.left_out_bytes = self.pending, self.left_out > 0 and self.left_out or nil
  self.pending, self.left_out = "", 0
  self.not_before, self.has_told = interrupt.now() + INTERVAL, true
  self:event("info", self.kind .. ".output", event)
end

function json_lines:end_output()
  self:tick()
  local left_out = self.has_told and self.left_out + #self.pending or 0
  self.pending, self.left_out = "", 0
  self.not_before, self.has_told = nil, nil
  return left_out > 0 and left_out or nil
end

local function write(self, bytes)
  local dropped = self.dropped
  if dropped > 0 then bytes = self.view:missed(dropped) .. bytes end
  if self.torn then bytes = "\n" .. bytes end
  local all, written = file.write(STDERR, { bytes }, self.timeout, SLOWEST)
  self.torn = not all and written > 0
  self.timeout = all and TIMEOUT or 0
  self.dropped = all and 0 or dropped + 1
end

---@class log.options
---@field format "json"|"text"|"auto"
---@field environment table<string, string>
---@field follow? boolean all output is shown, with "auto" as text

---@param options log.options
---@return log
function log.new(options)
  local format, follow = options.format, options.follow
  local columns = format ~= "json" and file.terminal_columns(STDERR) or nil
  follow = follow or columns ~= nil
  local self = setmetatable({ dropped = 0, timeout = TIMEOUT, follow = follow }, log)
  local function write_bytes(bytes) write(self, bytes) end
  if format == "text" or format == "auto" and follow then
    self.view = terminal.new(write_bytes, columns, options.environment, follow)
  else
    local view = { write = write_bytes, follow = follow, pending = "", left_out = 0 }
    self.view = setmetatable(view, json_lines)
  end
  self:identify("", "")
  return self
end

function log:identify(job_id, task_id)
  self.job_id, self.task_id = job_id, task_id
  self.view:identify(job_id, task_id, self.trace_id)
end

---@param trace_id string 32 hex digits, in every line from here on
---@param observer? fun(level: string, event: string, fields: table)
function log:observe(trace_id, observer)
  self.trace_id, self.observer = trace_id, observer
  self:identify(self.job_id, self.task_id)
end

---@param level "debug"|"info"|"warning"|"error"
---@param event string "step.started"
---@param fields? table which becomes the log's
function log:event(level, event, fields)
  if self.observer then self.observer(level, event, fields or {}) end
  self.view:event(level, event, fields or {})
end

return log
