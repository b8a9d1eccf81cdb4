-- SPDX-License-Identifier: Apache-2.0
-- The step, or the question to a model, that runs now. The log tells what it says; the result does
-- if the runner is killed.

local interrupt = require "native.interrupt"
local lazy = require "sba.util.lazy"
local text = require "native.text"

local secret_stream = lazy "sba.util.secret_stream"

local progress = {}
progress.__index = progress

-- Seconds between two events that say that it still runs.
local BEAT <const> = 30
-- Seconds until the result names a step (most take less time) or has new output, and then from one
-- to the next: the duration in the result of a killed job may be that much too small.
local SOON <const>, LATER_RESULTS <const> = 0.2, 1
local IN_RESULT <const> = 4096 -- bytes of output

---@class progress
---@field log log
---@field changed fun()
---@field current? progress.current what runs

---@class progress.current
---@field kind "step"|"model"
---@field fields fun(): table of the log's events about it
---@field began number as interrupt.now
---@field wall integer when that was, as interrupt.wall
---@field output string its end
---@field limit integer bytes of that
---@field is_cut? boolean there was more before
---@field size integer bytes of its output
---@field stream? table redacts it
---@field next_beat number when the log says that it still runs
---@field next_result number when the result is out of date

---@param fields { log: log, changed: fun() } changed: the result is out of date
---@return progress
function progress.new(fields) return setmetatable(fields, progress) end

local function begin(self, kind, fields, limit)
  local now = interrupt.now()
  self.current = {
    kind = kind, fields = fields, began = now, wall = interrupt.wall(), output = "", size = 0,
    limit = math.min(limit or 0, IN_RESULT), next_beat = now + BEAT, next_result = now + SOON,
  }
end

---@param fields fun(): table of the log's events about it
---@param limit integer bytes of its output that stay
function progress:step(fields, limit) begin(self, "step", fields, limit) end

---Within a step it is part of the step.
---@param model string
function progress:model(model)
  if not self.current then begin(self, "model", function() return { model = model } end) end
end

local function hear(self, shown)
  if shown == "" then return end
  local current = self.current
  current.output = current.output .. shown
  if #current.output > current.limit then
    current.output, current.is_cut = text.tail(current.output, current.limit), true
  end
  self.log.view:output(shown, current.kind, current.fields)
  current.next_result = math.min(current.next_result, interrupt.now() + SOON)
end

---@param news string
---@param missing? integer bytes before it that are left out
function progress:said(news, missing)
  local current = self.current
  if not current then return end
  current.stream = current.stream or secret_stream()
  current.size = current.size + #news + (missing or 0)
  hear(self, current.stream:add(news, missing))
end

local function beat(self, current, now)
  current.next_beat = now + BEAT
  local fields = current.fields()
  fields.duration_ms = interrupt.elapsed_ms(current.began)
  fields.output_bytes = current.size
  self.log:event("info", current.kind .. ".running", fields)
end

---To be called now and then.
function progress:tick()
  local current = self.current
  if not current then return end
  local now = interrupt.now()
  if now >= current.next_beat then beat(self, current, now) end
  if now >= current.next_result then
    current.next_result = now + LATER_RESULTS
    self.changed()
  end
end

---@return table? running_step of the result
function progress:running_step()
  local current = self.current
  if not current or current.kind ~= "step" then return nil end
  local about, output = current.fields(), current.output
  if output == "" then output = nil end
  return { index = about.step - 1, id = about.id, type = about.type, check = about.check,
    started_at = interrupt.timestamp(current.wall),
    output = output, output_truncated = current.is_cut }
end

---@return integer? left_out bytes of its output that no event has, where others of it are told
function progress:finish()
  local current = self.current
  if not current then return nil end
  if current.stream then hear(self, current.stream:finish()) end
  self.current = nil
  return self.log.view:end_output()
end

return progress
