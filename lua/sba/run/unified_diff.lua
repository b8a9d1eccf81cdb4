-- SPDX-License-Identifier: Apache-2.0
-- The hunks of a unified diff of two texts, by E. Myers, "An O(ND) Difference Algorithm and Its
-- Variations" (1986), with a bound: texts that differ in more lines are replaced from the first
-- difference to the last.

local excerpt = require "sba.util.excerpt"

local unified_diff = {}

local CONTEXT <const> = 3 -- lines
-- Lines removed and added. Memory grows with the square of it.
local MOST_EDITS <const> = 500
local NO_NEWLINE <const> = "\\ No newline at end of file\n"

-- Each with its line end.
local function lines_of(text)
  local lines = {}
  for after, _, _, at in excerpt.lines(text) do lines[#lines + 1] = text:sub(at, after - 1) end
  return lines
end

-- Returns how many lines are the same at both beginnings, and then at both ends.
local function common_ends(old, new)
  local least, head, tail = math.min(#old, #new), 0, 0
  while head < least and old[head + 1] == new[head + 1] do head = head + 1 end
  while tail < least - head and old[#old - tail] == new[#new - tail] do tail = tail + 1 end
  return head, tail
end

-- Whether the path to diagonal k with d edits ends by adding a line (comes from k + 1), not by removing
-- one (comes from k - 1): from the one that reached farther.
local function comes_down(reached, k, d) return k == -d or (k ~= d and reached[k - 1] < reached[k + 1]) end

-- Walks back through what the search kept of each round, and notes which old line is which new one.
local function trace_back(rounds, x, y, head, same)
  for d = #rounds, 1, -1 do
    local reached, k = rounds[d], x - y
    local from_k = comes_down(reached, k, d) and k + 1 or k - 1
    local from_x = reached[from_k]
    while x > from_x and x - k > from_x - from_k do
      same[head + x] = head + x - k
      x = x - 1
    end
    x, y = from_x, from_x - from_k
  end
  while x > 0 and y > 0 do
    same[head + x] = head + y
    x, y = x - 1, y - 1
  end
end

-- Finds lines between head and tail that both have; none where too much differs. As in the paper: x of
-- the old lines and y of the new ones are done, k = x - y is a diagonal, and reached[k] is the farthest
-- x on it with d edits.
local function find_same(old, new, head, tail, same)
  local n, m = #old - head - tail, #new - head - tail
  local reached, rounds = { [1] = 0 }, {}
  for d = 0, math.min(n + m, MOST_EDITS) do
    if d > 0 then rounds[d] = table.move(reached, -d - 1, d + 1, -d - 1, {}) end
    for k = -d, d, 2 do
      local x = comes_down(reached, k, d) and reached[k + 1] or reached[k - 1] + 1
      while x < n and x - k < m and old[head + x + 1] == new[head + x - k + 1] do x = x + 1 end
      reached[k] = x
      if x >= n and x - k >= m then return trace_back(rounds, n, m, head, same) end
    end
  end
end

-- Every line of both texts, removed before added.
local function edits_of(old, new)
  local head, tail = common_ends(old, new)
  local same, edits, j = {}, {}, 1
  find_same(old, new, head, tail, same)
  for i = 1, #old do
    local partner = same[i]
    if i <= head then partner = i end
    if i > #old - tail then partner = i - #old + #new end
    while partner and j < partner do
      edits[#edits + 1] = { mark = "+", line = new[j] }
      j = j + 1
    end
    if partner then j = j + 1 end
    edits[#edits + 1] = { mark = partner and " " or "-", line = old[i] }
  end
  for rest = j, #new do edits[#edits + 1] = { mark = "+", line = new[rest] } end
  return edits
end

-- Its first and last edit, with context.
local function next_hunk(edits, from)
  local first = from
  while edits[first] and edits[first].mark == " " do first = first + 1 end
  if not edits[first] then return nil end
  local last = first
  for i = first, #edits do
    if edits[i].mark ~= " " then last = i end
    if i - last > 2 * CONTEXT then break end
  end
  return math.max(from, first - CONTEXT), math.min(#edits, last + CONTEXT)
end

-- An empty range names the line before it.
local function range(first, count)
  if count == 0 then return ("%d,0"):format(first - 1) end
  return count == 1 and tostring(first) or ("%d,%d"):format(first, count)
end

-- The lines of a hunk, and how many of them the old and the new text have.
local function body_of(edits, first, last)
  local parts, old_count, new_count = {}, 0, 0
  for i = first, last do
    local mark, line = edits[i].mark, edits[i].line
    if mark ~= "+" then old_count = old_count + 1 end
    if mark ~= "-" then new_count = new_count + 1 end
    parts[#parts + 1] = mark .. line .. (line:sub(-1) == "\n" and "" or "\n" .. NO_NEWLINE)
  end
  return table.concat(parts), old_count, new_count
end

---@param old string without NUL
---@param new string likewise
---@return string hunks "" where they are the same
function unified_diff.hunks(old, new)
  local edits, parts = edits_of(lines_of(old), lines_of(new)), {}
  local position, old_line, new_line = 1, 1, 1
  while true do
    local first, last = next_hunk(edits, position)
    if not first then return table.concat(parts) end
    local between = first - position -- lines that both have
    old_line, new_line = old_line + between, new_line + between
    local body, old_count, new_count = body_of(edits, first, last)
    local old_range, new_range = range(old_line, old_count), range(new_line, new_count)
    parts[#parts + 1] = ("@@ -%s +%s @@\n%s"):format(old_range, new_range, body)
    position, old_line, new_line = last + 1, old_line + old_count, new_line + new_count
  end
end

return unified_diff
