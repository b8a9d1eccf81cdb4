-- SPDX-License-Identifier: Apache-2.0
-- JSON, strictly as RFC 8259 has it: whatever the runner reads or writes as JSON goes through here.
--
-- Values: objects are tables with string keys, arrays carry the array mark, null is json.null. A number without fraction and
-- exponent is an integer, or a float where it is beyond 64 bits. Objects and arrays keep apart even when empty.

local native = require "native.json"
local text = require "native.text"

local json = { null = native.null, encode = native.encode, kind = native.kind }

local MAX_VALUES = 8 * 1024 * 1024 -- about 700 MB of memory
local LIMITS = { size = 64 * 1024 * 1024, depth = 64 }

---Marks a table as an array.
---@generic T: table
---@param list T
---@return T
function json.array(list)
  return setmetatable(list, native.array_metatable)
end

---Whether a decoded value is an array.
---@param value any
---@return boolean
function json.is_array(value)
  return type(value) == "table" and getmetatable(value) == native.array_metatable
end

---Whether a decoded value is an object.
---@param value any
---@return boolean
function json.is_object(value)
  return type(value) == "table" and getmetatable(value) ~= native.array_metatable
end

-- What stands at a place, for people.
local function found(bytes, offset)
  local at = offset + 1
  if at > #bytes then return "the end of the text" end
  local word = bytes:match("^[%w_.+-]+", at)
  if word then return "'" .. text.cut(word, 20) .. "'" end
  local byte = bytes:byte(at)
  if byte < 0x20 or byte == 0x7F then return ("the control character U+%04X"):format(byte) end
  return "'" .. bytes:match("^" .. utf8.charpattern, at) .. "'"
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

local function failure_of(bytes, mistake)
  local line, column = place(bytes, mistake.offset)
  local message = mistake.message and mistake.message:gsub("\x7F", "\\u007f")
    or ("expected %s, found %s"):format(mistake.expected, found(bytes, mistake.offset))
  return {
    code = mistake.code or "invalid_json",
    message = ("line %d, column %d: %s"):format(line, column, message),
    line = line, column = column, offset = mistake.offset,
  }
end

-- What is wrong with a text before it is read, or nil.
local function mistake_in_bytes(bytes, max_size)
  if #bytes > max_size then
    return { code = "too_large", offset = max_size, message = ("larger than %d bytes"):format(max_size) }
  end
  if #bytes > MAX_VALUES and native.count(bytes) > MAX_VALUES then
    return { code = "too_large", offset = 0, message = ("holds more than %d values"):format(MAX_VALUES) }
  end
  if bytes:find("^\xEF\xBB\xBF") then return { offset = 0, message = "begins with a byte order mark; remove it" } end
  if not text.is_utf8(bytes) then
    local _, bad = utf8.len(bytes)
    return { offset = bad - 1, message = ("the byte 0x%02X is not UTF-8"):format(bytes:byte(bad)) }
  end
end

---Reads a JSON text of at most 8 million values. A failure's code is invalid_json, too_deep or too_large; its message names
---line and column (in characters, from 1), what was expected and what is there; offset is in bytes, from 0.
---@param bytes string
---@param limits? { size?: integer, depth?: integer } bytes, levels; default 64 MiB, 64
---@return any value, { code: string, message: string, line: integer, column: integer, offset: integer }? failure value is nil then
function json.decode(bytes, limits)
  limits = limits or LIMITS
  local value, mistake = nil, mistake_in_bytes(bytes, limits.size or LIMITS.size)
  if not mistake then value, mistake = native.decode(bytes, limits.depth or LIMITS.depth) end
  if mistake then return nil, failure_of(bytes, mistake) end
  return value
end

return json
