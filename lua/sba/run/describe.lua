-- SPDX-License-Identifier: Apache-2.0
-- What a step is about, in a few words for people: its command line, pattern or path.

local redact = require "native.secret".redact

local LONGEST <const> = 200 -- characters

local function quoted(word)
  return word:find("^[%w%-_./:=@,+%%]+$") and word or "'" .. word .. "'"
end

local function command_line(argv)
  local words = {}
  for i, word in ipairs(argv) do words[i] = quoted(tostring(word)) end
  return table.concat(words, " ")
end

local function describe(step)
  local arguments = step.arguments
  local what = arguments.shell or arguments.argv and command_line(arguments.argv)
  if not what and arguments.command then what = command_line { arguments.command, table.unpack(arguments.args or {}) } end
  what = what or arguments.pattern or arguments.path or arguments.tool or arguments.prompt or ""
  what = redact(what)
  local past = utf8.offset(what, LONGEST + 1)
  return past and what:sub(1, past - 1) or what
end

local last_step, last_text -- the begin and the end of a step ask one after the other

--- A short text; valid UTF-8 as the job is.
---@param step { type: string, arguments: table }
---@return string
return function(step)
  if step ~= last_step then last_step, last_text = step, describe(step) end
  return last_text
end
