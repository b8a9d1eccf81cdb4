-- SPDX-License-Identifier: Apache-2.0
-- What a model may do next where a step failed: the tool or the argument that helps, by name.

local phrases = require "sba.agent.words"
local text = require "native.text"

local COMMAND_NOT_FOUND <const>, NOT_EXECUTABLE <const> = 127, 126

-- What /bin/sh says where bash was meant.
local bashisms <const> = { "[[: not found", "source: not found", "Bad substitution", "Syntax error: \"(\"", "Syntax error: redirection" }

local function of_command(entry, output)
  for _, words in ipairs(bashisms) do
    if text.find(output, words, 1) then return phrases.no_bash end
  end
  local code = (entry.result or {}).exit_code
  if code == COMMAND_NOT_FOUND then return phrases.no_program end
  if code == NOT_EXECUTABLE then return phrases.not_executable end
end

--- The file that was looked for, in the command that would find it.
local function named(words, path)
  local name = type(path) == "string" and ("/" .. path):reverse():match("^[^/]*"):reverse():match("^[%w._-]+$")
  return words and name and words:gsub("NAME", name) or words
end

---@param step { type: string, arguments: table }
---@param entry { error_code?: string, result?: table } of a step that failed
---@param output string of the step
---@return string? advice one line; nil: the failure's own message says it
return function(step, entry, output)
  if step.type == "run_command" and entry.error_code == "step_failed" then return of_command(entry, output) end
  local words = (phrases.advice[step.type] or {})[entry.error_code]
  if not words and step.type ~= "call_tool" and step.type ~= "run_command" then words = phrases.advice[""][entry.error_code] end
  return words ~= "" and named(words, step.arguments.path) or nil
end
