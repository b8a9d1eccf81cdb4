-- SPDX-License-Identifier: Apache-2.0
-- Head and tail of a text that is too long, with the count left out between them.

local text = require "native.text"

local NOTE <const> = "\n[%d bytes left out]\n"
local NOTE_ROOM <const> = 40 -- bytes that the note may take

---@param bytes string UTF-8
---@param limit integer bytes of what is returned
---@return string
return function(bytes, limit)
  if #bytes <= limit then return bytes end
  if limit <= NOTE_ROOM then return text.cut(bytes, limit) end
  local room = limit - NOTE_ROOM
  local head = text.cut(bytes, room // 2)
  local at = #bytes - (room - room // 2) + 1
  while at <= #bytes and bytes:byte(at) & 0xC0 == 0x80 do at = at + 1 end
  return head .. NOTE:format(at - 1 - #head) .. bytes:sub(at)
end
