-- SPDX-License-Identifier: Apache-2.0
-- What a step is about, in a few words for people: its command line, pattern or path.

local lines = require "sba.util.lines"
local redact = require "native.secret".redact
local text = require "native.text"
local words = require "sba.util.words"

local LONGEST <const> = 200 -- characters
local MOST_FILES <const> = 3 -- of a diff
local MOST_DIFF <const> = 256 * 1024 -- bytes of a diff that are looked at

--- A word as a shell takes it. is_first: with a "=" it would be a variable.
local function quoted(word, is_first)
  if word:find("^[%w%-_./:=@,+%%]+$") and not (is_first and word:find("=", 1, true)) then return word end
  return "'" .. word:gsub("'", [['\'']]) .. "'"
end

local function command_line(arguments)
  local list = {}
  for i, word in ipairs(words.command(arguments)) do list[i] = quoted(tostring(word), i == 1) end
  return table.concat(list, " ")
end

--- The files that a diff names, as far as they stand at its beginning: "src/a.c, src/b.c and 3 more".
local function files_of(diff)
  local names, seen, old = {}, {}, nil
  for _, line in lines(text.cut(diff, MOST_DIFF)) do
    local mark, name = line:match("^([-+][-+][-+]) ([^\t\r]+)")
    name = name or line:match("^%*%*%* %u%l+ File: ([^\r]+)")
    if mark == "---" then
      old = name
    elseif name then
      name = name == "/dev/null" and old or name
      if mark and name:find("^[ab]/") then name = name:sub(3) end
      if not seen[name] then names[#names + 1], seen[name] = name, true end
    end
  end
  local more = #names - MOST_FILES
  return table.concat(names, ", ", 1, math.min(#names, MOST_FILES)) .. (more > 0 and (" and %d more"):format(more) or "")
end

---A short text, and whether it is cut shows at its end; valid UTF-8 as the job is.
---@param step { type: string, arguments: table }
---@param is_whole? boolean not cut
---@return string
return function(step, is_whole)
  local arguments = step.arguments
  local what = arguments.shell or (arguments.argv or arguments.command) and command_line(arguments)
  what = what or arguments.pattern or arguments.path or arguments.tool or arguments.prompt
  what = what or arguments.diff and files_of(arguments.diff) or ""
  what = redact(what)
  if is_whole or not utf8.offset(what, LONGEST + 2) then return what end
  return what:sub(1, utf8.offset(what, LONGEST) - 1) .. "…"
end
