-- SPDX-License-Identifier: Apache-2.0
-- What runs, on a terminal: its last lines, kept for a view that is drawn again and again; or all of it, line after line.

local output_lines = require "sba.util.output_lines"
local sgr = require "sba.util.sgr"

local scroll = {}
scroll.__index = scroll

local LONGEST_LINE <const> = 4096 -- bytes of a line whose end has not come; of a longer one the end is kept
local LONGEST_SEQUENCE <const> = 64 -- bytes at the end that may be half of a control sequence

---@param most integer lines
function scroll.new(most)
  return setmetatable({ most = most, kept = {}, rest = "", style = sgr.plain }, scroll)
end

---Adds text.
---@param text string UTF-8
function scroll:add(text)
  text = self.rest .. text
  local newline = #text
  while newline > 0 and text:byte(newline) ~= 10 do newline = newline - 1 end
  for _, line in ipairs((output_lines.last(text:sub(1, newline), self.most))) do
    table.insert(self.kept, { line, self.style })
    self.style = select(2, sgr.runs(line, self.style))
  end
  while #self.kept > self.most do table.remove(self.kept, 1) end
  self.rest = text:sub(math.max(newline + 1, #text - LONGEST_LINE + 1))
end

---The last lines, the one whose end has not come among them.
---@param count integer at most
---@param look { columns: integer, colour: boolean, more: string }
---@return string[]
function scroll:lines(count, look)
  local list, shown = {}, table.move(self.kept, 1, #self.kept, 1, {})
  local rest = output_lines.overwritten(self.rest)
  if rest ~= "" then shown[#shown + 1] = { rest, self.style } end
  for i = math.max(1, #shown - count + 1), #shown do list[#list + 1] = (output_lines.fit(shown[i][1], shown[i][2], look)) end
  return list
end

--- The text without half of a control sequence at its end.
local function without_half(text)
  for at = #text, math.max(1, #text - LONGEST_SEQUENCE), -1 do
    if text:byte(at) == 27 then return text:find("^\27%[?[%d;:]*$", at) and at - 1 or #text end
  end
  return #text
end

---All that is added, as text to be written after what was written before.
---@param text string UTF-8
---@param indent string before each line
---@param look { colour: boolean }
---@return string
function scroll:flow(text, indent, look)
  text = self.rest .. text
  local size, parts, wide = without_half(text), {}, { columns = math.huge, colour = look.colour }
  if text:sub(size, size) == "\r" then size = size - 1 end -- a newline may follow
  self.rest = text:sub(size + 1)
  text = text:sub(1, size):gsub("\r\n", "\n"):gsub("\r", "\n")
  local from = 1
  while from <= #text do
    local newline = text:find("\n", from, true)
    local words, style = output_lines.fit(text:sub(from, (newline or #text + 1) - 1), self.style, wide)
    parts[#parts + 1] = (self.in_line and "" or indent) .. words .. (newline and "\n" or "")
    self.style, self.in_line, from = style, not newline, (newline or #text) + 1
  end
  return table.concat(parts)
end

---What ends the flow: the rest, and a newline where one is missing.
---@param indent string
---@param look { colour: boolean }
---@return string
function scroll:ending(indent, look)
  return (self.in_line or self.rest ~= "") and self:flow("\n", indent, look) or ""
end

return scroll
