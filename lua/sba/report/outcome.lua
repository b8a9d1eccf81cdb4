-- SPDX-License-Identifier: Apache-2.0
-- How the job ended: what each failure code means, and what helps. The manual page has the same
-- words.

local excerpt = require "sba.util.excerpt"
local h = require "sba.report.html".elements
local humanize = require "sba.util.humanize"
local parts = require "sba.report.parts"

local outcome = {}

local LONGEST <const> = 64 * 1024 -- bytes of a message or an answer
local LONGEST_TITLE <const> = 100 -- bytes

---@type table<string, { [1]: string, [2]: string }> by code: what it means, and what helps
outcome.failures = {
  schema_validation = { "The job is not valid. Nothing ran.",
    "Fix the errors that the message lists. cynode-sba --validate checks a job without running it." },
  ext_net_required = { "A step needed network access that this job does not have.",
    "Allow network access (ext_net_allowed and the rules of the container), or put what the step needs "
    .. "into the image or workspace." },
  step_failed = { "A step failed. The steps after it did not run, except those that run always.",
    "The output and error of the failed step say why." },
  timeout = { "The job or a step took longer than allowed. The work done until then is kept.",
    "The timeline shows where the time went. Increase max_runtime_seconds of the job, or "
    .. "timeout_seconds of the step." },
  constraint_violation = {
    "A step returned more than the job allows, or a model needed more requests or tokens than it allows.",
    "Print less, write to a file, set a smaller max_output_bytes for the step (its output is cut, but "
    .. "the step succeeds), or increase the limit that the message names." },
  cancelled = {
    "A signal ended the job: SIGTERM, SIGINT, a closed terminal. The work done until then is kept.",
    "Run it again. With --resume it continues from its journal, if that still exists." },
  interrupted = {
    "The job has not ended: the runner was killed or is still running. The report shows the work done so far.",
    "If no runner is running any more, --resume continues from the journal." },
  runs_as_root = { "The runner refuses to run as root.",
    "Start the container as another user, or name one with --user." },
  environment_invalid = { "What the operator provides is missing or unusable. Nothing ran.",
    "The message says what it is, and what helps." },
  inference_unavailable = {
    "No model that the job allows can be reached, or its server failed or sent what cannot be used.",
    "The message lists what was tried. Check the address in the environment, and that the server has "
    .. "one of the allowed models." },
  acceptance_unmet = {
    "An acceptance criterion is not met: its check fails, or the model says so or gave no evidence for it.",
    "See the criteria, the output of the failed check, and the model's last turns." },
  agent_gave_up = {
    "The model gave up, or answered in prose three times in a row instead of calling a tool.",
    "See its answer and its last turns. A clearer task, or another model, may help." },
  agent_stuck = { "The model repeated itself, or its replies could not be used.",
    "See its last turns. A clearer task, smaller requirements or another model may help." },
  internal_error = { "The runner has a bug, or something that it needs from the system is missing.",
    "See the message. If it does not help, report the traceback in the log together with this job." },
}

-- The same of `interrupted` by status, where the journal is next to the result.
local interrupted <const> = {
  running = { "The job is still running. The report shows the work done so far.",
    "Make the report again when it has ended." },
  interrupted = {
    "The runner was killed before the job was over. The report shows the work done until then.",
    "--resume continues from the journal." },
}

-- The step that decided how the job ended, or that runs: the message names it, or it is the last.
-- The checks of a job that failed otherwise come after it.
local function decisive(result, code)
  local steps = result.steps
  local named = tonumber(tostring(result.failure_message):match "^step (%d+) %(")
  local at = steps[named] and named or #steps
  local function is_beside(step)
    return step.status == "skipped" or step.check and code ~= "acceptance_unmet"
  end
  while at > 0 and is_beside(steps[at]) do at = at - 1 end
  local entry = steps[at]
  if not entry or entry.status == "success" or entry.tolerated then return nil end
  local ended, output = parts.status[entry.status].name, entry.output or ""
  local name = ("Step %d (%s, %s) %s"):format(at, entry.id, entry.type, ended)
  local link = h.p { h.a { href = "#s" .. entry.index + 1, name } }
  return { link, output ~= "" and parts.tail(output) }
end

-- A refused job's mistakes, each of which begins with a JSON Pointer, become a list.
local function message_of(result)
  local given = result.failure_message
  local message = excerpt.of(type(given) == "string" and given or "", LONGEST)
  local is_refusal = result.failure_code == "schema_validation"
  local mistakes = is_refusal and message:match "^the job is not valid: (.*)"
  if not mistakes then return h.p { class = "message", message } end
  local items, lines = {}, mistakes:gsub("; /", "\n/")
  for mistake in lines:gmatch "[^\n]+" do items[#items + 1] = h.li { mistake } end
  return h.ul { class = "message", items }
end

local function explanation(source, status)
  local result, code = source.result, source.result.failure_code
  if type(code) ~= "string" then return nil end
  local known = outcome.failures[code]
  if code == "interrupted" and source.journal then known = interrupted[status] end
  return h.div { class = "why " .. status,
    known and h.p { h.strong { known[1] } },
    status ~= "running" and message_of(result),
    known and h.p { h.span { class = "label", "What helps: " }, known[2] },
    decisive(result, code),
  }
end

---@param source report.source
---@return string status of parts.status; a job may not be over
function outcome.status(source)
  if source.result.failure_code ~= "interrupted" then return source.result.status end
  return source.running and "running" or "interrupted"
end

local function about(source)
  local first = source.result.todo.items[1]
  local line = first and first.title:match "[^\n]+"
  return line and parts.cut(line, LONGEST_TITLE)
end

---@param source report.source
---@return string
function outcome.title(source)
  local status, what = parts.status[outcome.status(source)], about(source)
  return ("%s %s (job %s)"):format(status.sign, what or status.name, source.result.job_id)
end

local function answer(result)
  local said = result.final_answer
  local whose = result.inference_used and "Answer" or "Answer of the worker"
  return said and { h.h2 { whose }, h.div { class = "answer", (excerpt.of(said, LONGEST)) } }
end

---@param source report.source
---@return html.element
function outcome.view(source)
  local result, is = source.result, outcome.status(source)
  local status, counts, code = parts.status[is], {}, result.failure_code
  local tolerated
  for _, entry in ipairs(result.steps) do
    counts[entry.status] = (counts[entry.status] or 0) + 1
    if entry.tolerated then tolerated = (tolerated or 0) + 1 end
  end
  local says_more = type(code) == "string" and code ~= is
  return h.header {
    h.p {
      class = "verdict " .. is, parts.sign(status.sign, is), " The job ",
      h.strong { status.name }, says_more and { " ", h.code { code } },
    },
    h.h1 { "Job ", h.span { class = "id", result.job_id } },
    h.p { about(source) },
    h.p { class = "quiet",
      "task ", result.task_id, " · ", parts.time(result.started_at), " · ", status.lasted, " ",
      humanize.duration(result.duration_ms), " · ", humanize.outcomes(counts, tolerated) },
    explanation(source, is),
    answer(result),
  }
end

return outcome
