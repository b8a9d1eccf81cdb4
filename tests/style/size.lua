-- SPDX-License-Identifier: Apache-2.0
-- lua5.4 size.lua [ROOT]: holds what a reader feels: how long a file, a function and a line are, how many `and` and
-- `or` choose one value, how many names one statement assigns, and how much code there is in all. Lines of code have no
-- blanks and no comments in them, so words are free. Prints what is over, and exits 1 if something is.
package.path = arg[0]:gsub("[^/]*$", "?.lua")
local files_below = require "files_below"

local root = arg[1] or arg[0]:match("^(.*)/tests/style/") or "."

local MOST <const> = { file = 400, ["function"] = 60, line = 120, choices = 2, names = 3 }
-- Lines of code of a whole. Raising one wants a reason in the commit. The aims are 11,600, 13,600 and 24,000; what
-- servers, models and patches write, the end after a crash, secrets, workers and agents by protocol took more.
local CEILINGS <const> = { src = 13397, lua = 18357, tests = 30067 }

local failures = 0
local function fail(...)
  failures = failures + 1
  print(string.format(...))
end

-- Blanks out comments, and what stands in quotes, so that neither counts as code. Lines stay where they are.
local function only_code(text, language)
  local function empty_lines(part) return (part:gsub("[^\n]", "")) end
  if language == "c" then
    text = text:gsub('"[^"\n]*"', '""'):gsub("/%*.-%*/", empty_lines):gsub("//[^\n]*", "")
  elseif language == "lua" then
    text = text:gsub("%-%-%[(=*)%[.-%]%1%]", empty_lines):gsub('"[^"\n]*"', '""'):gsub("%-%-[^\n]*", "")
  else
    text = ("\n" .. text):gsub("\n[ \t]*#[^\n]*", "\n"):sub(2)
  end
  return text
end

local function lines_of(text)
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  return lines
end

local function begins_function(line, language)
  if language == "c" then return line == "{" end
  if language == "py" then return line:find "^%s*def " ~= nil end
  return line:find "%f[%a]function%f[%A]" ~= nil and not line:find "%f[%a]end%f[%A]"
end

-- A function ends where a line has the indent of its first: at the brace, at the `end`, in Python at the next
-- statement.
local function ends_function(line, indent, language)
  local own = line:match "^%s*"
  if language == "py" then return line:find "%S" ~= nil and #own <= #indent and not line:find "^%s*%)" end
  local last = language == "c" and "^}" or "^%s*end%f[%A]"
  return own == indent and line:find(last) ~= nil
end

local function judge_functions(path, code, language)
  for first, line in ipairs(code) do
    if begins_function(line, language) then
      local indent, length = line:match "^%s*", 1
      for i = first + 1, #code do
        if language == "py" and ends_function(code[i], indent, language) then break end
        length = length + (code[i]:find "%S" and 1 or 0)
        if ends_function(code[i], indent, language) then break end
      end
      if length > MOST["function"] then fail("%s:%d: a function of %d lines of code", path, first, length) end
    end
  end
end

local CONDITIONS <const> = { ["if"] = true, ["elseif"] = true, ["while"] = true, ["until"] = true }

-- How many `and` and `or` a line has that chooses a value with both, as `a and b or c` does; a condition is none.
local function choices_of(line)
  if CONDITIONS[line:match "^%s*(%a*)"] then return 0 end
  local ands = select(2, line:gsub("%f[%w_]and%f[^%w_]", ""))
  local ors = select(2, line:gsub("%f[%w_]or%f[^%w_]", ""))
  if ands == 0 or ors == 0 then return 0 end
  return ands + ors
end

local function names_of(line)
  local names = line:match "^%s*local ([%w_%s,<>]+) = " or line:match "^%s*([%w_%.%s,]+) = "
  return names and select(2, names:gsub(",", "")) + 1 or 0
end

-- An annotation for the Lua language server is one line.
local function judge_lines(path, lines, code, language)
  for number, line in ipairs(lines) do
    local length = utf8.len(line) or #line
    local is_too_long = length > MOST.line and not line:find "^%s*%-%-%-@"
    if is_too_long then fail("%s:%d: a line of %d characters", path, number, length) end
    if language == "lua" then
      local choices, names = choices_of(code[number]), names_of(code[number])
      if choices > MOST.choices then fail("%s:%d: %d `and` and `or` choose one value", path, number, choices) end
      if names > MOST.names then fail("%s:%d: assigns to %d names", path, number, names) end
    end
  end
end

local function judge_file(path)
  local file <close> = assert(io.open(root .. "/" .. path))
  local text, language = file:read "a", path:match "%.(%a+)$"
  if language == "h" then language = "c" end
  local lines, code, count = lines_of(text), lines_of(only_code(text, language)), 0
  for _, line in ipairs(code) do count = count + (line:find "%S" and 1 or 0) end
  if count > MOST.file then fail("%s: a file of %d lines of code", path, count) end
  -- The body of a spec's `describe` is a page of sentences, not a function that is read at once.
  if not path:find "_spec%.lua$" then judge_functions(path, code, language) end
  judge_lines(path, lines, code, language)
  return count
end

local endings = { c = true, h = true, lua = true, py = true }
for _, top in ipairs { "src", "lua", "tests" } do
  local sum = 0
  for _, path in ipairs(files_below(root .. "/" .. top)) do
    if endings[path:match "%.(%a+)$"] then sum = sum + judge_file(top .. "/" .. path) end
  end
  if sum > CEILINGS[top] then fail("%s has %d lines of code, over its ceiling of %d", top, sum, CEILINGS[top]) end
end
os.exit(failures == 0)
