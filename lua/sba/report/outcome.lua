-- SPDX-License-Identifier: Apache-2.0
-- How the job ended: what each failure code means, and what would help.

local excerpt = require "sba.util.excerpt"
local h = require "sba.report.html".elements
local format = require "sba.report.format"

local outcome = {}

local LONGEST <const> = 64 * 1024 -- bytes of a message or an answer

---@type table<string, { meaning: string, help: string }>
outcome.failures = {
  schema_validation = {
    meaning = "The job was refused before anything ran: it is not valid.",
    help = "Correct every mistake that the message names; cynode-sba --validate checks a job without running it.",
  },
  ext_net_required = {
    meaning = "A step needed something from outside that this job cannot reach.",
    help = "Allow the job the network (ext_net_allowed, and the container's rules), or bring what it needs into image or workspace.",
  },
  step_failed = {
    meaning = "A step failed, and the steps after it did not run.",
    help = "Look at the failed step below: its output and its error say why.",
  },
  timeout = {
    meaning = "The time was up: the job's own, or that of a step. What was done until then is kept.",
    help = "See in the timeline where the time went; then give the job a larger max_runtime_seconds, or the step a larger timeout_seconds.",
  },
  constraint_violation = {
    meaning = "A step returned more than the job allows, and was cut there.",
    help = "Print less, write to a file, set a smaller max_output_bytes for the step (which only cuts), or allow the job more.",
  },
  cancelled = {
    meaning = "The job was ended from outside, by SIGTERM or SIGINT. What was done until then is kept.",
    help = "Run it again; --resume goes on from where it was, where its journal is still there.",
  },
  interrupted = {
    meaning = "The job has not ended: the runner was killed, or it is still at work. This is what was done until then.",
    help = "Where no runner is at work any more, --resume goes on from the journal.",
  },
  runs_as_root = {
    meaning = "The runner refused to work as root.",
    help = "Start the container as another user, or name one with --user.",
  },
  inference_unavailable = {
    meaning = "The job asks for a model, and none of those that it allows can be reached.",
    help = "See in the message what was tried; check the address in the environment, and that the server has one of the allowed models.",
  },
  acceptance_unmet = {
    meaning = "An acceptance criterion was not met, or the model showed no evidence for it.",
    help = "Look at the criteria below, and at the model's last turns.",
  },
  agent_stuck = {
    meaning = "The model went round in circles, or its replies could not be used.",
    help = "Look at its last turns below; a clearer task, smaller requirements or another model may help.",
  },
  internal_error = {
    meaning = "The runner met a mistake of its own, or something in its surroundings that it needs is missing.",
    help = "See the message; where it is no help, the log has the traceback: report it with this job.",
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
    known and h.p { class = "help", h.span { class = "label", "What would help: " }, known.help },
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
