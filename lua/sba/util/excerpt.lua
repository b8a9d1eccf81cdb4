-- SPDX-License-Identifier: Apache-2.0
-- Head and tail of a text that is too long. A line between them says how many bytes are left out.

local text = require "native.text"

local excerpt = {}

local NOTE <const> = "\n[... %d of %d bytes left out%s ...]\n"
local NOTE_ROOM <const> = 80 -- bytes that the note may take
local HINT_ROOM <const> = 120 -- bytes that a hint in it may take

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

---Shortens a text to a limit.
---@param bytes string UTF-8
---@param limit integer bytes of what is returned
---@param hint? fun(offset: integer): string see join
---@return string, boolean is_cut
function excerpt.of(bytes, limit, hint)
  if #bytes <= limit then return bytes, false end
  return excerpt.join(bytes, bytes, #bytes, limit, hint), true
end

return excerpt
