-- SPDX-License-Identifier: Apache-2.0
-- The lines of a text, in linear time: each line is one plain search, and the deadline is looked at between two.

local function next_line(bytes, from)
  if from > #bytes then return nil end
  local newline = bytes:find("\n", from, true)
  local last = newline or #bytes
  return last + 1, bytes:sub(from, (newline or last + 1) - 1), newline ~= nil, from
end

---Goes over lines: `for after, line, is_whole, at in lines(bytes)`. A newline ends a line; after it nothing more needs to follow.
---@param bytes string
---@return fun(bytes: string, from: integer): integer?, string, boolean, integer
---after: where the next line begins; line: without its newline; is_whole: it has one; at: where it begins
---@return string bytes, integer from
return function(bytes)
  return next_line, bytes, 1
end
