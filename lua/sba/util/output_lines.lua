-- SPDX-License-Identifier: Apache-2.0
-- What commands print, as lines.

local lines = require "sba.util.lines"

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

return output_lines
