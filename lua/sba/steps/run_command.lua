-- SPDX-License-Identifier: Apache-2.0
-- The step run_command: one command, run to its end.

local native = require "native.process"

local function argv_of(arguments)
  if arguments.shell then return { "/bin/sh", "-c", arguments.shell } end
  if arguments.argv then return arguments.argv end
  return { arguments.command, table.unpack(arguments.args or {}) }
end

--- The job's environment with the step's variables in it.
local function environment_of(arguments, job_context)
  local own = arguments.env
  if not own or not next(own) then return job_context.environment end
  local list = {}
  for _, variable in ipairs(job_context.environment) do
    if own[variable:match("^[^=]*")] == nil then list[#list + 1] = variable end
  end
  local names = {}
  for name in pairs(own) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do list[#list + 1] = name .. "=" .. own[name] end
  return list
end

local function result_of(outcome)
  return {
    exit_code = outcome.exit_code, signal = outcome.signal, stdout = outcome.stdout, stderr = outcome.stderr,
    stdout_truncated = outcome.stdout_truncated, stderr_truncated = outcome.stderr_truncated,
    duration_ms = outcome.duration_ms, cpu_time_ms = outcome.cpu_time_ms, max_rss_bytes = outcome.max_rss_bytes,
  }
end

local function shown(arguments)
  local line = arguments.shell or table.concat(argv_of(arguments), " ")
  line = line:gsub("%s+", " ")
  local past = utf8.offset(line, 101)
  return past and line:sub(1, past - 1) .. "..." or line
end

--- What a command's end means for the step; nil where all went well.
local function failure_of(outcome, arguments, job_context)
  local command = shown(arguments)
  local messages = {
    timeout = {
      "timeout",
      ("the command `%s` ran longer than its timeout of %s s and was ended"):format(command, arguments.timeout_seconds),
    },
    deadline = { "timeout", ("the job's time was up while the command `%s` ran"):format(command) },
    cancelled = { "cancelled", ("the job was cancelled while the command `%s` ran"):format(command) },
    output_limit = {
      "constraint_violation",
      ("the command `%s` printed more than the job's max_output_bytes (%d) and was ended"):format(command, job_context.max_output_bytes),
    },
  }
  local found = messages[outcome.ended]
  if not found and outcome.signal then
    found = { "step_failed", ("the command `%s` was ended by %s"):format(command, outcome.signal) }
  elseif not found and outcome.exit_code ~= 0 then
    found = { "step_failed", ("the command `%s` ended with exit code %d"):format(command, outcome.exit_code) }
  end
  return found and { code = found[1], message = found[2] }
end

---@param arguments table
---@param job_context { workspace: native.folder, max_output_bytes: integer, environment: string[], tick: fun(), agent: boolean }
---@return table? result
---@return string|native.failure text or failure
local function run(arguments, job_context)
  local directory <close>, refused = job_context.workspace:directory(arguments.working_dir or ".")
  if not directory then return nil, refused end
  local limit = math.min(arguments.max_output_bytes or math.maxinteger, job_context.max_output_bytes)
  local own_limit = arguments.max_output_bytes ~= nil and arguments.max_output_bytes <= job_context.max_output_bytes
  local outcome, failure = native.run {
    argv = argv_of(arguments), env = environment_of(arguments, job_context), directory = directory,
    stdin = arguments.stdin, timeout = arguments.timeout_seconds, output_limit = limit,
    on_output_limit = (own_limit or job_context.agent) and "discard" or "kill",
    tick = job_context.tick,
  }
  if not outcome then return nil, failure end
  local result = result_of(outcome)
  failure = failure_of(outcome, arguments, job_context)
  if not failure then return result, outcome.output end
  failure.result, failure.text = result, outcome.output
  return nil, failure
end

local function has_nul(value)
  if type(value) == "string" then return value:find("\0", 1, true) ~= nil end
  for key, part in pairs(type(value) == "table" and value or {}) do
    if has_nul(part) or type(key) == "string" and has_nul(key) then return true end
  end
  return false
end

local function check(arguments)
  for _, name in ipairs { "command", "args", "argv", "shell", "working_dir", "env" } do
    if has_nul(arguments[name]) then return name .. " holds a NUL character, which no command can be given", name end
  end
  if arguments.args and not arguments.command then return "args goes with command; put everything into argv, or into shell", "args" end
  for name in pairs(arguments.env or {}) do
    if name == "" or name:find("=", 1, true) then return ("%q is no name of a variable"):format(name), "env" end
  end
  if arguments.timeout_seconds and arguments.timeout_seconds <= 0 then return "timeout_seconds must be more than 0", "timeout_seconds" end
end

return {
  name = "run_command",
  summary = "Run a command in the workspace and wait for its end.",
  arguments = {
    type = "object",
    order = { "command", "args", "argv", "shell", "working_dir", "env", "stdin", "timeout_seconds", "max_output_bytes" },
    aliases = { cwd = "working_dir" },
    oneOf = { { required = { "command" } }, { required = { "argv" } }, { required = { "shell" } } },
    additionalProperties = false,
    properties = {
      command = { type = "string", minLength = 1, description = "The program: a name looked up in PATH, or a path." },
      args = { type = "array", items = { type = "string" }, description = "Its arguments, each as it is: no shell reads them." },
      argv = { type = "array", minItems = 1, items = { type = "string" }, description = "Program and arguments in one list." },
      shell = { type = "string", minLength = 1, description = "A script for /bin/sh -c." },
      working_dir = { type = "string", minLength = 1, description = "Folder to run in; default: the workspace." },
      env = {
        type = "object", additionalProperties = { type = "string" },
        description = "Variables to set beside the runner's own.",
      },
      stdin = { type = "string", description = "What the command reads; default: nothing." },
      timeout_seconds = { type = "number", description = "The longest it may run." },
      max_output_bytes = {
        type = "integer", minimum = 1,
        description = "How much of stdout and stderr together to keep; the command may print more. At most the job's bound.",
      },
    },
  },
  result = {
    type = "object",
    required = {
      "stdout", "stderr", "stdout_truncated", "stderr_truncated", "duration_ms", "cpu_time_ms", "max_rss_bytes",
    },
    order = {
      "exit_code", "signal", "stdout", "stderr", "stdout_truncated", "stderr_truncated", "duration_ms", "cpu_time_ms",
      "max_rss_bytes",
    },
    additionalProperties = false,
    properties = {
      exit_code = { type = "integer", description = "Where the command ended by itself." },
      signal = { type = "string", description = "Where a signal ended it, such as SIGSEGV." },
      stdout = { type = "string", description = "Bytes that are not UTF-8 come as U+FFFD." },
      stderr = { type = "string" },
      stdout_truncated = { type = "boolean" },
      stderr_truncated = { type = "boolean" },
      duration_ms = { type = "integer", minimum = 0 },
      cpu_time_ms = { type = "integer", minimum = 0, description = "Of the command and the children that it waited for." },
      max_rss_bytes = { type = "integer", minimum = 0 },
    },
  },
  check = check,
  run = run,
}
