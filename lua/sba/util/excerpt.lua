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
  local head, tail = text.cut(bytes, room // 2), text.tail(bytes, room - room // 2)
  return head .. NOTE:format(#bytes - #head - #tail) .. tail
end
