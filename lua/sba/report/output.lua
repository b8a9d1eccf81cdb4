-- SPDX-License-Identifier: Apache-2.0
-- What a step printed: its lines, each a target for links, in the colours that the command gave them. Where it is long it opens at
-- its end, which is where what went wrong stands.

local h = require "sba.report.html".elements
local lines = require "sba.util.lines"
local output_lines = require "sba.util.output_lines"
local sgr = require "sba.util.sgr"
local text = require "native.text"

local output = {}

local LONG <const> = 24 -- lines that are seen at once
local TAIL_LINES <const>, TAIL_BYTES <const> = 20, 8192 -- of the end alone

--- The classes of a style, "c1 on4 bold", or nil where it is plain.
local function class_of(style)
  local list = {}
  if style.foreground then list[1] = "c" .. sgr.sixteen(style.foreground) end
  if style.background then list[#list + 1] = "on" .. sgr.sixteen(style.background) end
  for _, name in ipairs { "bold", "dim", "italic", "underlined", "reversed" } do
    if style[name] then list[#list + 1] = name end
  end
  return #list > 0 and table.concat(list, " ") or nil
end

local function coloured(line, style)
  local parts = {}
  local runs, last = sgr.runs(line, style)
  for i, run in ipairs(runs) do
    local class = class_of(run.style)
    parts[i] = class and h.i { class = class, run.text } or run.text
  end
  return parts, last
end

---@class report.targets
---@field left integer lines of the page that may still be targets for links

--- The lines of a part of the output, the first with that number. id: of the step's element; nil: no targets. Where too few are
--- left, the last lines have them.
local function rows(part, first, id, targets)
  local list, style, number = {}, sgr.plain, first - 1
  local plain = id and number + math.max(0, text.count_lines(part) - targets.left)
  for _, line, is_whole in lines(part) do
    number = number + 1
    local shown
    shown, style = coloured(output_lines.overwritten(line), style)
    if not id or number <= plain then
      list[#list + 1] = { shown, is_whole and "\n" or "" }
    else
      targets.left = targets.left - 1
      local name = ("%sl%d"):format(id, number)
      local link = h.a { href = "#" .. name, ["data-line"] = number, ["aria-label"] = "line " .. number }
      list[#list + 1] = h.span { class = "line", id = name, link, shown, is_whole and "\n" or "" }
    end
  end
  return list
end

--- A box that opens at its end: it lays out its one child from there.
local function ends(class, digits, content)
  return h.pre { class = "ends" .. class, style = digits, tabindex = 0, h.span { class = "whole", content } }
end

---@param label string what it is
---@param bytes string UTF-8
---@param limit integer bytes that are shown
---@param id string of the step's element: its lines are targets for links, "s1l20"
---@param targets report.targets
---@return table children
function output.view(label, bytes, limit, id, targets)
  local count = text.count_lines(bytes)
  local list
  if #bytes <= limit then
    list = rows(bytes, 1, id, targets)
  else
    local head, tail = text.cut(bytes, limit // 2), text.tail(bytes, limit // 2)
    local note = ("\n[... %d of %d bytes left out ...]\n"):format(#bytes - #head - #tail, #bytes)
    local last = rows(tail, count - text.count_lines(tail) + 1, id, targets) -- before the head, for it needs the targets more
    list = { rows(head, 1, id, targets), h.b { class = "note", note }, last }
  end
  local digits = "--digits:" .. math.max(3, #tostring(count))
  return { h.p { class = "label", label }, count > LONG and ends("", digits, list) or h.pre { style = digits, list } }
end

---The last lines, for the place where a job says why it failed.
---@param bytes string UTF-8
---@return table children
function output.tail(bytes)
  local list, more = output_lines.last(bytes, TAIL_LINES)
  local last = text.tail(table.concat(list, "\n"), TAIL_BYTES)
  return ends(" tail", nil, { more and h.b { class = "note", "[...]\n" }, rows(last, 1) })
end

return output
