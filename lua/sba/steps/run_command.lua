-- SPDX-License-Identifier: Apache-2.0
-- The step run_command: one command, run to its end in the workspace.

local excerpt = require "sba.util.excerpt"
local fail = require "sba.util.fail"
local file = require "native.file"
local humanize = require "sba.util.humanize"
local interrupt = require "native.interrupt"
local is = require "sba.util.schema_check"
local long_text = require "sba.util.files".long_text
local printable = require "sba.util.printable"
local process = require "native.process"
local redact = require "native.secret".redact
local worker_report = require "sba.util.worker_report"
local workspace = require "native.workspace"

local check, raise = fail.check, fail.raise
local LEAST <const> = 0.001 -- seconds of a command
-- Bytes of both streams as they came.
local MOST_TEXT <const> = 1024 * 1024
-- Bytes that are shown of a stream that is not the step's plain text.
local SHOWN_BESIDE <const> = 64 * 1024
-- Bytes of an argument with its NUL: the kernel's MAX_ARG_STRLEN.
local LONGEST_ARGUMENT <const> = 128 * 1024
local OWNERS <const> = tonumber("700", 8)
local LONGEST_NAME <const> = 100 -- bytes of a command in a message
-- By their numbers.
local SIGNALS <const> = {
  "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL",
  "SIGUSR1", "SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD",
  "SIGCONT", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGXCPU", "SIGXFSZ",
  "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO", "SIGPWR", "SIGSYS",
}

local function argv_of(arguments, shell)
  if arguments.shell then return { shell or "/bin/sh", "-c", arguments.shell } end
  return humanize.command(arguments)
end

--- A script that is too long for an argument is read by the shell from a descriptor, which its
--- first line closes, or without /proc from a file. Returns argv; the script, for process.run; the
--- directory of the file, to be closed.
local function long_script(script, shell)
  local proc <close> = workspace.open "/proc/self/fd"
  if proc then return { shell or "/bin/sh", "/proc/self/fd/3" }, "exec 3<&-; " .. script end
  local directory = check(file.make_temporary_directory "/tmp")
  local path = directory .. "/script"
  check(file.replace(path, { script }, { durable = false, mode = OWNERS }))
  local closing = setmetatable({}, { __close = function() file.remove_directory(directory) end })
  return { shell or "/bin/sh", path }, nil, closing
end

--- As long_script, for any command.
local function invocation(arguments, shell)
  if #(arguments.shell or "") < LONGEST_ARGUMENT then return argv_of(arguments, shell) end
  return long_script(arguments.shell, shell)
end

local function named(arguments)
  local line = redact(arguments.shell or table.concat(argv_of(arguments), " ")):gsub("%c+", " ")
  return ("the command `%s`"):format(printable.cut(line, LONGEST_NAME))
end

-- Seconds since 1970, when the command is ended.
local DEADLINE <const>, LAST_DEADLINE <const> = "CYNODE_DEADLINE", 253402300799 -- the year 9999
local REPORT <const> = "CYNODE_REPORT" -- the file for a worker's report
local ours <const> = { [DEADLINE] = true, [REPORT] = true }
-- By which the next run finds what this one left.
local RUN <const> = "CYNODE_RUN"

local function name_of(variable) return variable:match "^[^=]*" end

local proxies <const> = { http_proxy = true, https_proxy = true, no_proxy = true, all_proxy = true }

-- What a step cannot replace: the run's word, and the proxies that the node set, in upper or lower case.
local function fixed_of(inherited)
  local set = { [RUN:lower()] = true }
  for _, variable in ipairs(inherited) do
    local name = name_of(variable):lower()
    if proxies[name] then set[name] = true end
  end
  return set
end

--- The job's environment and the step's own variables.
local function merged(inherited, own)
  if not own then return table.move(inherited, 1, #inherited, 1, {}) end
  local list, fixed = {}, fixed_of(inherited)
  for _, variable in ipairs(inherited) do
    local name = name_of(variable)
    if own[name] == nil or fixed[name:lower()] then list[#list + 1] = variable end
  end
  for name, value in pairs(own) do
    if not fixed[name:lower()] and not ours[name] then list[#list + 1] = name .. "=" .. value end
  end
  return list
end

--- seconds: until the command is ended.
local function environment(inherited, own, seconds, report)
  local list = merged(inherited, own)
  if seconds < math.huge then
    local ends_at = math.floor(math.min(LAST_DEADLINE, interrupt.wall() / 1000 + seconds))
    list[#list + 1] = DEADLINE .. "=" .. ends_at
  end
  if report then list[#list + 1] = REPORT .. "=" .. report end
  return list
end

local function check_arguments(arguments)
  if arguments.args and not arguments.command then return "args go with command", "args" end
  -- A whole command line is no program's name. A path may hold blanks, and may be there only when
  -- the step runs.
  local command = arguments.command
  if command and command:find("[%s|&;<>$]") and not command:find("^[^%s|&;<>$]*/") then
    local message = "%s is not a program; command is one program: use args for its arguments, or shell for a script"
    return message:format(humanize.quoted(command)), "command"
  end
  for _, name in ipairs(arguments.env and arguments.secrets or {}) do
    if arguments.env[name] then return ("env and secrets both give %s"):format(humanize.quoted(name)), "secrets" end
  end
end

--- The step's own variables, its secrets among them.
local function own_variables(arguments, job_context)
  if not arguments.secrets then return arguments.env end
  local own = {}
  for name, value in pairs(arguments.env or {}) do own[name] = value end
  for _, name in ipairs(arguments.secrets) do
    own[name] = job_context.secret and job_context.secret(name)
    if not own[name] then
      raise("not_found", "there is no secret %s for this command", humanize.quoted(name))
    end
  end
  return own
end

-- By what ended it: code, message, and the argument that the message names.
local by_ending <const> = {
  timeout = { "timeout", "%s ran longer than its timeout of %s s and was ended", "timeout_seconds" },
  idle = { "idle_timeout", "%s printed nothing for %s s and was ended", "idle_timeout_seconds" },
  deadline = { "timeout", "the job's time was up while %s ran" },
  cancelled = { "cancelled", "the job was cancelled while %s ran" },
}

local LARGEST_CGROUP <const> = 64 * 1024 -- bytes of /proc/self/cgroup
local function kills_in(counts) return tonumber(counts:read():match "\noom_kill (%d+)") end

local function open_counter(directory, name)
  local root <close> = workspace.open(directory)
  local counter = root and root:open(name)
  return counter and kills_in(counter) and counter
end

--- Lines of /proc/self/cgroup are `NUMBER:CONTROLLERS:PATH`, for cgroup v2 `0::PATH`. A container
--- may see its cgroup as the root where the line has the host's path. False: nothing counts.
local function find_counter()
  for line in (file.read("/proc/self/cgroup", LARGEST_CGROUP) or ""):gmatch "[^\n]+" do
    local controllers, path = line:match "^%d+:([^:]*):(.*)"
    local top, name = "/sys/fs/cgroup", controllers == "" and "memory.events"
    if ("," .. controllers .. ","):find(",memory,", 1, true) then
      top, name = "/sys/fs/cgroup/memory", "memory.oom_control"
    end
    local counter = name and (open_counter(top .. path, name) or open_counter(top, name))
    if counter then return counter end
  end
  return false
end

-- As find_counter returns it; looked for once.
local counter

--- How many processes of the runner's cgroup the kernel killed because memory ran out.
local function oom_kills()
  if counter == nil then counter = find_counter() end
  return counter and kills_in(counter) or 0
end

-- How many the kernel had killed when the command began.
local known_kills

local function how_it_ended(outcome)
  if outcome.exit_code then return ("ended with exit code %d"):format(outcome.exit_code) end
  return outcome.signal and "was ended by " .. outcome.signal or "could not be ended"
end

--- Why the step fails; nil where it does not.
local function failure_of(arguments, job_context, outcome)
  local is_cut = outcome.stdout_truncated or outcome.stderr_truncated
  local is_well = outcome.exit_code == 0 and outcome.ended == "exit" or outcome.ended == "heard"
  if is_well and not is_cut then return nil end
  local command, ending = named(arguments), by_ending[outcome.ended]
  if ending then
    local message = ending[2]:format(command, arguments[ending[3]])
    if outcome.exit_code or outcome.signal then return ending[1], message end
    return ending[1], message .. "; SIGKILL did not end it: it hangs in the kernel, or another process traces it"
  end
  local limit = job_context.max_output_bytes
  if is_cut and not job_context.agent and (arguments.max_output_bytes or limit) >= limit then
    local message = "%s printed more than the job's max_output_bytes (%d); raise that, print less, "
      .. "or give the step a smaller max_output_bytes: its output is then cut, and it succeeds"
    return "constraint_violation", message:format(command, limit)
  end
  if outcome.exit_code == 0 then return nil end
  local how = how_it_ended(outcome)
  if outcome.ended == "exit" and oom_kills() > known_kills then
    local message = "%s %s: memory ran out, and the kernel killed a process; "
      .. "let it use less, or give the container more"
    return "out_of_memory", message:format(command, how)
  end
  return "step_failed", command .. " " .. how
end

local result_schema = is.object {
  "exit_code", is.count("Absent where a signal ended the command.", { maximum = 255 }),
  "signal", is.text "Name of the signal that ended the command: SIGSEGV.",
  "stdout!", is.text "UTF-8; other bytes are replaced.",
  "stderr!", is.text(),
  "stdout_truncated!", is.flag(),
  "stderr_truncated!", is.flag(),
  "duration_ms!", is.count(),
  "cpu_time_ms!", is.count "Of the command and the children it waited for.",
  "max_rss_bytes!", is.count "Largest size in memory of one of them, as the kernel counts it.",
  "report", worker_report.schema,
}

local function result_of(outcome)
  local result = {}
  for _, name in ipairs(result_schema.order) do result[name] = outcome[name] end
  return result
end

--- Outside the workspace, any directory that the user can enter.
local function directory_of(root, path)
  if not path or path == "" then path = "." end
  local directory, failure = root:directory(path)
  if directory or failure.code ~= "path_escape" then return directory, failure end
  if path:sub(1, 1) ~= "/" then path = root:path() .. "/" .. path end
  local outside <close>, problem = workspace.open(path)
  if not outside then return nil, problem end
  return outside:directory "."
end

--- Both streams as they came.
local function text_of(outcome, limit)
  local head, tail = outcome.output, outcome.output_tail
  if not head then head = outcome.stdout ~= "" and outcome.stdout or outcome.stderr end
  if type(head) == "table" then return head.shown, true end
  if not tail then return head, outcome.stdout_truncated or outcome.stderr_truncated end
  local total = #head + outcome.output_missing + #tail
  return excerpt.join(head, tail, total, math.min(limit, MOST_TEXT)), true
end

--- Seconds until the command is ended (nil: no limit), whether the job's time is up then, and the
--- grace that it has.
local function time_limit(arguments, job_context)
  local own, left, grace = arguments.timeout_seconds, nil, nil
  if job_context.seconds_left then left, grace = job_context.seconds_left() end
  if left and left <= (own or left) then return left, true, grace end
  return own, false, nil
end

local function at_least_some(seconds) return seconds and math.max(seconds, LEAST) end

--- Runs the command to its end. Raises failures.
local function outcome_of(arguments, job_context, directory, limit)
  local report_path = job_context.report_path and job_context.report_path()
  local seconds, is_jobs, grace = time_limit(arguments, job_context)
  -- luacheck: ignore 211/file_of_script
  local argv, script, file_of_script <close> = invocation(arguments, job_context.shell)
  local own = own_variables(arguments, job_context)
  local until_end = math.min(seconds or math.huge, interrupt.remaining() or math.huge)
  local outcome = check(process.run {
    argv = argv, script = script, directory = directory, stdin = arguments.stdin,
    env = environment(job_context.environment, own, until_end, report_path),
    timeout = at_least_some(seconds), grace = grace,
    idle_timeout = at_least_some(arguments.idle_timeout_seconds),
    apart = job_context.apart or own ~= arguments.env, -- out of reach: its secrets
    output_limit = limit,
    end_at_limit = limit == job_context.max_output_bytes and not job_context.agent,
    spool = job_context.spool,
    began = job_context.began, tick = job_context.tick, whole_news = job_context.follow,
    hear = job_context.hear,
  })
  if report_path then outcome.report = job_context.report(report_path) end
  if outcome.ended == "timeout" and is_jobs then
    outcome.ended = "deadline"
    job_context.time_is_up()
  end
  return outcome
end

local function run(arguments, job_context)
  local directory <close>, unusable = directory_of(job_context.workspace, arguments.working_dir)
  if not directory then
    raise(unusable.code, "the working directory cannot be used: %s", unusable.message)
  end
  local limit = math.min(arguments.max_output_bytes or math.huge, job_context.max_output_bytes)
  known_kills = oom_kills()
  local outcome = outcome_of(arguments, job_context, directory, limit)
  local shown = outcome.output and SHOWN_BESIDE or MOST_TEXT
  outcome.stdout = long_text.of_output(outcome.stdout, shown)
  outcome.stderr = long_text.of_output(outcome.stderr, shown)
  if outcome.signal then outcome.signal = SIGNALS[outcome.signal] or "signal " .. outcome.signal end
  local code, message = failure_of(arguments, job_context, outcome)
  local output, is_cut = text_of(outcome, limit)
  local result = result_of(outcome)
  if not code then return result, output, is_cut end
  return fail.with(code, message, result, output, is_cut)
end

--- What a model sees. The order in which two pipes are read differs from run to run. Of longer output only the step's
--- text has the end.
local function show(result)
  if result.stdout_truncated or result.stderr_truncated then return nil end
  if result.stderr == "" then return result.stdout end
  if result.stdout == "" then return result.stderr end
  local gap = result.stdout:byte(-1) == 0x0A and "" or "\n"
  return result.stdout .. gap .. "--- stderr:\n" .. result.stderr
end

local c_string <const> = is.text(nil, { nul = false })

local function list(description, least)
  return { type = "array", items = c_string, minItems = least, description = description }
end

local function seconds(description) return is.typed("number", description, { exclusiveMinimum = 0 }) end

return {
  name = "run_command",
  summary = "Run a command in the workspace and wait for its end.",
  arguments = is.object({
    "command", is.text("Program to run: a name to look up in PATH, or a path. "
      .. "No shell is involved.", { nul = false, minLength = 1 }),
    "args", list "Its arguments; with command only.",
    "argv", list("Program and arguments in one list.", 1),
    "shell", is.text("A script for /bin/sh -c, for pipes, redirections or variables.",
      { nul = false, minLength = 1 }),
    "working_dir", is.text("Directory to run in; outside the workspace, any that its user can enter.",
      { nul = false, default = "." }),
    "env", {
      type = "object",
      additionalProperties = c_string,
      propertyNames = { title = "the name of a variable, not empty and without = and NUL", pattern = "^[^=\0]+$" },
      description = "Variables to add to the environment or to replace in it. "
        .. "The proxies that the node set cannot be replaced.",
    },
    "stdin", is.text "What the command reads; default: nothing.",
    "timeout_seconds",
    seconds "Seconds, more than 0, after which the command is ended and the step fails.",
    "idle_timeout_seconds", seconds("Seconds, more than 0, without any output, "
      .. "after which the command is ended and the step fails."),
    "max_output_bytes", is.count("Bytes of stdout and stderr together to return at most; "
      .. "the rest is left out, and the command goes on.", { minimum = 1 }),
    "secrets", {
      type = "array",
      items = is.text(nil, { pattern = "^[A-Za-z_][A-Za-z0-9_]*$" }),
      description = "Names of the operator's secrets that the command gets, as variables of these "
        .. "names; not for a model's commands.",
    },
  }, {
    aliases = { cwd = "working_dir" },
    oneOf = { { required = { "command" } }, { required = { "argv" } }, { required = { "shell" } } },
  }),
  for_model = {
    summary = "Run a shell command line in the workspace and wait for its end.",
    order = { "command", "timeout_seconds" },
    descriptions = { timeout_seconds = "Default: 120; then the command is ended." },
    required = { "command" },
    called = {
      "bash", "shell", "sh", "cmd", "exec", "terminal", "run", "run_shell_command",
      "execute_command", "exec_command", "run_terminal_cmd", "local_shell", "container_exec",
    },
  },
  result = result_schema,
  check = check_arguments,
  takes_secrets = true,
  show = show,
  run = run,
  ticks = true,
  redacts = true,
}
