-- SPDX-License-Identifier: Apache-2.0
-- A diff with its lines coloured. The signs at their beginnings stay: colour is never all there is.

local h = require "sba.report.html".elements

local diff = {}

-- The first that fits a line says what it is.
local kinds <const> = {
  { "^diff ", "file" }, { "^%+%+%+ ", "file" }, { "^%-%-%- ", "file" }, { "^%*%*%* ", "file" },
  { "^@@", "hunk" }, { "^%+", "added" }, { "^%-", "removed" },
}

local function kind_of(line)
  for _, kind in ipairs(kinds) do
    if line:find(kind[1]) then return kind[2] end -- bounded: all of them are anchored and short
  end
end

--- Whether a text is a diff.
---@param bytes string
---@return boolean
function diff.is_one(bytes)
  return bytes:find("^diff %-%-git ") ~= nil or bytes:find("^%-%-%- [^\n]*\n%+%+%+ ") ~= nil
end

--- The lines, those of one kind that follow each other in one element.
---@param bytes string
---@return table children of a pre
function diff.lines(bytes)
  local runs, kind, first = {}, nil, 1
  local function close(last)
    local text = bytes:sub(first, last)
    if text ~= "" then runs[#runs + 1] = kind and h.span { class = kind, text } or text end
  end
  for at, line in bytes:gmatch("()([^\n]*)\n?") do
    local this = kind_of(line)
    if this ~= kind then
      close(at - 1)
      kind, first = this, at
    end
  end
  close(#bytes)
  return runs
end

return diff
