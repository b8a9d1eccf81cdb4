-- SPDX-License-Identifier: Apache-2.0
-- Blocks of foreign text: bounded, head and tail with the count left out; the lines of a diff are coloured. The signs at their
-- beginnings stay: colour is never all there is.

local excerpt = require "sba.util.excerpt"
local h = require "sba.report.html".elements
local lines = require "sba.util.lines"
local lpeg = require "lpeg"
local text = require "native.text"

local block = {}

local LONG <const> = 24 -- lines of an output that are seen at once
local TAIL_LINES <const>, TAIL_BYTES <const> = 20, 8192 -- of the end alone

-- The first that fits a line says what it is.
local kinds <const> = {
  { "^diff ", "file" }, { "^%+%+%+ ", "file" }, { "^%-%-%- ", "file" }, { "^%*%*%* ", "file" },
  { "^@@", "hunk" }, { "^%+", "added" }, { "^%-", "removed" },
}

local function kind_of(line)
  for _, kind in ipairs(kinds) do
    if line:find(kind[1]) then return kind[2] end -- bounded: all of them are anchored and short
  end
end

local function is_diff(bytes)
  return bytes:find("^diff %-%-git ") ~= nil or bytes:find("^%-%-%- [^\n]*\n%+%+%+ ") ~= nil
end

--- The lines of a diff, those of one kind that follow each other in one element.
local function diff_lines(bytes)
  local runs, kind, first = {}, nil, 1
  local function close(last)
    local run = bytes:sub(first, last)
    if run ~= "" then runs[#runs + 1] = kind and h.span { class = kind, run } or run end
  end
  for at, line in bytes:gmatch("()([^\n]*)\n?") do
    local this = kind_of(line)
    if this ~= kind then
      close(at - 1)
      kind, first = this, at
    end
  end
  close(#bytes)
  return runs
end

-- What programs send a terminal for colours, and to erase the rest of a line (ECMA-48: SGR, EL).
local colour <const> = lpeg.P "\27[" * lpeg.S "0123456789;:" ^ 0 * lpeg.S "mK"
local without_colours <const> = lpeg.Cs((colour / "" + (1 - colour) ^ 1) ^ 0)

--- An output as a terminal without colours shows it.
local function as_shown(bytes)
  local list = {}
  for _, line, is_whole in lines(lpeg.match(without_colours, bytes)) do
    list[#list + 1] = excerpt.overwritten(line) .. (is_whole and "\n" or "")
  end
  return table.concat(list)
end

--- A box that opens at its end: it lays out its one child from there.
local function opens_at_end(class, content)
  return h.pre { class = class, tabindex = 0, h.span { class = "whole", content } }
end

---@param label? string what it is
---@param bytes string UTF-8
---@param limit integer bytes that are shown
---@param as_diff? boolean it is a diff, whatever it begins with
---@return table children
function block.view(label, bytes, limit, as_diff)
  local shown = excerpt.of(bytes, limit)
  return {
    label and h.p { class = "label", label },
    h.pre { (as_diff or is_diff(bytes)) and diff_lines(shown) or shown },
  }
end

---What a step printed. Where it is long it opens at its end, which is where what went wrong stands.
---@param bytes string UTF-8
---@param limit integer bytes that are shown
---@return table children
function block.output(bytes, limit)
  if is_diff(bytes) then return block.view("Output", bytes, limit) end
  local shown = as_shown((excerpt.of(bytes, limit)))
  return { h.p { class = "label", "Output" }, text.count_lines(shown) > LONG and opens_at_end("ends", shown) or h.pre { shown } }
end

---The last lines of an output, for the place where a job says why it failed.
---@param bytes string UTF-8
---@return html.element
function block.tail(bytes)
  local list, more = excerpt.last_lines(bytes, TAIL_LINES)
  local last = as_shown(text.tail(table.concat(list, "\n"), TAIL_BYTES))
  return opens_at_end("ends tail", { more and h.b { class = "note", "[...]\n" }, last })
end

return block
