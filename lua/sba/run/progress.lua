-- SPDX-License-Identifier: Apache-2.0
-- The step, or the question to a model, that runs now. The log tells what it says; the result does if the runner is killed.

local interrupt = require "native.interrupt"
local secret = require "sba.util.secret"
local text = require "native.text"

local progress = {}
progress.__index = progress

local BEAT <const> = 30 -- seconds between two events that say that it still runs
local SOON <const> = 0.2 -- seconds until the result names a step (most take less time) or has new output
local LATER_RESULTS <const> = 1 -- seconds: the duration in the result of a killed job may be that much too small
local IN_RESULT <const> = 4096 -- bytes of output

---@class progress
---@field current? table what runs

---@param fields { log: log, changed: fun(), now?: fun(): number } changed: the result is out of date
---@return progress
function progress.new(fields)
  fields.now = fields.now or interrupt.now
  return setmetatable(fields, progress)
end

local function begin(self, kind, fields, limit)
  local now = self.now()
  self.current = {
    kind = kind, fields = fields, began = now, wall = interrupt.wall(), limit = math.min(limit or 0, IN_RESULT), kept = "", size = 0,
    next_beat = now + BEAT, next_result = now + SOON,
  }
end

---@param fields fun(): table of the log's events about it
---@param limit integer bytes of its output that are kept
function progress:step(fields, limit) begin(self, "step", fields, limit) end

---Within a step it is part of the step.
---@param model string
function progress:model(model)
  if not self.current then begin(self, "model", function() return { model = model } end) end
end

local function hear(self, shown)
  if shown == "" then return end
  local current = self.current
  local all = current.kept .. shown
  current.kept = #all > current.limit and text.tail(all, current.limit) or all
  current.is_cut = current.is_cut or #all > current.limit
  self.log.view:output(shown, current.kind, current.fields)
  current.next_result = math.min(current.next_result, self.now() + SOON)
end

---@param news string
---@param missing? integer bytes before it that are left out
function progress:said(news, missing)
  local current = self.current
  if not current then return end
  current.stream = current.stream or secret.stream()
  current.size = current.size + #news + (missing or 0)
  hear(self, current.stream:add(news, missing))
end

local function beat(self, current, now)
  current.next_beat = now + BEAT
  local fields = current.fields()
  fields.duration_ms, fields.output_bytes = math.floor((now - current.began) * 1000), current.size
  self.log:event("info", current.kind .. ".running", fields)
end

---To be called now and then.
function progress:tick()
  local current = self.current
  if not current then return end
  local now = self.now()
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
  local about = current.fields()
  return {
    index = about.step - 1, id = about.id, type = about.type, check = about.check, started_at = interrupt.timestamp(current.wall),
    output = current.kept ~= "" and current.kept or nil, output_truncated = current.is_cut and true or nil,
  }
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
