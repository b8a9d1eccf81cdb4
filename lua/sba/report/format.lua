-- SPDX-License-Identifier: Apache-2.0
-- Sizes, times, statuses and calls as a report says them.

local describe = require "sba.util.describe"
local h = require "sba.report.html".elements
local native_text = require "native.text"
local utc = require "sba.util.utc"

local format = {}

local MINUTE <const>, HOUR <const> = 60000, 3600000 -- milliseconds

---@param ms integer
---@return string "< 1 ms", "12 ms", "3.4 s", "2 min 05 s", "1 h 02 min"
function format.duration(ms)
  if ms < 1 then return "< 1 ms" end
  if ms < 1000 then return ("%d ms"):format(ms) end
  if ms < MINUTE then return ("%.1f s"):format(ms / 1000) end
  if ms < HOUR then return ("%d min %02d s"):format(ms // MINUTE, ms % MINUTE // 1000) end
  return ("%d h %02d min"):format(ms // HOUR, ms % HOUR // MINUTE)
end

---@param bytes integer
---@return string "12 bytes", "3.4 KiB"
function format.size(bytes)
  local unit, units = 0, { "KiB", "MiB", "GiB", "TiB" }
  local value = bytes
  while value >= 1024 and unit < #units do
    value, unit = value / 1024, unit + 1
  end
  return unit == 0 and format.count(bytes, "byte") or ("%.1f %s"):format(value, units[unit])
end

---@param number integer
---@param thing string in the singular
---@return string "1 step", "5 000 steps", with narrow no-break spaces
function format.count(number, thing)
  local digits = tostring(number):reverse():gsub("(%d%d%d)", "%1 "):reverse():gsub("^ ", "")
  return ("%s %s%s"):format(digits:gsub(" ", "\u{202f}"), thing, number == 1 and "" or "s")
end

--- Milliseconds since 1970-01-01 UTC of a time as results have it, or nil.
---@param time any RFC 3339 in UTC
---@return integer?
function format.instant(time)
  local year, month, day, hour, minute, second = tostring(time):match("^(%d%d%d%d)%-(%d%d)%-(%d%d)T(%d%d):(%d%d):(%d%d%.?%d*)Z$")
  if not year then return nil end
  return math.floor(utc(tonumber(year), tonumber(month), tonumber(day), tonumber(hour), tonumber(minute), tonumber(second)) * 1000 + 0.5)
end

local months <const> = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" }

---A time for people, with the exact one as its tooltip.
---@param time string RFC 3339 in UTC; what is none is shown as it is
---@return html.element|string "31 Jan 2026, 12:00:00 UTC"
function format.time(time)
  if not format.instant(time) then return time end
  local year, month, day, clock = time:match("^(%d%d%d%d)%-(%d%d)%-(%d%d)T(%d%d:%d%d:%d%d)")
  local name = months[tonumber(month)]
  if not name then return time end
  return h.time { datetime = time, title = time, class = "nowrap", ("%d %s %s, %s UTC"):format(tonumber(day), name, year, clock) }
end

---@param text string UTF-8
---@param limit integer bytes, without the mark of a cut
---@return string
function format.shortened(text, limit)
  return #text > limit and native_text.cut(text, limit) .. "…" or text
end

---What a call is about, in a few words.
---@param call { arguments: table } of a journal or a job file, whose arguments may be of any shape
---@return string "" where they are not what the type asks for
function format.about(call)
  local ok, what = pcall(describe, call)
  return ok and type(what) == "string" and what or ""
end

-- What stands for a status, and how it and its time are said; the sign is never all there is.
format.status = {
  success = { sign = "✓", name = "succeeded", lasted = "took" },
  failure = { sign = "✗", name = "failed", lasted = "took" },
  timeout = { sign = "◷", name = "timed out", lasted = "took" },
  skipped = { sign = "–", name = "skipped" },
  -- Of a job that is not over.
  running = { sign = "▸", name = "running", verb = "is ", lasted = "has run for" },
  interrupted = { sign = "✗", name = "interrupted", verb = "was ", lasted = "ran for at least" },
}

return format
