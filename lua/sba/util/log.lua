-- SPDX-License-Identifier: Apache-2.0
-- The log: one event a line, as JSON or, on a terminal, as a live view. A reader that is slow or gone never stops the job:
-- what it does not take in time is dropped, counted, and said as soon as it reads again.

local file = require "native.file"
local interrupt = require "native.interrupt"
local json = require "native.json"
local redact = require "native.secret".redact

local log = {}
log.__index = log

local PATIENCE <const> = 1 -- seconds without progress until a line is dropped; then none until something is read

-- What most lines hold comes first; the rest follows in byte order.
local line_schema = {
  order = {
    "ts", "level", "event", "job_id", "task_id", "step", "steps", "id", "type", "what", "status", "duration_ms", "exit_code",
  },
}

---@class log.options
---@field fd integer 1 or 2
---@field format "json"|"text"|"auto"
---@field environment table<string, string>

--- A log on a descriptor.
---@param options log.options
---@return log
function log.new(options)
  local columns = options.format ~= "json" and file.terminal_columns(options.fd) or nil
  local self = setmetatable({ fd = options.fd, job_id = "", task_id = "", dropped = 0, patience = PATIENCE }, log)
  if options.format == "text" or columns then
    -- Here, not at the top: most jobs write their log for machines.
    self.view = require "sba.util.terminal".new(function(bytes) self:write(bytes) end, columns, options.environment)
  end
  return self
end

--- Sets the ids that every line carries.
function log:identify(job_id, task_id)
  self.job_id, self.task_id = job_id, task_id
end

--- Writes bytes that are whole lines (or, on a terminal, part of one), or drops them.
---@param bytes string
---@param lines? integer how many, default 1
function log:write(bytes, lines)
  local all, written = file.write(self.fd, (self.torn and "\n" or "") .. bytes, self.patience)
  self.torn = not all and written > 0 and not self.view
  self.patience = all and PATIENCE or 0
  if not all then self.dropped = self.dropped + (lines or 1) end
  return all
end

local function line_of(self, level, event, fields)
  fields.ts, fields.level, fields.event = interrupt.timestamp(), level, event
  fields.job_id, fields.task_id = self.job_id, self.task_id
  return json.encode(fields, line_schema) .. "\n"
end

--- Writes lines; and, once the reader takes them again, how many it did not take.
local function write_lines(self, text, lines)
  local dropped = self.dropped
  if self:write(text, lines) and dropped > 0 then
    self.dropped = 0
    self:write(line_of(self, "warning", "log.dropped", { lines = dropped }))
  end
end

--- What the live view shows: JSON is redacted where it is made.
local function redacted(fields)
  local shown = {}
  for name, value in pairs(fields) do
    if type(value) == "table" then value = redacted(value) end
    shown[name] = type(value) == "string" and redact(value) or value
  end
  return shown
end

--- Logs an event.
---@param level "debug"|"info"|"warning"|"error"
---@param event string "step.started"
---@param fields? table of the event's own, which becomes the log's
function log:event(level, event, fields)
  if self.view then return self.view:event(level, event, redacted(fields or {}), redact(self.job_id)) end
  local text = line_of(self, level, event, fields or {})
  if self.held then
    self.held[#self.held + 1] = text
  else
    write_lines(self, text, 1)
  end
end

--- Keeps back what is logged until the release, for one write of what belongs to one moment. Nothing in between may wait.
function log:hold() self.held = {} end

function log:release()
  local held = self.held
  self.held = nil
  if #held > 0 then write_lines(self, table.concat(held), #held) end
end

--- To be called now and then while a step runs: keeps the live view alive.
function log:tick()
  if self.view then self.view:tick() end
end

return log
