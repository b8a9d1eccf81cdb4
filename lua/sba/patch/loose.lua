-- SPDX-License-Identifier: Apache-2.0
-- What is tried with a model's diff that cannot be applied as it is: context lines that lost their blank, and hunks whose indentation is
-- shifted as a whole. Line numbers do not count then, so each hunk must fit in one place only.

local lines = require "sba.util.lines"
local replace = require "sba.patch.replace"

local loose = {}

local function ends_part(line, after)
  return line:find("^diff %-%-git ") or line:find("^%*%*%* ") or line:find("^```") or line:find("^Index: ")
    or line:find("^%-%-%- ") and after:find("^%+%+%+ ")
end

---The diff with a blank before each context line: a model that leaves out one leaves out all, and what looks like one is indentation.
---Second, the diff with a blank before each context line that has none.
---@param diff string
---@return string[] readings none where each line of each hunk has its mark
function loose.with_blanks(diff)
  local some, all, in_hunk, is_bare = {}, {}, false, false
  for after, line, is_whole in lines(diff) do
    local begins, mark, whole = line:find("^@@") ~= nil, line:sub(1, 1), line .. (is_whole and "\n" or "")
    in_hunk = begins or in_hunk and not ends_part(line, diff:sub(after, after + 3))
    local is_marked = begins or not in_hunk or mark == "+" or mark == "-" or mark == "\\" or line == "" or line == "\r"
    is_bare = is_bare or not is_marked and mark ~= " "
    some[#some + 1] = (is_marked or mark == " ") and whole or " " .. whole
    all[#all + 1] = is_marked and whole or " " .. whole
  end
  return is_bare and { table.concat(all), table.concat(some) } or {}
end

local function without_newline(list)
  if list[1] then list[#list] = list[#list]:gsub("\r?\n$", "") end
end

--- The hunks of one file's part of a diff: what each removes and what it puts there.
local function hunks_of(part)
  local hunks, hunk
  hunks = {}
  for _, line, is_whole in lines(part) do
    local mark, whole = line:sub(1, 1), line:sub(2) .. (is_whole and "\n" or "")
    if line:find("^@@") then
      hunk = { old = {}, new = {}, added = 0, removed = 0 }
      hunks[#hunks + 1] = hunk
    elseif hunk and mark == "+" then
      hunk.new[#hunk.new + 1], hunk.added, hunk.last = whole, hunk.added + 1, "new"
    elseif hunk and mark == "-" then
      hunk.old[#hunk.old + 1], hunk.removed, hunk.last = whole, hunk.removed + 1, "old"
    elseif hunk and mark == "\\" then
      if hunk.last ~= "new" then without_newline(hunk.old) end
      if hunk.last ~= "old" then without_newline(hunk.new) end
    elseif hunk and (mark == " " or mark == "" or mark == "\r") then
      hunk.old[#hunk.old + 1], hunk.new[#hunk.new + 1], hunk.last = whole, whole, "both"
    elseif hunk then
      hunk = nil
    end
  end
  return hunks
end

---Applies the hunks of a file by their text alone, as replace_in_file does: indentation may be shifted.
---@param part string the lines of the diff that are about the file
---@param bytes string the file
---@param path string
---@return string? content
---@return table? report as native.patch has it; nil: some hunk does not fit, or fits twice
function loose.apply(part, bytes, path)
  local hunks, names = hunks_of(part), {}
  local report = { hunks = #hunks, added = 0, removed = 0, offset = 0, fuzz = 0, recounted = 0 }
  for _, hunk in ipairs(hunks) do
    local old, new = table.concat(hunk.old), table.concat(hunk.new)
    if not old:find("%S") or old:sub(-1) ~= "\n" then return nil end
    local content, tolerated = replace.apply(bytes, path, { old_text = old, new_text = new, expected_count = 1, whole_lines = true })
    if not content then return nil end
    bytes, report.added, report.removed = content, report.added + hunk.added, report.removed + hunk.removed
    for name, is in pairs(tolerated) do names[name] = names[name] or is end
  end
  names = replace.names(names)
  report.tolerated = #names > 0 and names or nil
  return #hunks > 0 and bytes or nil, report
end

return loose
