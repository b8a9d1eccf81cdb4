-- SPDX-License-Identifier: Apache-2.0
-- What is wrong with a JSON text, in words for people: line, column, what was expected and what is there. Loaded only where
-- something is.

local text = require "native.text"

-- What stands at a place, for people.
local function found(bytes, offset)
  local at = offset + 1
  if at > #bytes then return "the end of the text" end
  local word = bytes:match("^[%w_.+-]+", at)
  if word then return "'" .. text.cut(word, 20) .. "'" end
  local byte = bytes:byte(at)
  if byte < 0x20 or byte == 0x7F then return ("the control character U+%04X"):format(byte) end
  return "'" .. bytes:match("^" .. utf8.charpattern, at) .. "'" -- bounded: one character
end

-- Line and column (in characters) of a place, from 1.
local function place(bytes, offset)
  local line, line_start, from = 1, 1, 1
  while true do
    local newline = bytes:find("\n", from, true)
    if not newline or newline > offset then break end
    line, line_start, from = line + 1, newline + 1, newline + 1
  end
  return line, 1 + (utf8.len(bytes, line_start, offset) or offset - line_start + 1)
end

---@param bytes string the text
---@param mistake { offset: integer, expected?: string, message?: string, code?: string } offset in bytes, from 0
---@return { code: string, message: string, line: integer, column: integer, offset: integer } failure as json.decode gives it
return function(bytes, mistake)
  local line, column = place(bytes, mistake.offset)
  local message = mistake.message and mistake.message:gsub("\x7F", "\\u007f")
    or ("expected %s, found %s"):format(mistake.expected, found(bytes, mistake.offset))
  return {
    code = mistake.code or "invalid_json",
    message = ("line %d, column %d: %s"):format(line, column, message),
    line = line, column = column, offset = mistake.offset,
  }
end
