-- SPDX-License-Identifier: Apache-2.0
-- JSON of a file of any size, a value at a time: a journal, a result.

local file = require "native.file"
local json = require "sba.util.json"

local json_file = {}

-- Bytes of a member that is read at once; longer ones are read when they are asked for.
local WHOLE <const> = 64 << 10
local LIMIT <const> = 1 << 40 -- bytes of what is not a file

local function decode(text)
  local value, failure = json.decode_own(text)
  if failure then return nil, { code = "invalid_json", message = failure.message } end
  return value
end

---Any file, or "-" for stdin. What is not a regular file is kept in memory that is not ours.
---@param path string
---@return native.file.log?, native.failure?
function json_file.open(path)
  local log, failure
  if path ~= "-" then log, failure = file.open(path) end
  if log or failure and failure.code ~= "not_a_file" then return log, failure end
  local bytes
  bytes, failure = file.read(path, LIMIT)
  if not bytes then return nil, failure end
  log = assert(file.memory())
  local done, problem = log:append({ bytes }, true)
  return done and log, problem
end

---@param log native.file.log
---@param span integer[] offset and size
---@return any value, native.failure?
function json_file.whole(log, span)
  local text, failure = log:read(span[1], span[2])
  if not text then return nil, failure end
  return decode(text)
end

---A value but for its long members: of { a = 1, b = a string of 1 MB } it gives { a = 1 }, and where
---b's value stands.
---@param log native.file.log
---@param at integer
---@param always? string name of a member that is left out too
---@return any value, native.file.extent|native.failure
function json_file.outline(log, at, always)
  local text, extent = log:skim(at, WHOLE, always)
  if not text then return nil, extent end
  local value, failure = decode(text)
  if failure then return nil, failure end
  for name in pairs(extent.left) do value[name] = nil end
  return value, extent
end

--- The first byte that is no blank, and where it is.
local function next_byte(log, at)
  local byte
  repeat
    byte = log:read(at, 1)
    at = at + 1
  until not byte or not byte:find "%s"
  return byte, at - 1
end

---The elements of an array, one by one, without their long members. One that cannot be read is
---false, and the last.
---@param log native.file.log
---@param span integer[] offset and size of the array
---@return fun(): any element, native.file.extent|native.failure
function json_file.elements(log, span)
  local byte, at = next_byte(log, span[1] + 1)
  local is_over = byte == "]"
  return function()
    if is_over then return nil end
    local element, extent = json_file.outline(log, at)
    if element == nil then
      is_over = true
      return false, extent
    end
    byte, at = next_byte(log, extent.offset + extent.size)
    is_over, at = byte ~= ",", at + 1
    return element, extent
  end
end

return json_file
