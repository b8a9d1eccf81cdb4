-- SPDX-License-Identifier: Apache-2.0
-- What runs now, a step or a question to a model: since when, and what it has said so far. The log tells it while it runs. If
-- the runner is killed, the result and the file `running_output` beside the journal tell it.

local checkpoint = require "sba.result.checkpoint"
local file = require "native.file"
local interrupt = require "native.interrupt"
local live_text = require "sba.util.live_text"
local text = require "native.text"

local live = {}
live.__index = live

local BEAT <const> = 30 -- seconds between two events that say that it still runs
local FIRST_RESULT <const> = 0.2 -- seconds after which the result names a step; most take less time
local RESULT_WHILE_SAYING <const> = 1 -- seconds after which the result has new output
local RESULT_WHILE_SILENT <const> = 5 -- seconds by which the duration in the result of a killed job may be too small
local MOST_KEPT <const> = 64 * 1024 -- bytes of output in the file; up to twice as many in memory
local IN_RESULT <const> = 4096 -- bytes of output
local NOTE <const> = "[... %d bytes left out ...]\n"

---The name of the file beside the journal.
live.FILE = "running_output"

---@class live
---@field current? table what runs: kind, fields, began, wall, kept, size, ...

---@param options { log: log, changed: fun(), path?: string, now?: fun(): number } changed: the result says no longer how things are;
--- path: of the file; nil: there is none
---@return live
function live.new(options)
  local self = setmetatable({ log = options.log, changed = options.changed, path = options.path, now = options.now or interrupt.now }, live)
  self.file = self.path and checkpoint.new(function() return self:write() end)
  return self
end

--- Something begins.
local function begin(self, kind, fields, limit)
  local now = self.now()
  self.current = {
    kind = kind, fields = fields, began = now, wall = interrupt.wall(), limit = math.min(limit or MOST_KEPT, MOST_KEPT),
    kept = "", pieces = {}, pieces_size = 0, left_out = 0, size = 0, next_beat = now + BEAT, next_result = now + FIRST_RESULT,
  }
end

---A step begins.
---@param fields fun(): table of the log's events about it: step, id, type, check
---@param limit integer bytes of its output that are kept
function live:step(fields, limit) begin(self, "step", fields, limit) end

---A model is asked. Within a step that is a part of the step.
---@param model string
function live:model(model)
  if not self.current then begin(self, "model", function() return { model = model } end) end
end

--- Makes one text of the pieces: a model says a word at a time.
local function join(current)
  if #current.pieces == 0 then return end
  current.kept = current.kept .. table.concat(current.pieces)
  current.pieces, current.pieces_size = {}, 0
end

--- The last of the output, and how many bytes were before that.
local function tail(current, size)
  join(current)
  local shown = #current.kept > size and text.tail(current.kept, size) or current.kept
  return shown, current.left_out + #current.kept - #shown
end

---Writes the file: what was said last.
---@return boolean? written
function live:write()
  local shown, left_out = tail(self.current, self.current.limit)
  self.current.in_file = true
  return file.replace(self.path, { left_out > 0 and NOTE:format(left_out) or "", shown }, { durable = false }) ~= nil
end

local function keep(current, shown)
  table.insert(current.pieces, shown)
  current.pieces_size = current.pieces_size + #shown
  if #current.kept + current.pieces_size > 2 * current.limit then
    join(current)
    local kept = text.tail(current.kept, current.limit)
    current.left_out, current.kept = current.left_out + #current.kept - #kept, kept
  end
end

local function hear(self, shown)
  if shown == "" then return end
  local current = self.current
  keep(current, shown)
  self.log.view:output(shown, current.kind, current.fields)
  if self.file and current.kind == "step" then self.file:changed() end
  current.next_result = math.min(current.next_result, math.max(self.now(), current.last_result + RESULT_WHILE_SAYING))
end

---What runs has said something.
---@param news string bytes
---@param missing? integer bytes before them that are left out
function live:said(news, missing)
  local current = self.current
  if not current then return end
  current.stream = current.stream or live_text.new()
  current.last_result = current.last_result or current.began
  current.size = current.size + #news + (missing or 0)
  hear(self, current.stream:add(news, missing))
end

local function beat(self, current, now)
  current.next_beat = now + BEAT
  local fields = current.fields()
  fields.duration_ms, fields.output_bytes = math.floor((now - current.began) * 1000), current.size
  self.log:event("info", current.kind .. ".running", fields)
end

---To be called now and then while something runs.
function live:tick()
  local current = self.current
  if not current then return end
  local now = self.now()
  if now >= current.next_beat then beat(self, current, now) end
  if now >= current.next_result then
    current.last_result, current.next_result = now, now + RESULT_WHILE_SILENT
    self.changed()
  end
  if self.file then self.file:tick() end
end

---The step that runs, as the result of an interrupted job names it.
---@return { index: integer, id: string, type: string, check?: integer, started_at: string, output?: string, output_truncated?: boolean }?
function live:running_step()
  local current = self.current
  if not current or current.kind ~= "step" then return nil end
  local shown, left_out = tail(current, math.min(IN_RESULT, current.limit))
  local about = current.fields()
  return {
    index = about.step - 1, id = about.id, type = about.type, check = about.check, started_at = interrupt.timestamp(current.wall),
    output = shown ~= "" and shown or nil, output_truncated = left_out > 0 and true or nil,
  }
end

---What ran is over.
---@return integer? left_out bytes of its output that no event has
function live:finish()
  local current = self.current
  if not current then return nil end
  if current.stream then hear(self, current.stream:finish()) end
  self.current = nil
  local left_out = self.log.view:end_output()
  if current.in_file then os.remove(self.path) end
  if self.file then self.file.dirty = false end
  return left_out
end

return live
