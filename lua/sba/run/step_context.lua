-- SPDX-License-Identifier: Apache-2.0
-- What a step sees of the run: where it works, how long, what it may ask, and whom it tells.

local artifacts = require "sba.run.artifacts"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local lazy = require "sba.util.lazy"
local secret = require "sba.util.secret"

local ask_model = lazy "sba.run.ask"
local prompt = lazy "sba.agent.prompt"
local rules = lazy "sba.gateway.rules"
local undo = lazy "sba.run.undo"
local worker_report = lazy "sba.util.worker_report"

-- Seconds from SIGTERM to SIGKILL, as in process.h.
local GRACE <const> = 2

-- For a model's commands: nothing waits for a person.
local unattended <const> = {
  PAGER = "cat", GIT_PAGER = "cat", GIT_EDITOR = "true",
  CI = "1", DEBIAN_FRONTEND = "noninteractive", PIP_PROGRESS_BAR = "off",
}

local function environment_of(run)
  local list, environment = {}, secret.for_commands(run.environment)
  for name, value in pairs(not run.steps and unattended or {}) do
    environment[name] = environment[name] or value
  end
  environment.PATH = environment.PATH or "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
  -- A command has a parent, a deadline and a report of its own.
  environment.SBA_DIE_WITH_PARENT, environment.CYNODE_DEADLINE, environment.CYNODE_REPORT = nil, nil, nil
  environment.CYNODE_RUN = run.runner.word
  environment.CYNODE_ARTIFACTS_DIR = run.artifacts and run.artifacts:path()
  for name, value in pairs(environment) do list[#list + 1] = name .. "=" .. value end
  table.sort(list)
  return list
end

--- The time that is reserved for what runs at the job's end, whatever else happens.
local function add_time(run, context)
  -- Only the tree of a command that runs then is ended: checks may need what earlier steps left.
  function context.seconds_left()
    if run.reserved_seconds == 0 then return nil end
    local grace = math.min(GRACE, run.reserved_seconds)
    local ends_at = run.deadline - run.reserved_seconds - grace
    return math.max(0, ends_at - interrupt.now()), grace
  end
  function context.time_is_up() run:set_deadline(run.deadline, run.deadline - interrupt.now()) end
end

--- What a worker says of itself counts for the job where no model of the runner speaks, and no
--- check.
local function add_reports(run, context)
  local place, problem -- of the reports; nil: no command has run
  function context.report_path()
    if place == nil then
      place, problem = worker_report.open(run.runner.word, run.environment, run.workspace)
      table.insert(run.history.runs, run.runner) -- the directories of these runs are removed at the end
      if problem then run.log:event("info", "worker_report.no_place", { error = problem }) end
    end
    return place and worker_report.path(place) or nil
  end
  function context.claim(report)
    if not run.steps or context.apart then return end
    run:emit("step.report", { index = run.record.count, report = report })
    run.record.report = report
  end
  function context.report(path)
    local report, mistake = worker_report.read(place, path)
    if mistake then
      local message = "the report of a worker (CYNODE_REPORT) is left out: " .. mistake
      run:warn("worker_report.invalid", message, { step = run.record.count + 1 })
    elseif report then
      context.claim(report)
    end
    return report
  end
end

--- What the next run must know of the step if this one is killed, and what the one before it had.
local function add_journal(run, context)
  local function emit(name, fields)
    fields.index = run.record.count
    run:emit(name, fields)
  end
  local function earlier(event) return event and event.index == run.record.count and event end
  function context.earlier_session() return (earlier(run.history.agent) or {}).session end
  function context.session_opened(id) emit("step.agent", { session = id }) end
  -- A step that runs again appends to what was there before the first time.
  function context.size_before_append(size)
    local known = earlier(run.history.append)
    if known then return known.size end
    emit("step.append", { size = size })
    return size
  end
  function context.commit(change) return undo.commit(run, change) end
  -- A program may overwrite its environment; it stays in its session.
  local function began(pid, started) emit("step.session", { pid = pid, started = started }) end
  context.began = run.result_directory and began
end

--- What a step asks of the world outside.
local function add_outside(run, context)
  local ask
  function context.ask(question)
    ask = ask or ask_model(run)
    return ask(question)
  end
  function context.call_tool(tool, arguments, limits)
    local whole, idle = limits and limits.whole, limits and limits.idle
    limits = { until_when = whole and interrupt.now() + whole, idle = idle }
    local gateway, failure = run:connect(false, limits)
    if not gateway then return nil, failure end
    return gateway:call(tool, arguments, limits)
  end
  -- Of the gateway, for another agent, where the operator says so: the token goes with it.
  function context.worker_gateway()
    local url = rules.address(run.environment)
    if not url or run.environment.SBA_WORKER_GATEWAY ~= "1" then return nil end
    local token, failure = secret.agent_token()
    if failure then return nil, failure end
    local headers = token and { { name = "Authorization", value = "Bearer " .. token } } or {}
    return { type = "http", name = "gateway", url = url, headers = json.array(headers) }
  end
end

---@param run run an accepted one, or one of `--lua`
---@return sba.job_context
return function(run)
  local job, is_agents = run.job, not run.steps
  local context = {
    workspace = run.workspace, environment = environment_of(run),
    agent = is_agents, follow = run.log.follow or nil,
    max_output_bytes = job.constraints.max_output_bytes,
    allowed_models = job.inference and job.inference.allowed_models,
  }
  if not is_agents then
    context.secret = secret.of_operator
    -- Where a long output goes; of a model's commands it is shown what they print.
    context.spool = run.result_directory or ""
  end
  function context.resolve_path(path) return artifacts.resolve(run, path) end
  function context.prompt() return prompt.for_another(job) end
  function context.plan(entries) run.todo:follow(entries) end
  function context.tick(news, missing)
    if news then run.progress:said(news, missing) end
    run.progress:tick()
    run.log.view:tick()
    run.todo.checkpoint:tick()
    run.checkpoint:tick()
  end
  add_time(run, context)
  add_journal(run, context)
  add_outside(run, context)
  if run.accepted then add_reports(run, context) end
  return context
end
