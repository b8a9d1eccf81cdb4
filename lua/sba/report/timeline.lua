-- SPDX-License-Identifier: Apache-2.0
-- Time, to scale: a strip of the whole job, with its steps and the turns of the model.

local html = require "sba.report.html"
local parts = require "sba.report.parts"
local words = require "sba.util.words"

local h = html.elements
local timeline = {}

local WIDTH <const>, NARROWEST <const> = 1000, 2 -- units of the drawing: of the whole job, and of a bar
local STEPS_LANE <const>, MODEL_LANE <const>, LANE <const> = 0, 18, 14 -- y, y, height
local TICKS <const> = 5

--- A part of the strip that leads to what it stands for. at: milliseconds since the job began.
local function bar(length, at, duration, y, class, href, name)
  local x = math.min(math.max(at / length, 0), 1) * WIDTH
  local width = math.max(math.min(duration / length * WIDTH, WIDTH - x), NARROWEST)
  return h.a { href = href, tabindex = -1, html.title(("%s, %s"):format(name, words.duration(duration))),
    h.rect { x = ("%.1f"):format(math.min(x, WIDTH - width)), y = y, width = ("%.1f"):format(width), height = LANE, class = class } }
end

local function track(y) return h.rect { class = "track", width = WIDTH, y = y, height = LANE } end

---@param source report.source
---@return html.element|false
function timeline.view(source)
  local result, bars = source.result, { track(STEPS_LANE) }
  local start = parts.instant(result.started_at) or 0
  local length = math.max((parts.instant(result.finished_at) or start) - start, result.duration_ms, 1)
  for i, entry in ipairs(result.steps) do
    if entry.status ~= "skipped" then
      local at = (parts.instant(entry.started_at) or start) - start
      bars[#bars + 1] = bar(length, at, entry.duration_ms, STEPS_LANE, entry.status, "#s" .. i, ("step %d, %s"):format(i, entry.type))
    end
  end
  local turns, ticks = source.journal and source.journal.exchanges or {}, {}
  if #turns > 0 then bars[#bars + 1] = track(MODEL_LANE) end
  for i, turn in ipairs(turns) do
    local at, duration = parts.instant(turn.at), turn.reply.duration_ms or 0
    if at then bars[#bars + 1] = bar(length, at - duration - start, duration, MODEL_LANE, "model", "#t" .. i, "turn " .. i) end
  end
  if #result.steps + #turns == 0 then return false end
  for i = 1, TICKS do ticks[i] = h.span { i == 1 and "0" or words.duration((i - 1) * length // TICKS) } end
  return html.section("Timeline",
    h.svg { class = #turns > 0 and "strip two" or "strip", preserveAspectRatio = "none", ["aria-hidden"] = "true",
      viewBox = ("0 0 %d %d"):format(WIDTH, #turns > 0 and MODEL_LANE + LANE or LANE), bars },
    h.div { class = "ticks", ["aria-hidden"] = "true", ticks },
    h.p { class = "quiet", #turns > 0 and "Steps are above, the model is below. ", "Select a bar to jump to its step." })
end

return timeline
