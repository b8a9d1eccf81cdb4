-- SPDX-License-Identifier: Apache-2.0
-- A block of foreign text: bounded, head and tail with the count left out; the lines of a diff are coloured. The signs at their
-- beginnings stay: colour is never all there is.

local excerpt = require "sba.util.excerpt"
local h = require "sba.report.html".elements

local block = {}

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

---Whether a text is a diff.
---@param bytes string
---@return boolean
function block.is_diff(bytes)
  return bytes:find("^diff %-%-git ") ~= nil or bytes:find("^%-%-%- [^\n]*\n%+%+%+ ") ~= nil
end

--- The lines of a diff, those of one kind that follow each other in one element.
local function diff_lines(bytes)
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

---@param label? string what it is
---@param bytes string UTF-8
---@param limit integer bytes that are shown
---@param as_diff? boolean it is a diff, whatever it begins with
---@return table children
function block.view(label, bytes, limit, as_diff)
  local shown = excerpt.of(bytes, limit)
  return {
    label and h.p { class = "label", label },
    h.pre { (as_diff or block.is_diff(bytes)) and diff_lines(shown) or shown },
  }
end

return block
