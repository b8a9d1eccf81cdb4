-- SPDX-License-Identifier: Apache-2.0
-- Reads the command line and the environment.

local cli = {}

local OWN_NAME <const> = "cynode-sba"

-- Options with a value. An option takes precedence over its variables, and a variable over those after it.
local valued = {
  job = { value = "FILE", variables = { "SBA_JOB_PATH" }, default = "/job/job.json" },
  result = { value = "FILE", variables = { "SBA_RESULT_PATH" }, default = "/job/result.json" },
  workspace = { value = "DIR", variables = { "SBA_WORKSPACE", "CYNODE_WORKSPACE_DIR" }, default = "/workspace" },
  replay = { value = "FILE", variables = {} },
  user = { value = "UID[:GID]", variables = { "SBA_USER" } },
  ["log-format"] = {
    value = "json|text|auto", variables = { "SBA_LOG_FORMAT" }, default = "auto",
    choices = { json = true, text = true, auto = true },
  },
}

-- Options that select another mode than running a job. `rest`: the remaining arguments belong to the script.
local modes = {
  validate = { optional = "file" },
  report = { optional = "file" },
  schema = { optional = "what", choices = { job = true, result = true, steps = true } },
  idle = {},
  version = {},
  help = {},
  lua = { rest = true },
}

local flags = { stdin = true, resume = true }

local function sorted_names()
  local names = {}
  for _, group in ipairs { valued, modes, flags } do
    for name in pairs(group) do names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

local function unknown(argument, name)
  local near = require "sba.util.words".near(name, sorted_names())
  return nil, ("unknown option %s; %s"):format(argument, near and "did you mean --" .. near .. "?" or "see --help")
end

local function keys(set)
  local list = {}
  for key in pairs(set) do list[#list + 1] = key end
  table.sort(list)
  return table.concat(list, ", ")
end

local function check_choice(option, name, value)
  if option.choices and not option.choices[value] then
    return nil, ("invalid value '%s' for %s; it must be one of %s"):format(value, name, keys(option.choices))
  end
  return value
end

--- Splits "--name=value" and "-name". Returns nil if the argument is not an option.
local function split(argument)
  local name, value = argument:match("^%-%-?([^%-=][^=]*)=(.*)$")
  if name then return name, value end
  return argument:match("^%-%-?([^%-=][^=]*)$")
end

--- Takes the value of a valued option at argv[i]; returns the index of the last argument used.
local function take_value(given, argv, i, name, value)
  local option = valued[name]
  if not value then
    i = i + 1
    value = argv[i]
  end
  if not value or value == "" then return nil, ("--%s requires a value: --%s %s"):format(name, name, option.value) end
  local message
  given[name], message = check_choice(option, "--" .. name, value)
  if message then return nil, message end
  return i
end

local function take_mode(given, argv, i, name, value)
  local mode = modes[name]
  if given.mode then return nil, ("--%s and --%s cannot be combined"):format(given.mode, name) end
  given.mode = name
  if mode.rest then
    given.script = table.move(argv, i + 1, #argv, 1, {})
    return #argv
  end
  if value and not mode.optional then return nil, ("--%s does not take a value"):format(name) end
  local following = argv[i + 1]
  if not value and mode.optional and following and (following == "-" or following:sub(1, 1) ~= "-") then
    i, value = i + 1, following
  end
  if value then
    local message
    given[mode.optional], message = check_choice(mode, "--" .. name, value)
    if message then return nil, message end
  end
  return i
end

local function take(given, argv, i)
  local name, value = split(argv[i])
  if not name then return nil, ("'%s' is not an option; see --help"):format(argv[i]) end
  if valued[name] then return take_value(given, argv, i, name, value) end
  if modes[name] then return take_mode(given, argv, i, name, value) end
  if not flags[name] then return unknown(argv[i], name) end
  if value then return nil, ("--%s does not take a value"):format(name) end
  given[name] = true
  return i
end

--- A node may pass our own name as the command of a container whose entrypoint we are.
local function is_own_name(argv)
  return #argv == 1 and (argv[1] == OWN_NAME or argv[1]:sub(-#OWN_NAME - 1) == "/" .. OWN_NAME)
end

local function from_variables(option, environment)
  for _, variable in ipairs(option.variables) do
    local value = environment[variable]
    if value and value ~= "" then return check_choice(option, variable, value) end
  end
  return option.default
end

local switches = { ["true"] = true, ["1"] = true, ["false"] = false, ["0"] = false, [""] = false }

--- --stdin or SBA_STDIN_STDOUT. Options take precedence over it; it takes precedence over the other variables.
local function stdin_stdout(given, environment)
  local wanted = given.stdin
  if wanted == nil then wanted = switches[(environment.SBA_STDIN_STDOUT or ""):lower()] end
  if wanted == nil then return nil, "SBA_STDIN_STDOUT must be true or false" end
  if wanted then
    given.job, given.result = given.job or "-", given.result or "-"
  end
  return true
end

local confine_modes <const> = { auto = true, require = true, off = true }

---@class cli.settings
---@field mode "run"|"validate"|"report"|"schema"|"idle"|"version"|"help"|"lua"
---@field job string "-" is stdin
---@field result string "-" is stdout
---@field workspace string
---@field user? string
---@field log_format "json"|"text"|"auto"
---@field confine "auto"|"require"|"off"
---@field resume boolean
---@field replay? string the recording
---@field file? string what to validate or report
---@field what? "job"|"result"|"steps"
---@field script? string[] the arguments after --lua

--- Reads arguments and environment.
---@param argv string[]
---@param environment table<string, string>
---@return cli.settings? settings, string? message one line, without the program's name
function cli.parse(argv, environment)
  local given, i = {}, is_own_name(argv) and 2 or 1
  while argv[i] do
    local last, message = take(given, argv, i)
    if not last then return nil, message end
    i = last + 1
  end
  given.mode, given.resume = given.mode or "run", given.resume or false
  local ok, message = stdin_stdout(given, environment)
  if not ok then return nil, message end
  for name, option in pairs(valued) do
    if given[name] == nil then
      given[name], message = from_variables(option, environment)
      if message and given.mode == "run" then return nil, message end
    end
  end
  given.log_format, given["log-format"] = given["log-format"], nil
  given.confine, message = from_variables({ variables = { "SBA_CONFINE" }, default = "auto", choices = confine_modes }, environment)
  if message and given.mode == "run" then return nil, message end
  if given.resume and given.replay then return nil, "--resume and --replay cannot be combined" end
  if given.resume and given.result == "-" then
    return nil, "--resume requires a result file: the journal is next to it"
  end
  return given
end

return cli
