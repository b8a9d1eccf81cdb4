-- SPDX-License-Identifier: Apache-2.0
-- What a model may do next where a step failed: the tool or the argument that helps, by name.

local text = require "native.text"

local COMMAND_NOT_FOUND <const>, NOT_EXECUTABLE <const> = 127, 126

local LOOK <const> = 'list_tree shows what is there; run_command {"command": "find . -name NAME"} finds a file'
local READ_AGAIN <const> = "read_file the place again, and copy the lines from it without their numbers"
local OUTSIDE <const> = "this tool takes paths of the workspace only; run_command can read others"

-- By the step's type and the failure's code; "" is any type.
local known <const> = {
  [""] = {
    path_escape = OUTSIDE, permission_denied = 'run_command {"command": "ls -la"} shows who may do what',
    not_a_directory = "a part of the path is a file; list_tree shows what is there", not_found = LOOK,
    already_exists = "replace_in_file changes a part of a file",
  },
  read_file = { not_a_file = "list_tree shows what is in a directory" },
  write_file = {
    not_a_file = "name a file in it",
    already_exists = "replace_in_file changes a part of it; write_file with overwrite true replaces all of it",
  },
  replace_in_file = {
    not_found = LOOK .. "; write_file makes a new one", not_a_file = "list_tree shows what is in a directory", text_not_found = READ_AGAIN,
    text_ambiguous = "", already_exists = "",
  },
  apply_unified_diff = {
    patch_mismatch = READ_AGAIN .. "; replace_in_file needs no line numbers",
    patch_ambiguous = "give more lines of context, or use replace_in_file",
    invalid_patch = "replace_in_file changes a text without a diff", already_applied = "",
    not_found = LOOK .. "; a new file comes from /dev/null in a diff, or by write_file",
  },
  run_command = {
    timeout = 'give a larger timeout_seconds, or let it run on with its output in a file: {"command": "PROGRAM > log 2>&1 &"}',
    not_found = 'run_command {"command": "command -v NAME"} says whether a program is there, list_tree which directories are',
    out_of_memory = "",
  },
}

-- What /bin/sh says where bash was meant.
local bashisms <const> = { "[[: not found", "source: not found", "Bad substitution", "Syntax error: \"(\"", "Syntax error: redirection" }

local function of_command(entry, output)
  for _, words in ipairs(bashisms) do
    if text.find(output, words, 1) then return [[commands run in /bin/sh; for bash, if it is there, write {"command": "bash -c '...'"}]] end
  end
  local code = (entry.result or {}).exit_code
  if code == COMMAND_NOT_FOUND then return 'run_command {"command": "command -v NAME"} says whether a program is there' end
  if code == NOT_EXECUTABLE then return "name its interpreter (sh FILE), or chmod +x it" end
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
  local words = (known[step.type] or {})[entry.error_code]
  if not words and step.type ~= "call_tool" and step.type ~= "run_command" then words = known[""][entry.error_code] end
  return words ~= "" and named(words, step.arguments.path) or nil
end
