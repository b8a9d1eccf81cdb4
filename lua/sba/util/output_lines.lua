-- SPDX-License-Identifier: Apache-2.0
-- What commands print, as lines for a terminal or a text log: colours are kept where they are wanted, and nothing else in
-- them is obeyed.

local lines = require "sba.util.lines"
local printable = require "sba.util.printable"
local sgr = require "sba.util.sgr"

local output_lines = {}

--- What a terminal shows of a line in which the carriage went back: what came last.
---@param line string
---@return string
function output_lines.overwritten(line)
  local last = line:sub(-1) == "\r" and #line - 1 or #line
  local from, at = 1, line:find("\r", 1, true)
  while at and at < last do
    from, at = at + 1, line:find("\r", at + 1, true)
  end
  return line:sub(from, last)
end

---The last lines of a text.
---@param text string
---@param most integer
---@return string[] lines
---@return boolean more there are others before them
function output_lines.last(text, most)
  local ring, count = {}, 0
  for _, line in lines(text) do
    ring[count % most + 1], count = line, count + 1
  end
  local list = {}
  for i = math.max(0, count - most), count - 1 do list[#list + 1] = output_lines.overwritten(ring[i % most + 1]) end
  return list, count > most
end

---Cuts a line to so many columns.
---@param line string as the output has it
---@param style sgr.style at its beginning
---@param look { columns: number, colour: boolean, more: string } more: stands for what is cut off; math.huge columns: nothing is
---@return string shown
---@return sgr.style style at its end
function output_lines.fit(line, style, look)
  local parts, room = {}, look.columns
  local runs, last = sgr.runs(line, style)
  for _, run in ipairs(runs) do
    local words = printable.line(run.text)
    local width = room == math.huge and 0 or printable.width(words)
    if width > room then words = printable.shortened(words, room, look.more) end
    parts[#parts + 1] = look.colour and sgr.painted(run.style, words) or words
    if width > room then break end
    room = room - width
  end
  return table.concat(parts), last
end

return output_lines
