-- SPDX-License-Identifier: Apache-2.0
-- What a step printed: its lines, each a target for links, in the colours that the command gave them. Where it is long it opens at
-- its end, which is where what went wrong stands.

local excerpt = require "sba.util.excerpt"
local h = require "sba.report.html".elements
local lines = require "sba.util.lines"
local native_text = require "native.text"
local output_lines = require "sba.util.output_lines"
local sgr = require "sba.util.sgr"

local output = {}

local MOST_LINKED <const> = 20000 -- lines of a page that are targets
local LONG <const> = 24 -- lines that are seen at once
local TAIL_LINES <const>, TAIL_BYTES <const> = 20, 8192 -- of the end alone

local linked = 0

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

local function coloured(text, style)
  local parts = {}
  local runs, last = sgr.runs(text, style)
  for i, run in ipairs(runs) do
    local class = class_of(run.style)
    parts[i] = class and h.i { class = class, run.text } or run.text
  end
  return parts, last
end

--- The lines of a part of the output, the first with that number. id: of the step's element; nil: no targets.
local function rows(part, first, id)
  local list, style, number = {}, sgr.plain, first - 1
  for _, text, is_whole in lines(part) do
    number = number + 1
    local shown
    shown, style = coloured(output_lines.overwritten(text), style)
    if not id or linked >= MOST_LINKED then
      list[#list + 1] = { shown, is_whole and "\n" or "" }
    else
      linked = linked + 1
      local name = ("%sl%d"):format(id, number)
      local link = h.a { href = "#" .. name, ["data-line"] = number, ["aria-label"] = "line " .. number }
      list[#list + 1] = h.span { class = "line", id = name, link, shown, is_whole and "\n" or "" }
    end
  end
  return list, number
end

---@param label string what it is
---@param bytes string UTF-8
---@param limit integer bytes that are shown
---@param id? string of the step's element: its lines are targets for links, "s1l20"
---@return table children
function output.view(label, bytes, limit, id)
  local shown, is_cut = excerpt.of(bytes, limit)
  local list, count
  if is_cut then
    local half = limit // 2
    local note = shown:find("\n[... ", math.max(1, half - 200), true) or #shown
    local head, rest = shown:sub(1, note), shown:sub(note + 1)
    local after = rest:find("\n", 1, true) or #rest
    local tail = rest:sub(after + 1)
    local tail_rows = rows(tail, native_text.count_lines(bytes) - native_text.count_lines(tail) + 1, id)
    list = { rows(head, 1, id), h.b { class = "note", rest:sub(1, after) }, tail_rows }
    count = LONG + 1
  else
    list, count = rows(shown, 1, id)
  end
  -- In a column that is laid out from its end, a box opens at its end.
  return { h.p { class = "label", label }, h.pre { class = count > LONG and "ends" or false, tabindex = count > LONG and 0 or false,
    count > LONG and h.span { class = "whole", list } or list } }
end

---The last lines, for the place where a job says why it failed.
---@param bytes string UTF-8
---@return table children
function output.tail(bytes)
  local list, more = output_lines.last(bytes, TAIL_LINES)
  local text = native_text.tail(table.concat(list, "\n"), TAIL_BYTES)
  return h.pre { class = "tail", more and h.b { class = "note", "[...]\n" }, (rows(text, 1, nil)) }
end

return output
