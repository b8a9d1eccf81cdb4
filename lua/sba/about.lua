-- SPDX-License-Identifier: Apache-2.0
-- The modes that run no job: --version, --help, --schema, --validate and --completion; --idle for
-- sessions. Each returns the exit status.

local bundle = require "native.bundle"
local catalogue = require "sba.catalogue"
local cli = require "sba.cli"
local exit = require "sba.result.failure".exit
local file = require "native.file"
local humanize = require "sba.util.humanize"
local job_context = require "sba.job.context"
local job_schema = require "sba.job.job_schema"
local jobs = require "sba.job"
local json = require "sba.util.json"
local json_place = require "sba.util.json_place"
local printable = require "sba.util.printable"
local process = require "native.process"
local read_diff = require "sba.patch.diff".parse
local redact = require "native.secret".redact
local result_schema = require "sba.result.result_schema"
local schema_check = require "sba.util.schema_check"
local schema_document = require "sba.util.schema_document"
local secret = require "sba.util.secret"
local worker_report = require "sba.util.worker_report"

local about = {}

function about.version()
  print(("cynode-sba %s (%s)"):format(bundle.version, bundle.libraries))
  return exit.OK
end

-- One line for both.
local SHOWN_TOGETHER <const> = {
  version = { "-V, --version, -h, --help", "print the version, or the options" },
}
local HEAD <const> = "cynode-sba [OPTION...] [JOB]: run a job and write its result; see cynode-sba(1)\n"
local TAIL <const> = [[
                     CYNODE_ARTIFACTS_DIR     artifacts/ next to the result
exit: 0 success, 1 the job failed, 2 job or command line refused, 3 the result
could not be written, 75 no model can be reached, 124 timeout, 128+N signal N
]]

-- Options with a variable stand in a table of their own, with the default as their summary.
local function usage()
  local modes, row = {}, "%-20s %-24s %s\n"
  local settings = { row:format("option", "environment", "default") }
  for _, option in ipairs(cli.options) do
    local name, summary = option.name, option.summary
    local shown = "--" .. name .. (option.value and " " .. option.value or "")
    if option.variables then
      settings[#settings + 1] = row:format(shown, option.variables[1], summary)
    elseif name ~= "help" and not option.of then
      local both = SHOWN_TOGETHER[name] or { shown, summary }
      modes[#modes + 1] = ("  %-28s %s\n"):format(table.unpack(both))
    end
  end
  return HEAD .. table.concat(modes) .. table.concat(settings) .. TAIL
end

about.usage = usage()

function about.help()
  io.write(about.usage)
  return exit.OK
end

function about.idle()
  process.idle()
  return exit.signalled() or exit.OK
end

-- null is as if left out.
local function has(name)
  local is_null = { type = "null" }
  return { required = json.array { name }, properties = { [name] = { ["not"] = is_null } } }
end

local function step_schema(general, step)
  local kind = { const = step.name, description = step.summary }
  local own = schema_check.with(general, { type = kind, arguments = step.arguments })
  if step.arguments.oneOf or #(step.arguments.required or {}) > 0 then
    own.printed = { anyOf = json.array { has "arguments", has "args" } }
  end
  return own
end

local function schema_of_job()
  local whole = job_schema(catalogue.names())
  local items, one_of, definitions = whole.properties.steps.items, {}, {}
  for i, step in ipairs(catalogue.all()) do
    one_of[i] = step_schema(items, step)
    definitions[step.name] = one_of[i]
  end
  whole.properties.steps.items = { oneOf = one_of }
  return schema_document.print(whole, definitions, true)
end

local function schema_of_steps()
  local properties, order = {}, {}
  for i, step in ipairs(catalogue.all()) do
    order[i] = step.name
    properties[step.name] = {
      type = "object", description = step.summary, order = { "arguments", "result" },
      properties = { arguments = step.arguments, result = step.result or { type = "object" } },
    }
  end
  return schema_document.print {
    title = "The step types of cynode-sba",
    description = "For each type of step: what its arguments are, and what its result is.",
    type = "object", order = order, properties = properties, additionalProperties = false,
    printed = { ["$id"] = "urn:cynode-sba:schema:steps:1" },
  }
end

---@type table<string, fun(): string>
about.schemas = {
  job = schema_of_job,
  result = function() return schema_document.print(result_schema) end,
  steps = schema_of_steps,
  report = function() return schema_document.print(worker_report.schema, nil, true) end,
}

---@param settings cli.settings
function about.schema(settings)
  io.write(about.schemas[settings.values[1] or "job"]())
  return exit.OK
end

local function say(name, message, line, column)
  print(("%s:%d:%d: %s"):format(name, line, column, printable.line(message)))
end

local function print_list(name, bytes, errors, before)
  local places = #errors > 0 and json_place.of(bytes)
  for _, one in ipairs(errors) do
    say(name, before .. schema_check.line(one), places:place(one.pointer))
  end
  local more = errors.total - #errors
  if more > 0 then print(("%s: %sand %d more"):format(name, before, more)) end
end

local function leaves(path)
  if path:sub(1, 1) == "/" then return false end
  for part in path:gmatch "[^/]+" do
    if part ~= "." then return part == ".." end
  end
end

-- Why a valid step will fail when it runs, and by which argument.
local function lint(kind, arguments, inference)
  for _, name in ipairs { "path", "save_to" } do
    local path = arguments[name]
    if type(path) == "string" and leaves(path) then return "the path leaves the workspace", name end
  end
  if kind == "apply_unified_diff" then
    local parsed, failure = read_diff(arguments.diff)
    if not parsed then return failure.message, "diff" end
  elseif kind == "ask_model" then
    if not json.is_object(inference) then
      return "the job names no models: inference.allowed_models is missing"
    end
    local allowed, model = inference.allowed_models, arguments.model
    if model and json.is_array(allowed) and not json.contains(allowed, model) then
      return ("the model %s is not in inference.allowed_models"):format(humanize.quoted(model)), "model"
    end
  end
end

-- The checks of its step types say besides what will fail.
local function strict_catalogue(bytes)
  local inference = json.table_of((json.decode(bytes))).inference
  local function get(name)
    local kind = catalogue.get(name)
    if not kind then return nil end
    local function check(arguments)
      local mistake, argument
      if kind.check then mistake, argument = kind.check(arguments) end
      if mistake then return mistake, argument end
      return lint(name, arguments, inference)
    end
    return { arguments = kind.arguments, takes_secrets = kind.takes_secrets, check = check }
  end
  return { names = catalogue.names, get = get }
end

local function validate(path, environment)
  local name = path == "-" and "<stdin>" or redact(path)
  local bytes, unread = file.read(path, jobs.LARGEST)
  if not bytes then return exit.because(unread.message, exit.REFUSED) end
  local function load_context(given) return job_context.load(given, jobs.directory_of(path)) end
  -- Names of secrets that are not set here are no mistakes: a job may be validated where its
  -- secrets are not.
  local notes = { total = 0 }
  local secrets = { unknown = secret.unknown, notes = notes }
  local step_types = strict_catalogue(bytes)
  local read, failure = jobs.parse(bytes, step_types, environment, load_context, secrets)
  local broken = failure and failure.broken
  if broken then
    say(name, broken.what, broken.line, broken.column)
  else
    print_list(name, bytes, failure and failure.errors or { total = 0 }, "")
    print_list(name, bytes, notes, "note: ")
  end
  if not read then return exit.REFUSED end
  print(name .. ": valid")
  return exit.OK
end

---Prints every mistake on a line, "FILE:LINE:COLUMN: POINTER: message". The status is that of the
---first file that is not valid.
---@param settings cli.settings
---@param environment table<string, string>
function about.validate(settings, environment)
  local status = exit.OK
  for _, path in ipairs(#settings.values > 0 and settings.values or { settings.job }) do
    local one = validate(path, environment)
    if status == exit.OK then status = one end
  end
  return status
end

-- How a shell is told what may follow an option: one of its values, a file, or anything.
local function follows(option, one_of, file_name, anything)
  if option.values then return one_of:format(table.concat(option.values, " ")) end
  if option.takes_file then return file_name end
  return option.value and anything or ""
end

local completions = {}

function completions.bash()
  local names, cases = {}, {}
  for i, option in ipairs(cli.options) do
    local values = follows(option, '-W "%s"', "-f")
    names[i] = "--" .. option.name
    if values ~= "" then
      local case = '        --%s) COMPREPLY=($(compgen %s -- "$2")); return ;;\n'
      cases[#cases + 1] = case:format(option.name, values)
    end
  end
  return ([[
# bash completion of cynode-sba
_cynode_sba() {
    case $3 in
%s    esac
    COMPREPLY=($(compgen -W "%s" -- "$2"))
}
complete -o filenames -o default -F _cynode_sba cynode-sba
]]):format(table.concat(cases), table.concat(names, " "))
end

function completions.fish()
  local lines = { "# fish completion of cynode-sba\n", "complete -c cynode-sba -F\n" }
  for _, option in ipairs(cli.options) do
    local what = follows(option, " -x -a '%s'", " -r -F", " -x")
    local summary = option.summary:gsub("'", "\\'")
    local line = "complete -c cynode-sba -l %s%s -d '%s'\n"
    lines[#lines + 1] = line:format(option.name, what, summary)
  end
  return table.concat(lines)
end

function completions.zsh()
  local lines = {}
  for i, option in ipairs(cli.options) do
    local what = follows(option, ":value:(%s)", ":file:_files", ":value:")
    local summary = option.summary:gsub("'", "'\\''"):gsub("[%[%]:]", "\\%0")
    local repeatable = option.is_list and not option.is_mode
    local star = repeatable and "*" or ""
    lines[i] = ("    '%s--%s[%s]%s' \\\n"):format(star, option.name, summary, what)
  end
  return ([=[
#compdef cynode-sba
_cynode-sba() {
  _arguments \
%s    '*:file:_files'
}
# A file in $fpath is the function that completes; what is sourced says which that is.
if [[ $funcstack[1] == _cynode-sba ]]; then
  _cynode-sba "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _cynode-sba cynode-sba
fi
]=]):format(table.concat(lines))
end

---@param settings cli.settings
function about.completion(settings)
  io.write(completions[settings.values[1]]())
  return exit.OK
end

return about
