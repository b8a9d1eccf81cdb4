-- SPDX-License-Identifier: Apache-2.0
-- The log as JSON lines. What runs says becomes events: seldom and little at once, what is left out counted; or, with --follow, all.

local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local text = require "native.text"
local version = require "native.bundle".version

---@class json_lines: log.view
local json_lines = { TAIL = 4096 }
json_lines.__index = json_lines

local INTERVAL <const> = 1 -- seconds from the first output to the first event, and from one to the next
local MOST <const> = 4096 -- bytes in one event: the last ones
-- The order of an event's own fields, which follow ts, level, event, job_id, task_id and version.
local fields_schema <const> = { order = { "step", "steps", "id", "type", "check", "what", "status", "duration_ms", "exit_code" } }

---@param write fun(line: string)
---@param follow? boolean all output is told
function json_lines.new(write, follow)
  return setmetatable({ write = write, follow = follow, pending = "", left_out = 0 }, json_lines)
end

function json_lines:identify(job_id, task_id, trace_id)
  local trace = trace_id and (',"trace_id":"%s"'):format(trace_id) or ""
  self.same = ('","job_id":%s,"task_id":%s,"version":%s%s'):format(json.encode(job_id), json.encode(task_id), json.encode(version), trace)
end

local function line_of(self, level, event, fields)
  local head = '{"ts":"' .. interrupt.timestamp() .. '","level":"' .. level .. '","event":"' .. event .. self.same
  return json.continue(head, fields, fields_schema) .. "\n"
end

function json_lines:event(level, event, fields) self.write(line_of(self, level, event, fields)) end

function json_lines:missed(count) return line_of(self, "warning", "log.dropped", { lines = count }) end

function json_lines.answer() end

function json_lines:output(piece, kind, fields)
  if not self.not_before then self.not_before, self.kind, self.fields = interrupt.now() + INTERVAL, kind, fields end
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
  self:event("info", self.kind .. ".output", event)
  self.pending, self.left_out, self.not_before, self.has_told = "", 0, interrupt.now() + INTERVAL, true
end

---Ends the output of what ran.
---@return integer? left_out bytes that came after the last event; nil where there was none
function json_lines:end_output()
  self:tick()
  local left_out = self.has_told and self.left_out + #self.pending or 0
  self.pending, self.left_out, self.has_told, self.not_before = "", 0, nil, nil
  return left_out > 0 and left_out or nil
end

return json_lines
