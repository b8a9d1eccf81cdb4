-- SPDX-License-Identifier: Apache-2.0
-- What models write as a command: a line for the shell. They also write lists, and a line with a
-- list.

local json = require "sba.util.json"
local prompts = require "sba.agent.prompts"

local commands = {}

-- For a command that names no time; steps/run_command.lua says so too.
local SECONDS <const> = 120
local RIGHT_FORM <const> = 'write the whole command line as one text: {"command": "ls -la | head"}'
local ONLY_CD <const> = "^%s*cd%f[%s\0][^;&|\n]*$"
local SETS <const> = "^%s*(%l+)%f[%s\0][^()]*$"
local OF_THE_SHELL <const> = { "cd", "pushd", "export", "source", "alias", "set", "unset" }
local OPERATORS <const> = { "|", "||", "&", "&&", ";", "<", ">", ">>", "2>&1" }
local SPECIAL <const> = "[%s|&;<>()$`\\\"'*?#~={}!%[%]]" -- what the shell does not take as it is

local function mistake(why) return nil, why .. "; " .. RIGHT_FORM end

--- The words of a list, or of a text that is one in JSON; nil where it is neither.
local function list_of(value)
  if type(value) == "string" and value:find('^%s*%["') then value = json.decode(value) end
  if type(value) ~= "table" or #value == 0 then return nil end
  local list = {}
  for i, word in ipairs(value) do
    if type(word) ~= "string" and type(word) ~= "number" then return nil end
    list[i] = tostring(word)
  end
  return list
end

--- A list, and the one that follows it, is a program and its arguments; one text in a list is a
--- command line.
local function read_list(arguments, list, more)
  table.move(more, 1, #more, #list + 1, list)
  if #list == 1 then
    arguments.shell = list[1]
    return arguments
  end
  for _, word in ipairs(list) do
    if json.contains(OPERATORS, word) then return mistake(prompts.for_a_shell:format(word)) end
  end
  arguments.argv = json.array(list)
  return arguments
end

--- A line that is followed by a list: a program and its arguments, a command and further ones, or
--- a script with $1 and so on.
local function read_line(arguments, line, more)
  local list = { line }
  if line:find(SPECIAL) then
    local is_script = line:find("%$[%d@*{]")
    if not is_script and line:find("[|&;<>()\n#]") then return mistake(prompts.unclear_args) end
    list = { "/bin/sh", "-c", is_script and line or line .. ' "$@"', "sh" }
  end
  return read_list(arguments, list, more)
end

--- Whether a shell beside a command is the command again, says that there is to be one, or says
--- which.
local function is_no_script(shell, command)
  if shell == command or json.contains({ true, false, "true", "false" }, shell) then return true end
  return type(shell) == "string" and shell:find("^[%w/._-]*sh$") ~= nil
end

--- The one of command, shell and argv that is given, or nil and why.
local function the_command(arguments)
  local command, shell, argv = arguments.command, arguments.shell, arguments.argv
  if command and is_no_script(shell, command) then shell = nil end
  local given = command or shell or argv
  if not given or given == "" then return nil, "command is missing" end
  if (shell or given) == given and (argv or given) == given then return given end
  return nil, "command, shell and argv are two commands"
end

--- A note, if a line ends with what only changes its shell, which then is gone: "export" of "make;
--- export A=1".
local function note_setting(line)
  local last = line:reverse():find "[;&\n]" or #line + 1
  local name = line:sub(#line - last + 2):match(SETS)
  return json.contains(OF_THE_SHELL, name) and prompts.shell_is_gone:format(name) or nil
end

---@param arguments table of run_command, as models name them
---@return table? arguments of the step
---@return string? note or mistake, for the model
function commands.read(arguments)
  if arguments.secrets then return nil, prompts.no_secrets end
  local given, why = the_command(arguments)
  if not given then return mistake(why) end
  local list, args = list_of(given), arguments.args
  local more = list_of(args)
  if math.type(args) then args = tostring(args) end
  local is_text = type(args) == "string" and not list
  local is_nothing = args == nil or json.is_array(args) and #args == 0
  if not (more or is_text or is_nothing) then
    return mistake "args is neither a list of words nor the end of a line"
  end
  for _, name in ipairs { "command", "shell", "argv", "args" } do arguments[name] = nil end
  arguments.timeout_seconds = arguments.timeout_seconds or SECONDS
  if list then return read_list(arguments, list, more or {}) end
  -- An object in JSON is none.
  if type(given) ~= "string" or given:find '^%s*{"' then return mistake "command is no command line" end
  if given:find(ONLY_CD) then return nil, prompts.only_cd end
  if more then return read_line(arguments, given, more) end
  arguments.shell = is_text and given .. " " .. args or given
  return arguments, note_setting(given)
end

return commands
