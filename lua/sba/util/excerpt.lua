-- SPDX-License-Identifier: Apache-2.0
-- Head and tail of a text that is too long. A line between them says how many bytes are left out.

local lines = require "sba.util.lines"
local text = require "native.text"

local excerpt = {}

local NOTE <const> = "\n[... %d of %d bytes left out%s ...]\n"
local NOTE_ROOM <const> = 80 -- bytes that the note may take
local HINT_ROOM <const> = 120 -- bytes that a hint in it may take
local LINES_NOTE <const> = "[... lines %d to %d of %d left out (%d bytes)%s ...]\n"
local LINES_ROOM <const> = 120 -- bytes that this note may take

---Joins a head and a tail within a limit.
---@param head string UTF-8
---@param tail string UTF-8; may overlap with the head
---@param total integer bytes of the whole text
---@param limit integer bytes of what is returned
---@param hint? fun(offset: integer): string how to read on from that byte; "; " goes before it
---@return string
function excerpt.join(head, tail, total, limit, hint)
  if limit <= NOTE_ROOM then return text.cut(head, limit) end
  if limit <= NOTE_ROOM + HINT_ROOM then hint = nil end
  local room = limit - NOTE_ROOM - (hint and HINT_ROOM or 0)
  head, tail = text.cut(head, room // 2), text.tail(tail, room - room // 2)
  return head .. NOTE:format(total - #head - #tail, total, hint and "; " .. hint(#head) or "") .. tail
end

---Shortens a text to a limit, to whole lines at its beginning and end. Where these are too long for that: as excerpt.of does.
---@param bytes string UTF-8
---@param limit integer bytes of what is returned
---@param hint fun(offset: integer, line?: integer): string how to read on from that byte, which is the beginning of that line
---@return string
function excerpt.of_lines(bytes, limit, hint)
  local room = limit - LINES_ROOM - HINT_ROOM
  local head, tail = text.cut(bytes, math.max(0, room // 2)), text.tail(bytes, math.max(0, room - room // 2))
  local back, on = head:reverse():find("\n", 1, true), tail:find("\n", 1, true)
  if #bytes <= limit or not back or not on or back > #head // 2 or on > #tail // 2 then return (excerpt.of(bytes, limit, hint)) end
  head, tail = head:sub(1, #head - back + 1), tail:sub(on + 1)
  local total, first, last = text.count_lines(bytes), text.count_lines(head) + 1, text.count_lines(tail)
  local note = LINES_NOTE:format(first, total - last, total, #bytes - #head - #tail, "; " .. hint(#head, first))
  return head .. note .. tail
end

---Shortens a text to a limit.
---@param bytes string UTF-8
---@param limit integer bytes of what is returned
---@param hint? fun(offset: integer): string see join
---@return string, boolean is_cut
function excerpt.of(bytes, limit, hint)
  if #bytes <= limit then return bytes, false end
  return excerpt.join(bytes, bytes, #bytes, limit, hint), true
end

--- What a terminal shows of a line in which the carriage went back: what came last.
---@param line string
---@return string
function excerpt.overwritten(line)
  return (text.trim_end(line, "\r"):gsub("^.*\r", ""))
end

---The last lines of a text.
---@param bytes string
---@param most integer
---@return string[] lines
---@return boolean more there are others before them
function excerpt.last_lines(bytes, most)
  local ring, count = {}, 0
  for _, line in lines(bytes) do
    ring[count % most + 1], count = line, count + 1
  end
  local list = {}
  for i = math.max(0, count - most), count - 1 do list[#list + 1] = excerpt.overwritten(ring[i % most + 1]) end
  return list, count > most
end

return excerpt
