-- SPDX-License-Identifier: Apache-2.0
-- How the job ended: what each failure code means, and what helps.

local excerpt = require "sba.util.excerpt"
local h = require "sba.report.html".elements
local format = require "sba.report.format"

local outcome = {}

local LONGEST <const> = 64 * 1024 -- bytes of a message or an answer

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
    meaning = "A step returned more than the job allows, and its output was cut.",
    help = "Print less, write to a file, set a smaller max_output_bytes for the step (its output is cut, but the step succeeds), "
      .. "or increase that of the job.",
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
    meaning = "None of the models that the job allows can be reached.",
    help = "The message lists what was tried. Check the address in the environment, and that the server has one of the allowed "
      .. "models.",
  },
  acceptance_unmet = {
    meaning = "An acceptance criterion is not met: its check fails, or the model says so or gave no evidence for it.",
    help = "See the criteria below, the output of the failed check, and the model's last turns.",
  },
  agent_gave_up = {
    meaning = "The model gave up, or ended the job without having done anything.",
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

local function count_steps(steps)
  local counts, said = { success = 0, failure = 0, timeout = 0, skipped = 0 }, {}
  for _, entry in ipairs(steps) do counts[entry.status] = counts[entry.status] + 1 end
  for _, status in ipairs { "success", "failure", "timeout", "skipped" } do
    if counts[status] > 0 then said[#said + 1] = ("%d %s"):format(counts[status], format.status[status].name) end
  end
  local total = format.count(#steps, "step")
  return #said > 0 and ("%s: %s"):format(total, table.concat(said, ", ")) or total
end

local function explanation(result)
  local code = result.failure_code
  local known = outcome.failures[code]
  if type(code) ~= "string" then return nil end
  local message = type(result.failure_message) == "string" and result.failure_message
  return h.div { class = "why " .. result.status,
    known and h.p { h.strong { known.meaning } },
    message and message ~= "" and h.p { class = "message", (excerpt.of(message, LONGEST)) },
    known and h.p { class = "help", h.span { class = "label", "What helps: " }, known.help },
  }
end

---@param result table
---@return html.element
function outcome.view(result)
  local status = format.status[result.status]
  local code = type(result.failure_code) == "string" and result.failure_code
  return h.header {
    h.p { class = "verdict " .. result.status,
      h.span { class = "sign", ["aria-hidden"] = "true", status.sign }, " The job ", h.strong { status.name },
      code and { " ", h.code { code } },
    },
    h.h1 { "Job ", h.span { class = "id", result.job_id } },
    h.p { class = "quiet",
      "task ", result.task_id, " · ", h.span { class = "nowrap", result.started_at }, " · took ", format.duration(result.duration_ms),
      " · ", count_steps(result.steps),
    },
    explanation(result),
    result.final_answer and { h.h2 { "Answer" }, h.div { class = "answer", (excerpt.of(result.final_answer, LONGEST)) } },
  }
end

return outcome
