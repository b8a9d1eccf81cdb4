-- SPDX-License-Identifier: Apache-2.0
-- What a step is about, in a few words for people: its command line, pattern or path.

local lpeg = require "lpeg"
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

local name = lpeg.C((1 - lpeg.S "\t\r\n") ^ 1)
local named = lpeg.C(lpeg.P "--- " + "+++ ") * name + "*** " * lpeg.R "AZ" * lpeg.R "az" ^ 1 * " File: " * lpeg.Cc "" * name
local lines_with_names = lpeg.Ct((lpeg.Ct(named) ^ -1 * (1 - lpeg.P "\n") ^ 0 * "\n") ^ 0)

--- The files that a diff names, as far as they stand at its beginning: "src/a.c, src/b.c and 3 more".
local function files_of(diff)
  local names, seen, old = {}, {}, nil
  for _, line in ipairs(lpeg.match(lines_with_names, text.cut(diff, MOST_DIFF) .. "\n")) do
    local mark, path = line[1], line[2]
    if mark == "--- " then
      old = path
    else
      path = path == "/dev/null" and old or path
      if mark ~= "" and path:find("^[ab]/") then path = path:sub(3) end
      if not seen[path] then names[#names + 1], seen[path] = path, true end
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
