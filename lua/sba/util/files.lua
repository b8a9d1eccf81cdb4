-- SPDX-License-Identifier: Apache-2.0
-- The entries of a directory; names in JSON; and texts of results that stay in their file.

local excerpt = require "sba.util.excerpt"
local file = require "native.file"
local percent = require "sba.util.percent"

local files = {}

local LONGEST_STRING <const> = 1024 * 1024 -- bytes of an output

---@param root native.root
---@param path string
---@param most integer entries that are read, whichever the file system gives first
---@return native.entry[]? entries in byte order; links are not followed
---@return boolean|native.failure more
function files.entries(root, path, most)
  local walk <close>, failure = root:walk(path, { max_depth = 1, max_names = most })
  if not walk then return nil, failure end
  local entries, entry, problem = {}, walk:next()
  while entry do
    entry, problem = walk:next()
    entries[#entries + 1] = entry
  end
  if problem then return nil, problem end
  return entries, walk:is_cut()
end

---JSON cannot hold every byte of a name.
---@param name string
---@return string
function files.encode_name(name)
  name = name:gsub("%%", percent.encode)
  return utf8.len(name) and name or (name:gsub("[\x80-\xff]", percent.encode))
end

---@param name string as encode_name gives it
---@return string
files.decode_name = percent.decode

---@class long_text: native.file.text which native.file writes into the journal a piece at a time
---@field shown string head and tail
---@field head? string
---@field length integer bytes before they are encoded
---@field is_cut? boolean it is longer than it may be
---@operator len: integer
local long_text = {} -- also the metatable
long_text.__index = long_text
files.long_text = long_text

---Measures a range of a file, and decides how it is written: as UTF-8, else in base64.
---@param range native.file.text `is_part`: more follows, so half a character at its end is left out
---@param bound integer bytes of what is written
---@return long_text?, native.failure?
function long_text.new(range, bound)
  local length, is_utf8, half = file.measure_text(range)
  if not length then return nil, is_utf8 end
  if is_utf8 and (half == 0 or range.is_part) then
    range.encoding, range.most = "utf-8", bound
    range.size, length = range.size - half, length - half
  else
    range.encoding, range.most = "base64", bound // 4 * 3
  end
  range.is_cut = length > range.most
  range.length = math.min(length, range.most)
  return setmetatable(range, long_text)
end

---@param output string|native.process.text
---@param most integer bytes of what is shown
---@return string|long_text
function long_text.of_output(output, most)
  if type(output) == "string" then return output end
  local source, size, half = output.file, output.size, most // 2
  if size <= LONGEST_STRING then return assert(source:read(0, size)) end
  local head, tail = assert(source:read(0, half)), assert(source:read(size - half, half))
  output.shown = excerpt.join(head, tail, size, most)
  output.length = size
  return setmetatable(output, long_text)
end

function long_text:__len() return self.length end
function long_text:sub(from) return self.shown:sub(from) end

return files
