-- SPDX-License-Identifier: Apache-2.0
-- The program: arguments in, exit status out. A job goes through the stages below. Whatever stops
-- it, `finish` ends its processes and writes the result.

local accept = require "sba.run.accept"
local catalogue = require "sba.catalogue"
local cli = require "sba.cli"
local ending = require "native.ending"
local exit = require "sba.result.failure".exit
local fail = require "sba.util.fail"
local failures = require "sba.result.failure"
local file = require "native.file"
local finish = require "sba.run.finish"
local identity = require "native.identity"
local interrupt = require "native.interrupt"
local jobs = require "sba.job"
local lazy = require "sba.util.lazy"
local secret = require "sba.util.secret"
local state = require "sba.run.state"
local text = require "native.text"
local workspace = require "native.workspace"

local about = lazy "sba.about"
local agent = lazy "sba.agent"
local checks = lazy "sba.run.check"
local context = lazy "sba.job.context"
local direct = lazy "sba.run.direct"
local humanize = lazy "sba.util.humanize"
local listing = lazy "sba.util.files"
local repl = lazy "sba.repl"
local report = lazy "sba.report"
local reports = lazy "sba.outside.reports"
local skills = lazy "sba.outside.skills"
local step_context = lazy "sba.run.step_context"
local task = lazy "sba.task"
local trace = lazy "sba.outside.trace"

-- The first that is set counts.
local STATUS_URLS <const> = { "SBA_JOB_STATUS_URL", "SBA_CALLBACK_URL" }
-- Where one of these is set, there is a trace to make or to pass on.
local TRACING <const> = {
  "TRACEPARENT", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
}

local AS_ROOT <const> =
  "the runner does not run as root; start it as another user, or name one with --user"

-- The runner does not work as root: it becomes the given user for good, or refuses.
local function become_user(run)
  local user = run.settings.user
  if not user and identity.is_root() then fail.raise("runs_as_root", AS_ROOT) end
  if not user then return end
  local ok, failure = identity.become(user)
  run.settings.user = nil
  if ok then return end
  local code = failure.code == "unknown_user" and "environment_invalid" or "runs_as_root"
  fail.raise(code, "cannot run as the user of --user: %s", failure.message)
end

local codes_of_reading <const> = {
  too_large = "schema_validation", out_of_memory = "internal_error",
}

local LARGE <const> = 1 << 20 -- bytes of a job

-- Names of a directory that are compared with one that is not there.
local MOST_NAMES <const> = 1000

-- What a job that cannot be opened may be meant to be: an option, or a file of another name.
local function meant(settings)
  if settings.meant then return "--" .. settings.meant end
  local above = settings.job:match "^.*/" or ""
  local name, names = settings.job:sub(#above + 1), {}
  if name == "" then return nil end
  local directory <close> = workspace.open(above == "" and "." or above)
  local entries = directory and listing.entries(directory, ".", MOST_NAMES)
  for i, entry in ipairs(entries or {}) do names[i] = entry.name end
  local near = humanize.near(name, names)
  return near and above .. near
end

-- A typing error must not cost a result: where the command line names the job, what stands at the
-- result's path stays.
local function refuse_unopened(run, failure)
  local settings, message = run.settings, "cannot read the job: " .. failure.message
  local near = settings.is_named and failure.code == "not_found" and meant(settings)
  if near then message = ("%s; did you mean %s?"):format(message, near) end
  -- Only whether it is there counts: a result has more than one byte, and is "too_large".
  local _, absent = file.read(settings.result, 1, { regular = true })
  local stands = settings.result ~= "-" and not (absent and absent.code == "not_found")
  local leaves_result = settings.is_named and stands
  error { code = "environment_invalid", message = message, leaves_result = leaves_result }
end

-- The collector rests until the first step, unless what comes before makes much garbage: to mark
-- what the modules hold takes a twentieth of the time of an empty job.
local function start_collector(run)
  local settings = run.settings
  if settings.resume or settings.replay or #run.bytes > LARGE then collectgarbage "restart" end
end

local function read(run)
  -- What an earlier run did must be known before a signal may end this one.
  interrupt.hold(run.settings.resume and run.settings.job ~= "-")
  local more
  run.bytes, more = file.read(run.settings.job, jobs.LARGEST)
  if run.bytes then
    run.record:start(more)
    run.record.job_sha256 = text.sha256(run.bytes)
    start_collector(run)
    return
  end
  if more.code == "cancelled" then error(more) end
  local code = codes_of_reading[more.code]
  if not code then refuse_unopened(run, more) end
  fail.raise(code, "cannot read the job: %s", more.message)
end

-- From here on the job ends even if the runner hangs or crashes.
local function watch(run)
  accept.keep(run)
  local ok, failure, parent = true, nil, run.settings.die_with_parent
  if parent then ok, failure = interrupt.watch_parent(math.tointeger(parent)) end
  if failure and failure.code == "gone" then
    run.log:event("warning", "parent.gone", { error = failure.message })
    ok = true -- the job is cancelled already
  end
  if ok then ok, failure = ending.start() end
  if ok then return end
  local message = "cannot end with the parent (--die-with-parent): %s"
  if parent then fail.raise("environment_invalid", message, failure.message) end
  run:warn("watchdog.failed", failure.message .. "; if the runner hangs, nothing ends the job")
end

local function has_context(directory)
  local opened <close> = directory and workspace.open(directory) or nil
  return opened ~= nil and (opened:stat("context") or opened:stat("requirements.md")) ~= nil
end

-- Direct jobs need it too: their todo list begins with it.
local function load_context(run, given)
  local directory = jobs.directory_of(run.settings.job)
  if not given and not has_context(directory) then return nil end
  return context.load(given, directory)
end

local function validate(run)
  local unusable = secret.failure()
  local function load(given) return load_context(run, given) end
  local secrets = not unusable and { unknown = secret.unknown } or nil
  local job, failure = jobs.parse(run.bytes, run.catalogue, run.environment, load, secrets)
  local ids = job or failure
  run.record.job_id, run.record.task_id = ids.job_id, ids.task_id
  run.log:identify(ids.job_id, ids.task_id)
  if not job then
    secret.clean(failure.lines, {})
    error(failure)
  end
  if unusable then error(unusable) end
  run.job = job
  -- In an agent's job the given steps are suggestions; the model decides which steps there are.
  run.steps = job.execution_mode == "direct_steps" and job.steps or nil
  run.record.protocol_version = job.protocol_version
  if not run.steps and not job.context then job.context = context.load() end
  job.persona = secret.clean(job.persona, {})
  -- The time counts from the job's first byte on.
  run:limit_time(run.record.began + job.constraints.max_runtime_seconds)
  run.bytes = nil
  accept.keep(run) -- the ids
end

local function report_start(run)
  if run.status_url then reports.start(run) end
end

-- In a direct job, the first question to a model fetches them.
local function fetch_skills(run)
  local ids = not run.steps and run.job.context.skill_ids
  if ids and #ids > 0 then skills.fetch(run) end
end

-- Returns why the job fails. Only the messages of this stage have no secrets, but for the ids of steps.
local function work(run)
  if run.steps and #run.steps == 0 and not run.record.acceptance then return nil end
  -- What a step makes is soon garbage. This collects all once, and with it the text of the job.
  collectgarbage "restart"
  collectgarbage "generational"
  -- Lua 5.4.4 keeps the threshold that it had before: a step sets a new one.
  collectgarbage "step"
  run.context = step_context(run)
  local perform = run.steps and direct.run_rest or agent.run
  return perform(run)
end

-- Each stage raises the failure that the job ends with, or `work` returns it. `finish` is not a stage:
-- it always runs.
local stages = {
  become_user, accept.lock, watch, read, validate, accept.accept, report_start, fetch_skills, work,
}

local function go_through(run)
  for _, stage in ipairs(stages) do
    local failure = stage(run)
    if failure or run.history.result then return failure end
  end
end

-- What is raised may quote the job, or a path of the command line.
local function failure_of(ok, failure)
  if ok then return failures.of_job(failure) end
  failure = failures.caught(failure)
  failure.message = secret.redact(failure.message)
  return failure
end

local function check_at_end(run, failure)
  if not run.context or not run.record.acceptance then return failure end
  return checks.at_end(run, failure)
end

-- What --lua runs has globals as Lua has them.
local function fix_globals()
  local function forbid(message)
    return function(_, name) error(message:format(tostring(name)), 2) end
  end
  setmetatable(_G, {
    __index = forbid "the global '%s' does not exist",
    __newindex = forbid "the global '%s' must not be created; declare a local",
  })
end

local function run_job(settings, environment, warnings)
  fix_globals()
  local run = state.new(settings, environment)
  run.catalogue = catalogue
  local is_reported = not settings.replay
  if is_reported then run.status_url = secret.first_set(environment, STATUS_URLS) end
  if secret.first_set(environment, TRACING) then run.trace = trace.new(run) end
  for _, warning in ipairs(warnings) do run:warn("secret.warning", warning) end
  local failure = failure_of(xpcall(go_through, failures.traced, run))
  failure = failure_of(xpcall(check_at_end, failures.traced, run, failure))
  interrupt.disarm()
  run.failure = failure
  local status = exit.REFUSED
  if failure and failure.code == "locked" then
    run.log:event("error", "job.locked", { error = failure.message .. "; nothing was done" })
  elseif failure and failure.leaves_result then
    local message = failure.message .. ". The result that stands is left as it is"
    local fields = { failure_code = failure.code, failure_message = message }
    run.log:event("error", "job.refused", fields)
  else
    status = finish(run)
  end
  ending.stop()
  return status
end

local function run(settings, environment, warnings)
  if settings.task then
    -- Before the task's files are made.
    local _, failure = fail.caught(become_user, { settings = settings })
    if not failure then _, failure = fail.caught(task.prepare, settings, environment) end
    if failure then return exit.because(failure.message, exit.REFUSED) end
  end
  return run_job(settings, environment, warnings)
end

-- The others are functions of about.lua.
local modes = {
  run = run,
  lua = function(settings, environment) return repl.run(settings, environment) end,
  report = function(settings)
    local path = settings.values[1] or settings.result
    return report.print(path, settings.job, settings.format)
  end,
}

-- What they show is redacted less than the operator wanted.
local shows_text <const> = { lua = true, report = true, validate = true }

local function is_directory(path)
  local opened <close> = workspace.open(path)
  return opened ~= nil
end

---@param argv string[] argv[0] is the program's name
---@return integer status
return function(argv)
  local environment = identity.environment {}
  local warnings = secret.take(environment)
  local settings, message = cli.parse(argv, environment, is_directory)
  if not settings then return exit.because(message, exit.REFUSED) end
  local unusable = shows_text[settings.mode] and secret.failure()
  if unusable then exit.because(unusable.message, exit.OK) end
  if settings.mode ~= "run" then collectgarbage "restart" end
  local mode = modes[settings.mode] or about[settings.mode]
  return mode(settings, environment, warnings)
end
