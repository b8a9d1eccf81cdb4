-- SPDX-License-Identifier: Apache-2.0
-- What is directly in a directory; and texts of results that stay in their file.

local file = require "native.file"

local files = {}

---@param root native.root
---@param path string
---@param most integer entries that are read, whichever the file system gives first, so that a huge directory costs little
---@return native.entry[]|nil entries in byte order; links are not followed
---@return boolean|native.failure more whether there are more
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

---@class long_text: native.file.text of a step's result, which native.file writes into the journal a piece at a time
---@field shown string head and tail
---@field length integer bytes
local long_text = {} -- also the metatable, by which such a text is known
files.long_text = long_text

---@param range native.file.text of a file, which is read once to measure it
---@return long_text|nil text, boolean|native.failure is_utf8
function long_text.new(range)
  local is_utf8
  range.length, is_utf8 = file.append_text(range)
  return range.length and setmetatable(range, long_text), is_utf8
end

return files
