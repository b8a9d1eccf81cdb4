-- SPDX-License-Identifier: Apache-2.0
-- The step run_agent: a program that speaks the Agent Client Protocol, from its start to the end of
-- one turn. It runs as a command does (steps/run_command); what it says and does is the step's
-- output.

local client = require "sba.acp.client"
local excerpt = require "sba.util.excerpt"
local fail = require "sba.util.fail"
local humanize = require "sba.util.humanize"
local interrupt = require "native.interrupt"
local is = require "sba.util.schema_check"
local json = require "sba.util.json"
local read_file = require "sba.steps.read_file"
local run_command = require "sba.steps.run_command"
local secret = require "sba.util.secret"
local text = require "native.text"
local worker_report = require "sba.util.worker_report"
local write_file = require "sba.steps.write_file"

-- Seconds before the agent is ended, for it to stop by itself; at most half of its time.
local CANCELLING <const> = 2
-- Seconds from the end of its turn, and of its stdin, to its own end.
local LEAVING <const> = 2
local LONGEST_COMMAND <const> = 120 -- seconds, as a model's
local MOST_SAID <const> = 1024 * 1024 -- bytes of the talk
local MOST_NEWS <const> = 64 * 1024 -- bytes of it at once
-- Bytes that are read for the agent.
local LARGEST_FILE <const> = 1024 * 1024
-- Kinds of tool calls.
local KINDS <const> = {
  "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other",
  "default",
}
local OF_A_COMMAND <const> = {
  "argv", "env", "secrets", "working_dir", "timeout_seconds", "idle_timeout_seconds",
  "max_output_bytes",
}
local OF_ITS_END <const> = {
  "exit_code", "signal", "stderr", "stderr_truncated", "duration_ms", "cpu_time_ms",
  "max_rss_bytes",
}

-- What was said, up to a limit, and the way of it to the log.
local function recorder(job_context)
  local said, size, news = {}, 0, {}
  local record = {}
  function record.say(words_said)
    news[#news + 1] = words_said
    if size < MOST_SAID then said[#said + 1] = words_said end
    size = size + #words_said
  end
  function record.tick(of_stderr, missing)
    local told = table.concat(news) .. (of_stderr or "")
    local shown = text.tail(told, MOST_NEWS)
    news, missing = {}, (missing or 0) + #told - #shown
    job_context.tick(shown ~= "" and shown or nil, missing)
  end
  function record.text()
    local is_cut = size > MOST_SAID
    return secret.redact(table.concat(said), is_cut and "end" or "none"), is_cut
  end
  return record
end

local function cancel_time(arguments, job_context)
  local left = math.min(arguments.timeout_seconds or math.huge, interrupt.remaining() or math.huge)
  local before_checks = job_context.seconds_left and job_context.seconds_left()
  if before_checks then left = math.min(left, before_checks) end
  return interrupt.now() + math.max(left / 2, left - CANCELLING)
end

-- The talk, as process.run has it.
local function talk_with(agent, cancel_at)
  local is_cancelled, over_at = false, nil
  return function(bytes)
    local now = interrupt.now()
    if over_at then return nil, now >= over_at and "end" or "over" end
    if now >= cancel_at and not is_cancelled then
      is_cancelled = true
      agent:cancel()
    end
    local answer, is_over = agent:hear(bytes)
    if is_over then over_at = now + LEAVING end
    return answer, is_over and "over" or nil
  end
end

local function with(job_context, own) return setmetatable(own, { __index = job_context }) end

local function served_by(step, job_context)
  local context = with(job_context, { max_output_bytes = LARGEST_FILE, agent = false })
  return function(arguments) return fail.caught(step.run, arguments, context) end
end

local function mistake_in(arguments)
  local _, errors = is.check(arguments, run_command.arguments)
  if errors.total > 0 then return is.line(errors[1], "command") end
  return run_command.check(arguments)
end

-- A command of the agent's, as a model's: with a time limit of its own.
local function runner(job_context, record, ends_at)
  local context = with(job_context, { agent = true, tick = record.tick, report_path = false })
  return function(arguments)
    local mistake = mistake_in(arguments)
    if mistake then return nil, { code = "invalid", message = mistake } end
    arguments.timeout_seconds = math.max(1, math.min(LONGEST_COMMAND, ends_at - interrupt.now()))
    local result, output, is_cut = fail.caught(run_command.run, arguments, context)
    if not result then
      local failure = output
      if not failure.result then return nil, failure end
      result, output, is_cut = failure.result, failure.text, failure.is_cut
    end
    return {
      exit_code = result.exit_code, signal = result.signal,
      output = secret.redact(output or ""), is_cut = is_cut == true,
    }
  end
end

-- What it says of its work, as a report of a worker has it; nil where that cannot be.
local function report_of(agent)
  local report = agent.usage
  report.model = agent.used_model
  if #agent.answer > 0 then report.answer = agent:last_message() end
  local _, errors = is.check(report, worker_report.schema)
  return errors.total == 0 and secret.clean(report, worker_report.schema) or nil
end

local function result_of(agent, of_command)
  local result = {
    stop_reason = agent.stop_reason, answer = agent:last_message(),
    tool_calls = agent.call_count, report = report_of(agent),
  }
  for _, name in ipairs(OF_ITS_END) do result[name] = of_command[name] end
  return result
end

-- Why the step fails. The agent's own end counts only where its turn had none: it may leave as it
-- likes.
local function failure_of(agent, problem)
  if agent.failure then return agent.failure end
  if problem and not (problem.code == "step_failed" and agent.stop_reason) then return problem end
  if agent.stop_reason then return nil end
  return { code = "step_failed", message = "the agent ended before its turn did" }
end

---Raises failures.
---@return acp.client
local function new_agent(arguments, job_context, record, cancel_at)
  local model, allowed = arguments.model, job_context.allowed_models
  if model and allowed and not json.contains(allowed, model) then
    fail.raise("invalid", "the model %s is not among the job's allowed_models", humanize.quoted(model))
  end
  local prompt = arguments.prompt or job_context.prompt()
  if prompt == "" then fail.raise("invalid", "there is no prompt, and the job's context has none") end
  local server, failure = job_context.worker_gateway()
  if failure then error(failure, 0) end
  return client.new {
    directory = job_context.workspace:path(), prompt = prompt, model = model,
    mode = arguments.mode, permissions = arguments.permissions or {}, server = server,
    say = record.say, plan = job_context.plan,
    earlier = job_context.earlier_session(), opened = job_context.session_opened,
    read = served_by(read_file, job_context), write = served_by(write_file, job_context),
    run = runner(job_context, record, cancel_at),
  }
end

local function run(arguments, job_context)
  local record, cancel_at = recorder(job_context), cancel_time(arguments, job_context)
  local agent, of_command = new_agent(arguments, job_context, record, cancel_at), {}
  for _, name in ipairs(OF_A_COMMAND) do of_command[name] = arguments[name] end
  local hear = talk_with(agent, cancel_at)
  local talking = with(job_context, { hear = hear, tick = record.tick, report_path = false })
  local outcome, problem = run_command.run(of_command, talking)
  if outcome then problem = nil else outcome = problem.result end
  if not outcome then return nil, problem end
  local failure, result = failure_of(agent, problem), result_of(agent, outcome)
  if result.report and job_context.claim then job_context.claim(result.report) end
  local said, is_cut = record.text()
  local limit = math.min(job_context.max_output_bytes, arguments.max_output_bytes or math.huge)
  local shown, is_shortened = excerpt.of(said, limit)
  is_cut = is_cut or is_shortened
  if not failure then return result, shown, is_cut end
  return fail.with(failure.code, failure.message, result, shown, is_cut)
end

local command <const> = run_command.arguments.properties
local decision <const> = { enum = { "allow", "deny" } }

local function permissions_schema()
  local members = {}
  for _, kind in ipairs(KINDS) do table.move({ kind, decision }, 1, 2, #members + 1, members) end
  return is.object(members)
end

return {
  name = "run_agent",
  summary = "Run an agent that speaks the Agent Client Protocol for one turn.",
  -- An agent has no agents of its own.
  for_model = false,
  arguments = is.object {
    "argv!", command.argv,
    "prompt", is.text "What the agent is to do; default: what the job's context asks for.",
    "model", is.text("One that the agent offers; default: its own choice.", { minLength = 1 }),
    "mode", is.text("One that the agent offers, such as build or plan; default: its own.",
      { minLength = 1 }),
    "permissions", permissions_schema(),
    "env", command.env,
    "working_dir", command.working_dir,
    "timeout_seconds", command.timeout_seconds,
    "idle_timeout_seconds", command.idle_timeout_seconds,
    "max_output_bytes", command.max_output_bytes,
    "secrets", command.secrets,
  },
  result = is.object {
    "stop_reason", is.text
      "The agent's own word for the end of its turn: end_turn; absent where there was none.",
    "answer!", is.text "Its last message.",
    "tool_calls!", is.count "How many it told of.",
    "exit_code", run_command.result.properties.exit_code,
    "signal", run_command.result.properties.signal,
    "stderr!", is.text "What it printed besides the talk; UTF-8.",
    "stderr_truncated!", is.flag(),
    "duration_ms!", is.count(),
    "cpu_time_ms!", is.count(),
    "max_rss_bytes!", is.count(),
    "report", worker_report.schema,
  },
  check = run_command.check,
  takes_secrets = true,
  run = run,
  ticks = true,
  redacts = true,
}
