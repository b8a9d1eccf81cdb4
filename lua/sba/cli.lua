-- SPDX-License-Identifier: Apache-2.0
-- Reads the command line and the environment.

local first_set = require "sba.util.secret".first_set
local json = require "sba.util.json"
local lazy = require "sba.util.lazy"

local humanize = lazy "sba.util.humanize"

local cli = {}

---@class cli.option
---@field name string without dashes
---@field is_mode? boolean selects another mode than running a job
---@field value? string its name in the help; in brackets where it may be left out
---@field values? string[] the only ones
---@field takes_file? boolean the value is a path
---@field is_list? boolean may have several values
---@field of? string the option whose line of the help names it
---@field variables? string[] used where the option is not given; the first that is set counts
---@field default? string
---@field summary string

---In the order of the help.
---@type cli.option[]
cli.options = {
  { name = "task", value = "TEXT", summary = "let a model do TEXT in the current directory" },
  { name = "check", value = "COMMAND", is_list = true, of = "task",
    summary = "a command that must succeed when the task is done" },
  { name = "model", value = "NAME", of = "task", summary = "the model that does the task" },
  { name = "time", value = "TIME", of = "task", summary = "how long the task may take, such as 45m" },
  { name = "stdin", summary = "job on stdin, result on stdout" },
  { name = "follow", summary = "log all output of steps and models as it comes" },
  { name = "resume", summary = "continue a job that did not succeed" },
  { name = "replay", value = "FILE", takes_file = true,
    summary = "run an agent's job with recorded replies" },
  { name = "validate", is_mode = true, value = "[FILE...]", takes_file = true, is_list = true,
    summary = "check jobs; list all mistakes, by line" },
  { name = "report", is_mode = true, value = "[FILE]", takes_file = true,
    summary = "print a result as an HTML page" },
  { name = "format", value = "FORMAT", of = "report", values = { "html", "junit", "markdown" },
    summary = "the form of the report: html, markdown or junit" },
  { name = "schema", is_mode = true, value = "[job|result|steps|report]",
    values = { "job", "result", "steps", "report" }, summary = "print a JSON Schema (draft 2020-12)" },
  { name = "idle", is_mode = true, summary = "wait as PID 1 of a session until SIGTERM, SIGINT" },
  { name = "lua", is_mode = true, value = "[FILE [ARG...]]", takes_file = true,
    summary = "run Lua, or a prompt; -e CODE runs one line" },
  { name = "completion", is_mode = true, value = "bash|zsh|fish",
    values = { "bash", "fish", "zsh" }, summary = "print completions for a shell" },
  { name = "version", is_mode = true, summary = "print the version" },
  { name = "help", is_mode = true, summary = "print the options" },
  { name = "job", value = "FILE", takes_file = true, variables = { "SBA_JOB_PATH" },
    default = "/job/job.json", summary = "/job/job.json; - is stdin" },
  { name = "result", value = "FILE", takes_file = true, variables = { "SBA_RESULT_PATH" },
    default = "/job/result.json", summary = "/job/result.json; - is stdout" },
  { name = "workspace", value = "DIR", takes_file = true, default = "/workspace",
    variables = { "SBA_WORKSPACE", "CYNODE_WORKSPACE_DIR" }, summary = "/workspace" },
  { name = "user", value = "UID[:GID]", variables = { "SBA_USER" },
    summary = "become this user; needed as root" },
  { name = "log-format", value = "FORMAT", variables = { "SBA_LOG_FORMAT" },
    default = "auto", values = { "auto", "json", "text" },
    summary = "text on a terminal, else json" },
  { name = "die-with-parent", variables = { "SBA_DIE_WITH_PARENT" }, summary = "cancel when the parent ends" },
}

local by_name, names = {}, {}
for i, option in ipairs(cli.options) do by_name[option.name], names[i] = option, option.name end
by_name.h, by_name.V = by_name.help, by_name.version

-- What an earlier version had.
local gone <const> = {
  trajectory = "python3 -m cynode_sba.atif JOURNAL, of clients/python, makes a journal an ATIF document",
}

-- Names of options, or of modes.
local function not_together(one, other)
  return ("--%s and --%s cannot be combined"):format(one, other)
end

-- The arguments: each function returns the index of the last one that it used, or nil and what is
-- wrong.

local function unknown(argument, name)
  local near, advice = humanize.near(name, names), "see --help"
  if near then advice = "did you mean --" .. near .. "?" end
  return nil, ("unknown option %s; %s"):format(argument, gone[name] or advice)
end

local function mistake_in(option, given_by, value)
  if not option.values or json.contains(option.values, value) then return nil end
  local choices = table.concat(option.values, ", ")
  return ("invalid value '%s' for %s; it must be one of %s"):format(value, given_by, choices)
end

-- "--name=value" or "-name".
local function split(argument)
  local name, equals, value = argument:match("^%-%-?([^%-=][^=]*)(=?)(.*)$")
  return name, equals == "=" and value or nil
end

-- Of a mode those that follow it, else the next argument, whatever it looks like.
local function take_values(given, argv, i, option, value)
  local name, values, most = option.name, { value }, 1
  local is_mode = option.is_mode
  if is_mode and option.is_list then most = math.huge end
  while #values < most and argv[i + 1] and not (is_mode and argv[i + 1]:find "^%-.") do
    i = i + 1
    values[#values + 1] = argv[i]
  end
  local first = values[1]
  if first == "" or not first and option.value:sub(1, 1) ~= "[" then
    return nil, ("--%s requires a value: --%s %s"):format(name, name, option.value)
  end
  for _, one in ipairs(values) do
    local message = mistake_in(option, "--" .. name, one)
    if message then return nil, message end
  end
  if is_mode then
    given.values = values
  elseif option.is_list then
    given[name] = given[name] or {}
    table.insert(given[name], first)
  else
    given[name] = first
  end
  return i
end

local OWN_NAME <const> = "/cynode-sba"

local function is_own_name(argument) return ("/" .. argument):sub(-#OWN_NAME) == OWN_NAME end

local function take_job(given, argument, i)
  local is_job = argument:find "^[^-]" and not is_own_name(argument)
  if not is_job or given.mode then
    return nil, ("'%s' is not an option; see --help"):format(argument)
  end
  if given.job then return nil, ("'%s' is a second job: one runs at a time"):format(argument) end
  given.job, given.meant = argument, humanize.near(argument, names)
  return i
end

local function take(given, argv, i)
  local name, value = split(argv[i])
  if not name then return take_job(given, argv[i], i) end
  local option = by_name[name]
  if not option then return unknown(argv[i], name) end
  name = option.name
  if value and not option.value then
    return nil, ("--%s does not take a value"):format(name)
  end
  if option.is_mode then
    if given.mode then return nil, not_together(given.mode, name) end
    given.mode = name
    if name == "lua" then
      given.script = table.move(argv, i + 1, #argv, 1, {})
      return #argv
    end
  end
  if option.value then return take_values(given, argv, i, option, value) end
  if not option.is_mode then given[name] = true end
  return i
end

-- What follows: each function returns what is wrong, or nil.

local function take_all(given, argv)
  -- A node may pass our own name as the command of a container whose entrypoint we are.
  local i = 1
  if #argv == 1 and is_own_name(argv[1]) then i = 2 end
  while argv[i] do
    local last, message = take(given, argv, i)
    if not last then return message end
    i = last + 1
  end
  given.mode, given.resume = given.mode or "run", given.resume or false
  given.is_named = given.job ~= nil or nil
  if given.format and given.mode ~= "report" then return "--format requires --report" end
end

local UNITS <const> = { s = 1, m = 60, h = 3600 }

local function check_task(given)
  local is_task = given.task ~= nil
  for _, name in ipairs { "check", "model", "time" } do
    if given[name] and not is_task then return "--" .. name .. " requires --task" end
  end
  if not is_task then return nil end
  for _, name in ipairs { "job", "result", "stdin", "resume", "replay" } do
    if given[name] then return not_together("task", name) end
  end
  if given.mode ~= "run" then return not_together("task", given.mode) end
  given.workspace = given.workspace or "."
  local number, unit = (given.time or "30m"):match "^(%d%d?%d?%d?%d?%d?)([smh])$"
  given.time = number and tonumber(number) * UNITS[unit] or 0
  if given.time == 0 then return "--time requires a number and a unit, such as 90s, 45m or 2h" end
end

local switches <const> = {
  ["true"] = true, ["1"] = true, ["false"] = false, ["0"] = false, [""] = false,
}

-- Options take precedence over the variable; it takes precedence over the others.
local function read_stdin_switch(given, environment)
  local wanted = given.stdin or switches[(environment.SBA_STDIN_STDOUT or ""):lower()]
  if given.task then return nil end
  if wanted == nil then return "SBA_STDIN_STDOUT must be true or false" end
  if not wanted then return nil end
  given.stdin, given.job, given.result = true, given.job or "-", given.result or "-"
end

-- A PID, in the variable, says which parent: only so can one that is gone already be told from the
-- process that adopted us.
local function read_parent(given, environment)
  local value = environment.SBA_DIE_WITH_PARENT or ""
  local pid, wanted = math.tointeger(tonumber(value:match "^%d+$")), given["die-with-parent"]
  if wanted == nil then wanted = switches[value:lower()] end
  if pid and pid >= 2 then wanted = pid end
  if wanted == nil then
    return "SBA_DIE_WITH_PARENT must be true, false or the parent's process id"
  end
  given.die_with_parent, given["die-with-parent"] = wanted or nil, nil
end

-- The first two are no options.
local settings <const> = {
  { name = "termination_log", variables = { "SBA_TERMINATION_LOG" } },
  { name = "confine", variables = { "SBA_CONFINE" },
    default = "auto", values = { "auto", "off", "require" } },
  table.unpack(cli.options),
}

-- Other modes than running a job do without a value that is wrong.
local function read_variables(given, environment)
  for _, option in ipairs(settings) do
    local name = option.name
    if option.variables and given[name] == nil then
      local value, variable = first_set(environment, option.variables)
      local message = value and mistake_in(option, variable, value)
      if message and given.mode == "run" then return message end
      if not message then given[name] = value end
    end
  end
end

local stream_of <const> = {
  ["/dev/stdin"] = "job", ["/dev/fd/0"] = "job", ["/proc/self/fd/0"] = "job",
  ["/dev/stdout"] = "result", ["/dev/fd/1"] = "result", ["/proc/self/fd/1"] = "result",
}

-- No file can take the place of a stream's name in /dev, nor stand beside it.
local function read_streams(given)
  for _, name in ipairs { "job", "result" } do
    if stream_of[given[name] or ""] == name then given[name] = "-" end
  end
end

local NO_JOB <const> = [[
there is no job: no --job is given, and there is no /job/job.json
run one:  cynode-sba --job job.json --workspace DIR, or without JSON: cynode-sba --task "Fix the tests"
learn more:  --help, --schema job, --validate job.json]]

local function check_job(given, _, is_directory)
  if given.resume and given.replay then return not_together("resume", "replay") end
  if given.resume and given.result == "-" then
    return "--resume requires a result file: the journal is next to it"
  end
  local has_job = given.job or given.task or given.mode ~= "run"
  if not has_job and not is_directory "/job" then return NO_JOB end
end

-- A named job has its result next to it, and its workspace too if that is there.
local function settle_outside_container(given, _, is_directory)
  if not given.job or given.job == "-" then return end
  local beside = given.job:match("^.*/") or "./"
  if not given.result and not is_directory "/job" then given.result = beside .. "result.json" end
  if given.workspace or is_directory "/workspace" then return end
  local workspace = beside .. "workspace"
  if is_directory(workspace) then given.workspace = workspace end
end

local function fill_in_defaults(given)
  for _, option in ipairs(settings) do
    if given[option.name] == nil then given[option.name] = option.default end
  end
  given.log_format, given["log-format"] = given["log-format"], nil
end

-- What is written would take the place of what is read.
local function check_paths(given)
  if given.mode ~= "run" or given.result == "-" then return end
  local log = given.termination_log
  if given.job == given.result then return "the result would replace the job: --job and --result name one file" end
  if log == given.job or log == given.result then return "SBA_TERMINATION_LOG names the job's or the result's file" end
end

local stages <const> = {
  check_task, read_stdin_switch, read_parent, read_variables, read_streams, check_job,
  settle_outside_container, fill_in_defaults, check_paths,
}

---@class cli.settings the options by name (log_format), and these
---@field mode "run"|"validate"|"report"|"schema"|"idle"|"completion"|"version"|"help"|"lua"
---@field job string "-" is stdin
---@field result string "-" is stdout
---@field workspace string
---@field is_named? boolean the command line names the job
---@field meant? string the option that the job's name resembles
---@field time? integer seconds
---@field confine "auto"|"require"|"off"
---@field die_with_parent? true|integer true, or the parent's PID
---@field termination_log? string a file that gets one line at the end
---@field keep? fun(run: run) ends a task; set by task
---@field archive? string where a task's files go at its end, with a slash; set by task
---@field is_answered? boolean people have seen the final answer; set by task
---@field values? string[] what follows the mode
---@field script? string[] what follows --lua

---@param argv string[]
---@param environment table<string, string>
---@param is_directory fun(path: string): boolean
---@return cli.settings? settings, string? message
function cli.parse(argv, environment, is_directory)
  local given = {}
  local message = take_all(given, argv)
  for _, stage in ipairs(stages) do message = message or stage(given, environment, is_directory) end
  if message then return nil, message end
  return given
end

return cli
