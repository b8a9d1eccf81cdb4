-- SPDX-License-Identifier: Apache-2.0
-- The job's JSON Schema, without what the step types say about their arguments.

local is = require "sba.util.schema_check"
local json = require "sba.util.json"

-- Steps, requirements, criteria. Each takes about a kilobyte of memory, and is an item of the todo
-- list.
local MOST <const> = 100000

local function name(description) return is.text(description, { minLength = 1 }) end

local function text_or_structure(description)
  return is.typed({ "string", "object", "array" }, description)
end

local constraints = is.object({
  "max_runtime_seconds!", is.count(
    "Seconds for the whole job; then everything is ended and the status is timeout.",
    { minimum = 1, examples = json.array { 600 } }),
  "max_output_bytes!", is.count(
    "Bytes that one step may return: stdout and stderr together, file content, tree, matches.",
    { minimum = 1, examples = json.array { 1048576 } }),
  "ext_net_allowed", is.flag("Whether the job may use the network outside the node and the orchestrator.",
    { default = false }),
  "report_changes", is.flag(
    "Whether the result says which files of the workspace changed; "
    .. "changes.patch among the artifacts has the diff.",
    { default = false }),
}, { description = "What the job may use at most." })

local inference = is.object({
  "allowed_models!", is.typed("array", "Names of models; no other is ever asked.",
    { minItems = 1, items = name() }),
  "source", is.text("Where models are reached; orchestrator or unset: wherever an allowed one is served.",
    { enum = { "worker", "api_egress", "orchestrator" } }),
  "max_requests", is.count(
    "Most requests to models that are answered, of the whole job, --resume included.",
    { minimum = 1 }),
  "max_total_tokens", is.count(
    "Most tokens of prompts and replies, summed over all requests. The last request may pass it.",
    { minimum = 1 }),
  "answer_schema", is.typed("object",
    "JSON Schema of an agent's final answer, which then is a text that holds JSON."),
}, { description = "Which models the job may use." })

local criterion = is.object {
  "criterion!", name "What must hold at the end.",
  "check", is.typed("object",
    "Arguments of run_command. The runner runs it when the work is done; "
    .. "exit code 0 means that the criterion is met.",
    { printed = { ["$ref"] = "#/$defs/run_command/properties/arguments" } }),
}
criterion.type = { "string", "object" }

local context = is.object({
  "baseline_context", is.text "Who the agent is: identity, role, responsibilities, what it must not do.",
  "project_context", text_or_structure "The project: its identity and scope.",
  "task_context", text_or_structure "The task: its identity, state and what belongs to it.",
  "requirements", is.typed({ "array", "string", "object" },
    "What the work must satisfy: each a text, or a structure that is shown as JSON. One may stand alone.",
    { items = text_or_structure(), maxItems = MOST }),
  "acceptance_criteria", is.typed({ "array", "string" },
    "What the outcome is checked by: each a text, or a text with a check. One text may stand alone.",
    { items = criterion, maxItems = MOST }),
  "preferences", is.typed("object", "How the user wants work to be done."),
  "additional_context", is.text "Further text that the user has configured.",
  "skill_ids", is.typed("array", "Identifiers of skills to fetch from the gateway.",
    { items = is.text() }),
  "skills", is.typed({ "string", "array", "object" }, "Skills themselves, or paths of their files."),
  "agents_md", is.flag
    "Whether the workspace's AGENTS.md, at most 32 KiB of it, is part of the project context; default: true.",
  "persona_title", is.text "The role's name, where persona.title is left out.",
  "persona_description", is.text "The role in a few sentences, where persona.description is left out.",
}, { description = "What the work is about. A text that begins with /job/ is the path of a file to read." })

local persona = is.object({
  "title", is.text "The role's name.",
  "description", is.text "The role in a few sentences.",
}, { description = "Whom the agent acts as." })

-- For readers of the schema; the job's own check has the better message.
local mode_of_agents <const> = { execution_mode = { const = "agent_inference" } }
local for_readers <const> = {
  ["$id"] = "urn:cynode-sba:schema:job:1",
  ["if"] = { properties = mode_of_agents, required = json.array { "execution_mode" } },
  ["else"] = { required = json.array { "steps" }, properties = { steps = { type = "array" } } },
}

---@param type_names string[] the step types there are
---@return table schema
return function(type_names)
  local step = is.object({
    "id", name "The step's identifier, unique in the job; default: step-N, N from 1.",
    "type!", is.text("What kind of step it is.", { enum = type_names }),
    "arguments", is.typed("object", "What the type asks for.", { default = {} }),
    "on_failure", is.text(
      "Of a direct job: stop (default), or continue: the job goes on, and the step's failure is not the job's.",
      { enum = { "stop", "continue" } }),
    "always", is.flag
      "Of a direct job: the step runs also after one that failed, and before the checks. Default: false.",
  }, { aliases = { args = "arguments" } })
  return is.object({
    "$schema", is.text "For editors: where the schema of jobs is. The runner does not read it.",
    "protocol_version!", is.text("MAJOR.MINOR of this protocol; the major version is 1.", {
      pattern = "^[0-9]+\\.[0-9]+$", printed = { pattern = "^1\\.[0-9]+$" },
      examples = json.array { "1.0" },
    }),
    "job_id!", name "The job's identifier; a UUID by convention.",
    "task_id!", name "The task's identifier; a UUID by convention.",
    "constraints!", constraints,
    "execution_mode", is.text(
      "Whether the steps are run as they are or a model works on the job; default: from steps and inference.",
      { enum = { "direct_steps", "agent_inference" } }),
    "inference", inference,
    "context", context,
    "persona", persona,
    "persona_id", is.text "The persona's identifier.",
    "steps", is.typed("array",
      "What is done, in this order; a failing step ends the job, unless its on_failure says otherwise.",
      { default = json.array {}, maxItems = MOST, items = step }),
  }, { title = "A job of cynode-sba", printed = for_readers })
end
