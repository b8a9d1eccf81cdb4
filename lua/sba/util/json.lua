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
  if mistake then return nil, require "sba.util.json_failure" (bytes, mistake) end
  return value
end

---Decodes JSON of a server or a model, of any size. Bytes that are not UTF-8 become U+FFFD.
---@param bytes string
---@return any value, table? failure as of decode
function json.decode_repaired(bytes)
  local limits = { size = #bytes }
  local value, failure = json.decode(bytes, limits)
  if not failure then return value end
  local repaired, changed = text.repair(bytes)
  if not changed then return nil, failure end
  limits.size = #repaired
  return json.decode(repaired, limits)
end

return json
