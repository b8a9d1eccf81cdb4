-- SPDX-License-Identifier: Apache-2.0
-- How the job ended: what each failure code means, and what helps.

local block = require "sba.report.block"
local excerpt = require "sba.util.excerpt"
local h = require "sba.report.html".elements
local format = require "sba.report.format"
local words = require "sba.util.words"

local outcome = {}

local LONGEST <const> = 64 * 1024 -- bytes of a message or an answer
local LONGEST_TITLE <const> = 100 -- bytes
local MOST_MISTAKES <const> = 200

---@type table<string, { meaning: string, help: string }>
outcome.failures = {
  schema_validation = {
    meaning = "The job is not valid. Nothing ran.",
    help = "Fix the errors that the message lists. cynode-sba --validate checks a job without running it.",
  },
  ext_net_required = {
    meaning = "A step needed network access that this job does not have.",
    help = "Allow network access (ext_net_allowed and the rules of the container), or put what the step needs into the image "
      .. "or workspace.",
  },
  step_failed = {
    meaning = "A step failed. The steps after it did not run.",
    help = "The output and error of the failed step, below, say why.",
  },
  timeout = {
    meaning = "The job or a step took longer than allowed. The work done until then is kept.",
    help = "The timeline shows where the time went. Increase max_runtime_seconds of the job, or timeout_seconds of the step.",
  },
  constraint_violation = {
    meaning = "A step returned more than the job allows, and its output was cut; or a model needed more requests or tokens than it allows.",
    help = "Print less, write to a file, set a smaller max_output_bytes for the step (its output is cut, but the step succeeds), "
      .. "or increase the limit that the message names.",
  },
  cancelled = {
    meaning = "SIGTERM or SIGINT ended the job. The work done until then is kept.",
    help = "Run it again. With --resume it continues from its journal, if that still exists.",
  },
  interrupted = {
    meaning = "The job has not ended: the runner was killed or is still running. The report shows the work done so far.",
    help = "If no runner is running any more, --resume continues from the journal.",
  },
  runs_as_root = {
    meaning = "The runner refuses to run as root.",
    help = "Start the container as another user, or name one with --user.",
  },
  environment_invalid = {
    meaning = "What the operator provides is missing or unusable. Nothing ran.",
    help = "The message says what: the job file, the workspace, the directory of the result, or the user of --user.",
  },
  inference_unavailable = {
    meaning = "No model that the job allows can be reached, or its server failed or sent what cannot be used.",
    help = "The message lists what was tried. Check the address in the environment, and that the server has one of the allowed "
      .. "models.",
  },
  acceptance_unmet = {
    meaning = "An acceptance criterion is not met: its check fails, or the model says so or gave no evidence for it.",
    help = "See the criteria below, the output of the failed check, and the model's last turns.",
  },
  agent_gave_up = {
    meaning = "The model gave up, or answered in prose three times in a row instead of calling a tool.",
    help = "See its answer and its last turns below. A clearer task, or another model, may help.",
  },
  agent_stuck = {
    meaning = "The model repeated itself, or its replies could not be used.",
    help = "See its last turns below. A clearer task, smaller requirements or another model may help.",
  },
  internal_error = {
    meaning = "The runner has a bug, or something that it needs from the system is missing.",
    help = "See the message. If it does not help, report the traceback in the log together with this job.",
  },
}

-- Of a job whose runner still runs.
local running <const> = {
  meaning = "The job is still running. The report shows the work done so far.",
  help = "Make the report again when it has ended.",
}
local killed <const> = {
  meaning = "The runner was killed before the job was over. The report shows the work done until then.",
  help = "--resume continues from the journal.",
}

local function count_steps(steps)
  local counts = {}
  for _, entry in ipairs(steps) do counts[entry.status] = (counts[entry.status] or 0) + 1 end
  return words.outcomes(counts)
end

--- The step that decided how the job ended, or that runs: the last that did not succeed.
local function decisive(result)
  for i = #result.steps, 1, -1 do
    local status = result.steps[i].status
    if status ~= "success" and status ~= "skipped" then return result.steps[i], i end
  end
end

local step_codes <const> = {
  ext_net_required = true, step_failed = true, timeout = true, constraint_violation = true, cancelled = true, interrupted = true,
}

--- The end of what the decisive step printed, with a link to it.
local function step_view(result)
  local entry, index = decisive(result)
  if not entry or not step_codes[result.failure_code] then return nil end
  local status = format.status[entry.status]
  local name = ("Step %d (%s, %s) %s%s"):format(index, entry.id, entry.type, status.verb or "", status.name)
  local since = status.verb and {
    "; it began at ", format.time(entry.started_at), " and ", status.lasted, " ", format.duration(entry.duration_ms),
  }
  local link = h.p { h.a { href = "#s" .. entry.index + 1, name }, since, "." }
  if not entry.output or entry.output == "" then return link end
  return { link, h.p { class = "label", "The end of its output" }, block.tail(entry.output) }
end

local INVALID <const> = "the job is not valid: "

--- The mistakes of a refused job, as the message has them one after the other: each begins with a JSON Pointer.
local function mistakes(message)
  if message:sub(1, #INVALID) ~= INVALID then return nil end
  local items, from = {}, #INVALID + 1
  repeat
    local at = message:find("; /", from, true)
    items[#items + 1] = h.li { message:sub(from, at and at - 1 or #message) }
    from = at and at + 2
  until not at or #items == MOST_MISTAKES
  if from then items[#items + 1] = h.li { message:sub(from) } end
  return h.ul { class = "message mistakes", items }
end

local function message_view(result)
  local message = type(result.failure_message) == "string" and result.failure_message or ""
  if message == "" then return nil end
  message = excerpt.of(message, LONGEST)
  return result.failure_code == "schema_validation" and mistakes(message) or h.p { class = "message", message }
end

local function explanation(source, status)
  local result, code = source.result, source.result.failure_code
  if type(code) ~= "string" then return nil end
  local known = outcome.failures[code]
  if code == "interrupted" and source.journal then known = source.running and running or killed end
  return h.div { class = "why " .. status,
    known and h.p { h.strong { known.meaning } },
    status ~= "running" and message_view(result),
    known and h.p { class = "help", h.span { class = "label", "What helps: " }, known.help },
    step_view(result),
  }
end

--- How the job ended, or that it did not: the key of a status.
local function status_of(source)
  if source.result.failure_code ~= "interrupted" then return source.result.status end
  return source.running and "running" or "interrupted"
end

local function first_line(text)
  return format.shortened(text:match("[^\n]+") or "", LONGEST_TITLE)
end

---What the job was, in a few words: what a person or its steps asked for.
---@param source report.source
---@return string? words nil: not known
function outcome.about(source)
  local steps, first = 0, nil
  for _, item in ipairs(source.result.todo.items) do
    if item.source == "requirement" or item.source == "acceptance_criterion" then return first_line(item.title) end
    if item.source == "step" then
      steps, first = steps + 1, first or item.title
    end
  end
  local what = source.calls[1] and format.about(source.calls[1]) or ""
  if what ~= "" then first = what end
  if not first then return nil end
  steps = math.max(steps, #source.result.steps)
  return first_line(first) .. (steps > 1 and (" and %s"):format(format.count(steps - 1, "more step")) or "")
end

---@param source report.source
---@return string title of the page
function outcome.title(source)
  local status = format.status[status_of(source)]
  local about = outcome.about(source)
  return ("%s %s%s (job %s)"):format(status.sign, status.name, about and ": " .. about or "", source.result.job_id)
end

---@param source report.source
---@return html.element
function outcome.view(source)
  local result, is = source.result, status_of(source)
  local status, about = format.status[is], outcome.about(source)
  local code = type(result.failure_code) == "string" and result.failure_code
  return h.header {
    h.p { class = "verdict " .. is,
      h.span { class = "sign", ["aria-hidden"] = "true", status.sign }, " The job ", status.verb or "", h.strong { status.name },
      code and code ~= is and { " ", h.code { code } },
    },
    h.h1 { "Job ", h.span { class = "id", result.job_id } },
    about and h.p { class = "about", about },
    h.p { class = "quiet",
      "task ", result.task_id, " · ", format.time(result.started_at), " · ", status.lasted, " ", format.duration(result.duration_ms),
      " · ", count_steps(result.steps),
    },
    explanation(source, is),
    result.final_answer and { h.h2 { "Answer" }, h.div { class = "answer", (excerpt.of(result.final_answer, LONGEST)) } },
  }
end

return outcome
