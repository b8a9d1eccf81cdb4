-- SPDX-License-Identifier: Apache-2.0
-- What a step is about, in a few words for people: its command line, pattern or path.

local command_words = require "sba.util.command_words"
local redact = require "native.secret".redact

local LONGEST <const> = 200 -- characters

--- A word as a shell takes it. is_first: with a "=" it would be a variable.
local function quoted(word, is_first)
  if word:find("^[%w%-_./:=@,+%%]+$") and not (is_first and word:find("=", 1, true)) then return word end
  return "'" .. word:gsub("'", [['\'']]) .. "'"
end

local function command_line(arguments)
  local words = {}
  for i, word in ipairs(command_words(arguments)) do words[i] = quoted(tostring(word), i == 1) end
  return table.concat(words, " ")
end

local function describe(step, is_whole)
  local arguments = step.arguments
  local what = arguments.shell or (arguments.argv or arguments.command) and command_line(arguments)
  what = what or arguments.pattern or arguments.path or arguments.tool or arguments.prompt or ""
  what = redact(what)
  if is_whole or not utf8.offset(what, LONGEST + 2) then return what end
  return what:sub(1, utf8.offset(what, LONGEST) - 1) .. "…"
end

local last_step, last_text -- the begin and the end of a step ask one after the other

--- A short text, and whether it is cut shows at its end; valid UTF-8 as the job is.
---@param step { type: string, arguments: table }
---@param is_whole? boolean not cut
---@return string
return function(step, is_whole)
  if is_whole then return describe(step, true) end
  if step ~= last_step then last_step, last_text = step, describe(step) end
  return last_text
end
