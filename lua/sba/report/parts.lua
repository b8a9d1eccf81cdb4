-- SPDX-License-Identifier: Apache-2.0
-- Parts of a report's sections: blocks of foreign text, what is folded, times and statuses. The
-- lines of a diff are coloured, but their signs stay: colour is never all there is.

local catalogue = require "sba.catalogue"
local excerpt = require "sba.util.excerpt"
local h = require "sba.report.html".elements
local humanize = require "sba.util.humanize"
local text = require "native.text"

local parts = {}

local TIME <const> = "^(%d%d%d%d)%-(%d%d)%-(%d%d)T(%d%d):(%d%d):(%d%d%.?%d*)Z$"
-- Of the end of an output alone.
local TAIL_LINES <const>, TAIL_BYTES <const> = 20, 8192

-- How a status and its time are said; the sign is never all there is.
parts.status = {
  success = { sign = "✓", name = "succeeded", lasted = "took" },
  failure = { sign = "✗", name = "failed", lasted = "took" },
  timeout = { sign = "◷", name = "timed out", lasted = "took" },
  skipped = { sign = "–", name = "skipped" },
  -- Of a step, see parts.state.
  tolerated = { sign = "!", name = "failed, which is tolerated", lasted = "took" },
  -- Of a job that is not over.
  running = { sign = "▸", name = "is running", lasted = "has run for" },
  interrupted = { sign = "✗", name = "was interrupted", lasted = "ran for at least" },
}

---@param line string
---@param limit integer bytes
---@return string with "…" where it is cut
function parts.cut(line, limit) return #line > limit and text.cut(line, limit) .. "…" or line end

---@param entry table of a step
---@return string name in parts.status: how it ended, and whether that is tolerated
function parts.state(entry) return entry.tolerated and "tolerated" or entry.status end

---@param sign string
---@param class string
---@return html.element
function parts.sign(sign, class)
  return h.span { class = "sign " .. class, ["aria-hidden"] = "true", sign }
end

---@param time any RFC 3339 in UTC, as results have it
---@return integer? ms since 1970-01-01 UTC; nil for anything else
function parts.instant(time)
  local date = { tostring(time):match(TIME) } -- from the year to the second
  return date[1] and humanize.utc(table.unpack(date))
end

---@param time string RFC 3339 in UTC
---@return html.element "2026-01-31 12:00:00 UTC"
function parts.time(time)
  local shown = time:gsub("T", " ", 1):gsub("%.%d+Z$", " UTC")
  return h.time { datetime = time, title = time, class = "nowrap", shown }
end

---What a call is about, in a few words: the step type's own, where it has some.
---@param call? { type?: string, name?: string, arguments: table } of any shape; of a model's calls the
---name is the type; nil: it is not known
---@param result? any what it returned
---@return string "" where the arguments are not what the type asks for
function parts.about(call, result)
  if not call then return "" end
  local step = { type = call.type or call.name, arguments = call.arguments }
  local ok, what = pcall(catalogue.what, step, type(result) == "table" and result or nil)
  return ok and what or ""
end

-- The class of a line of a diff: the first that fits.
local kinds <const> = {
  { "^diff ", "file" }, { "^%+%+%+ ", "file" }, { "^%-%-%- ", "file" }, { "^%*%*%* ", "file" },
  { "^@@", "hunk" }, { "^%+", "added" }, { "^%-", "removed" },
}

local function diff_line(line)
  for _, kind in ipairs(kinds) do
    local is_one = line:find(kind[1]) -- bounded: all of them are anchored and short
    if is_one then return h.span { class = kind[2], line } end
  end
  return line
end

local function is_diff(bytes)
  return bytes:find("^diff %-%-git ") ~= nil or bytes:find("^%-%-%- [^\n]*\n%+%+%+ ") ~= nil
end

---@param label? string
---@param bytes string UTF-8
---@param limit integer bytes that are shown
---@param as_diff? boolean it is a diff, whatever it begins with
---@return table children
function parts.block(label, bytes, limit, as_diff)
  local content = excerpt.of(bytes, limit)
  if as_diff or is_diff(bytes) then
    local lines = {}
    for after, _, _, at in excerpt.lines(content) do
      lines[#lines + 1] = diff_line(content:sub(at, after - 1))
    end
    content = lines
  end
  return { label and h.p { class = "label", label }, h.pre { content } }
end

---As a terminal without colours shows it. The box opens at its end, where the cause of a failure
---stands: it lays out its child from there.
---@param label string
---@param bytes string UTF-8
---@param limit integer bytes that are shown
---@return table children
function parts.output(label, bytes, limit)
  if is_diff(bytes) then return parts.block(label, bytes, limit) end
  local list, shown = {}, excerpt.of(bytes, limit):gsub("\27%[[%d;:]*[mK]", "")
  for _, line, is_whole in excerpt.lines(shown) do
    list[#list + 1] = excerpt.overwritten(line) .. (is_whole and "\n" or "")
  end
  local whole = h.span { class = "whole", table.concat(list) }
  return { h.p { class = "label", label }, h.pre { class = "ends", tabindex = 0, whole } }
end

---@param bytes string UTF-8
---@return table children
function parts.tail(bytes)
  local list, more = excerpt.last_lines(bytes, TAIL_LINES)
  local shown = (more and "[...]\n" or "") .. table.concat(list, "\n")
  return parts.output("The end of its output", shown, TAIL_BYTES)
end

---A link's target is inside: a browser opens what is folded around it.
---@param about { class: string, id?: string, open?: boolean }
---@param summary table children
---@param ... any children
---@return html.element
function parts.fold(about, summary, ...)
  return h.details {
    class = about.class, open = about.open,
    h.summary { summary }, h.div { class = "inside", id = about.id, ... },
  }
end

return parts
