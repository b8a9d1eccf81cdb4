-- SPDX-License-Identifier: Apache-2.0
-- The plain text of a step as the result carries it: at most 16 KiB, head and tail with the count left out between them.

local text = require "native.text"

local LIMIT <const> = 16 * 1024
local HALF <const> = LIMIT // 2 - 64 -- leaves room for the line between

--- Shortens text to what a result carries.
---@param bytes string
---@return string utf8
return function(bytes)
  if #bytes <= LIMIT then
    local repaired = text.repair(bytes)
    if #repaired <= LIMIT then return repaired end
    bytes = repaired
  end
  local head = text.cut(text.repair(bytes:sub(1, LIMIT)), HALF)
  local rest = text.tail(text.repair(bytes:sub(-LIMIT)), HALF)
  return ("%s\n[... %d bytes left out ...]\n%s"):format(head, #bytes - #head - #rest, rest)
end
