-- SPDX-License-Identifier: Apache-2.0
-- Time, to scale: a strip of the whole job, with its steps and the turns of the model.

local format = require "sba.report.format"
local html = require "sba.report.html"

local h = html.elements
local timeline = {}

local WIDTH <const> = 1000 -- units of the drawing for the whole job
local NARROW <const> = 3 -- units; bars that are within so much of each other are drawn as one
local rank <const> = { success = 1, model = 1, running = 1, timeout = 2, interrupted = 2, failure = 3 } -- what a bar for several shows
local MOST_TICKS <const> = 6
local LATE <const> = 80 -- per cent of the width
local STEPS_LANE <const>, MODEL_LANE <const> = 0, 18 -- y
local LANE <const> = 14 -- height

---@class report.scale
---@field start integer milliseconds since 1970
---@field length integer milliseconds, at least 1

--- The scale of a job: from its start to its end.
---@return report.scale
local function scale_of(result)
  local start = format.instant(result.started_at) or 0
  local length = math.max((format.instant(result.finished_at) or start) - start, result.duration_ms, 1)
  return { start = start, length = length }
end

local function place(scale, at, duration)
  local x = math.min(math.max((at - scale.start) / scale.length, 0), 1) * WIDTH
  local width = math.min(duration / scale.length * WIDTH, WIDTH - x)
  return x, width
end

local function place_of(scale, entry)
  return place(scale, format.instant(entry.started_at) or scale.start, entry.duration_ms)
end

local function bar(x, width, y, class)
  width = math.max(width, 2)
  return h.rect { x = ("%.1f"):format(math.min(x, WIDTH - width)), y = y, width = ("%.1f"):format(width), height = LANE, class = class }
end

--- Bars of a lane, those too narrow to be told apart drawn as one: there are never more than WIDTH.
local function lane(marks, y)
  table.sort(marks, function(a, b) return a.x < b.x end)
  local bars, last = {}, nil
  local function draw()
    if last then
      bars[#bars + 1] = h.a { href = last.href, tabindex = -1, html.title(last.title), bar(last.x, last.stop - last.x, y, last.class) }
    end
  end
  for _, mark in ipairs(marks) do
    local stop = mark.x + mark.width
    if last and math.max(stop, last.stop) - last.x <= NARROW then
      last.stop = math.max(last.stop, stop)
      if rank[mark.class] > rank[last.class] then last.class, last.href, last.title = mark.class, mark.href, mark.title end
    else
      draw()
      last = { x = mark.x, stop = stop, class = mark.class, href = mark.href, title = mark.title }
    end
  end
  draw()
  return bars
end

local function step_marks(scale, steps)
  local marks = {}
  for i, entry in ipairs(steps) do
    if entry.status ~= "skipped" then
      local x, width = place_of(scale, entry)
      marks[#marks + 1] = { x = x, width = width, class = entry.status, href = "#s" .. i,
        title = ("step %d, %s, %s"):format(i, entry.type, format.duration(entry.duration_ms)) }
    end
  end
  return marks
end

local function turn_marks(scale, turns)
  local marks = {}
  for i, turn in ipairs(turns) do
    local at, duration = format.instant(turn.at), turn.duration_ms or 0
    if at then
      local x, width = place(scale, at - duration, duration)
      marks[#marks + 1] = { x = x, width = width, class = "model", href = "#t" .. i,
        title = ("turn %d of the model, %s"):format(i, format.duration(duration)) }
    end
  end
  return marks
end

--- The distance of ticks: 1, 2 or 5 of a power of ten, so that there are few.
local function tick_of(length)
  local power = 1
  while true do
    for _, factor in ipairs { 1, 2, 5 } do
      if length / (factor * power) <= MOST_TICKS then return factor * power end
    end
    power = power * 10
  end
end

local function ticks(scale)
  local marks, distance = {}, tick_of(scale.length)
  for at = 0, scale.length * 0.97 // 1, distance do
    local share = at / scale.length * 100
    local is_late = share > LATE -- its label goes to the left of it: on the right there is no room
    local side = is_late and ("right:%.2f%%"):format(100 - share) or ("left:%.2f%%"):format(share)
    marks[#marks + 1] = h.span { class = is_late and "late", style = side, at == 0 and "0" or format.duration(at) }
  end
  return h.div { class = "ticks", ["aria-hidden"] = "true", marks }
end

---@param source report.source
---@return html.element|false
function timeline.view(source)
  local scale = scale_of(source.result)
  local steps = step_marks(scale, source.result.steps)
  local turns = source.journal and turn_marks(scale, source.journal.turns) or {}
  if #steps + #turns == 0 then return false end
  local step_bars, turn_bars = lane(steps, STEPS_LANE), lane(turns, MODEL_LANE)
  local close = #step_bars + #turn_bars < #steps + #turns
  local height = #turns > 0 and MODEL_LANE + LANE or LANE
  return html.section("Timeline",
    h.svg { class = #turns > 0 and "strip two" or "strip", viewBox = ("0 0 %d %d"):format(WIDTH, height),
      preserveAspectRatio = "none", ["aria-hidden"] = "true",
      h.rect { class = "track", width = WIDTH, y = STEPS_LANE, height = LANE },
      step_bars,
      #turns > 0 and { h.rect { class = "track", width = WIDTH, y = MODEL_LANE, height = LANE }, turn_bars },
    },
    ticks(scale),
    h.p { class = "quiet", #turns > 0 and "Steps are above, the model is below. ", "Select a bar to jump to its step.",
      close and " What is too close to be told apart is one bar, of the colour of the worst." })
end

return timeline
