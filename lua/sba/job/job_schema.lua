-- SPDX-License-Identifier: Apache-2.0
-- The job's JSON Schema, without what the step types say about their arguments.

local json = require "sba.util.json"
local object = require "sba.util.schema_check".object

local MOST <const> = 100000 -- steps, requirements, criteria: each takes about a kilobyte of memory, and is an item of the todo list

local function text(description) return { type = "string", description = description } end

-- A text, or a structure that is shown as JSON.
local function text_or_structure(description) return { type = { "string", "object", "array" }, description = description } end

local constraints = object({
  "max_runtime_seconds!", {
    type = "integer", minimum = 1, examples = json.array { 600 },
    description = "Seconds for the whole job; then everything is ended and the status is timeout.",
  },
  "max_output_bytes!", {
    type = "integer", minimum = 1, examples = json.array { 1048576 },
    description = "Bytes that one step may return: stdout and stderr together, file content, tree, matches.",
  },
  "ext_net_allowed", {
    type = "boolean", default = false, description = "Whether the job may use the network outside the node and the orchestrator.",
  },
  "report_changes", {
    type = "boolean", default = false,
    description = "Whether the result says which files of the workspace changed; changes.patch among the artifacts has the diff.",
  },
}, { description = "What the job may use at most." })

local inference = object({
  "allowed_models!", {
    type = "array", minItems = 1, items = { type = "string", minLength = 1 }, description = "Names of models; no other is ever asked.",
  },
  "source", {
    enum = { "worker", "api_egress", "orchestrator" }, type = "string",
    description = "Where models are reached; orchestrator or unset: wherever an allowed one is served.",
  },
  "max_requests", {
    type = "integer", minimum = 1, description = "Most requests to models that are answered, of the whole job, --resume included.",
  },
  "max_total_tokens", {
    type = "integer", minimum = 1,
    description = "Most tokens of prompts and replies, summed over all requests. The last request may pass it.",
  },
  "answer_schema", {
    type = "object", description = "JSON Schema of an agent's final answer, which then is a text that holds JSON.",
  },
}, { description = "Which models the job may use." })

local criterion = object {
  "criterion!", { type = "string", minLength = 1, description = "What must hold at the end." },
  "check", {
    type = "object", printed = { ["$ref"] = "#/$defs/run_command/properties/arguments" },
    description = "Arguments of run_command. The runner runs it when the work is done; exit code 0 means that the criterion is met.",
  },
}
criterion.type = { "string", "object" }

local context = object({
  "baseline_context", text "Who the agent is: identity, role, responsibilities, what it must not do.",
  "project_context", text_or_structure "The project: its identity and scope.",
  "task_context", text_or_structure "The task: its identity, state and what belongs to it.",
  "requirements", {
    type = { "array", "string", "object" }, items = { type = { "string", "object", "array" } }, maxItems = MOST,
    description = "What the work must satisfy: each a text, or a structure that is shown as JSON. One may stand alone.",
  },
  "acceptance_criteria", {
    type = { "array", "string" }, items = criterion, maxItems = MOST,
    description = "What the outcome is checked by: each a text, or a text with a check. One text may stand alone.",
  },
  "preferences", { type = "object", description = "How the user wants work to be done." },
  "additional_context", text "Further text that the user has configured.",
  "skill_ids", { type = "array", items = { type = "string" }, description = "Identifiers of skills to fetch from the gateway." },
  "skills", { type = { "string", "array", "object" }, description = "Skills themselves, or paths of their files." },
  "agents_md", {
    type = "boolean",
    description = "Whether the workspace's AGENTS.md, at most 32 KiB of it, is part of the project context; default: true.",
  },
  "persona_title", text "The role's name, where persona.title is left out.",
  "persona_description", text "The role in a few sentences, where persona.description is left out.",
}, { description = "What the work is about. A text that begins with /job/ is the path of a file to read." })

local persona = object({ "title", text "The role's name.", "description", text "The role in a few sentences." }, {
  description = "Whom the agent acts as.",
})

-- For readers of the schema; the job's own check has the better message.
local for_readers <const> = {
  ["$id"] = "urn:cynode-sba:schema:job:1",
  ["if"] = { properties = { execution_mode = { const = "agent_inference" } }, required = json.array { "execution_mode" } },
  ["else"] = { required = json.array { "steps" }, properties = { steps = { type = "array" } } },
}

---@param type_names string[] the step types there are
---@return table schema
return function(type_names)
  local step = object({
    "id", { type = "string", minLength = 1, description = "The step's identifier, unique in the job; default: step-N, N from 1." },
    "type!", { type = "string", enum = type_names, description = "What kind of step it is." },
    "arguments", { type = "object", default = {}, description = "What the type asks for." },
  }, { aliases = { args = "arguments" } })
  return object({
    "$schema", text "For editors: where the schema of jobs is. The runner does not read it.",
    "protocol_version!", {
      type = "string", pattern = "^[0-9]+\\.[0-9]+$", examples = json.array { "1.0" },
      description = "MAJOR.MINOR of this protocol; the major version is 1.",
    },
    "job_id!", { type = "string", minLength = 1, description = "The job's identifier; a UUID by convention." },
    "task_id!", { type = "string", minLength = 1, description = "The task's identifier; a UUID by convention." },
    "constraints!", constraints,
    "execution_mode", {
      type = "string", enum = { "direct_steps", "agent_inference" },
      description = "Whether the steps are run as they are or a model works on the job; default: from steps and inference.",
    },
    "inference", inference,
    "context", context,
    "persona", persona,
    "persona_id", text "The persona's identifier.",
    "steps", {
      type = "array", default = json.array {}, maxItems = MOST, items = step,
      description = "What is done, in this order; a failing step ends the job.",
    },
  }, { title = "A job of cynode-sba", printed = for_readers })
end
