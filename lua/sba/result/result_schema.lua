-- SPDX-License-Identifier: Apache-2.0
-- The result's JSON Schema: its keys in their order, and what `--schema result` prints.

local json = require "sba.util.json"
local schema_check = require "sba.util.schema_check"

local object, text = schema_check.object, schema_check.text
local count, flag = schema_check.count, schema_check.flag

local function list(items, description) return { type = "array", items = items, description = description } end

local function sha256(description) return text(description, { minLength = 64, maxLength = 64 }) end

local time = text("RFC 3339 in UTC with milliseconds.", { printed = { format = "date-time" } })
local text_or_null = { type = { "string", "null" } }
local OF_A_CHECK <const> = "The step is the runner's own check of this acceptance criterion, "
  .. "counted from 1; else absent."
local check = count(OF_A_CHECK, { minimum = 1 })

local step = object {
  "index!", count "Place in the job's steps, from 0.",
  "id!", text(),
  "type!", text(),
  "check", check,
  "status!", { enum = { "success", "failure", "timeout", "skipped" } },
  "started_at!", time,
  "duration_ms!", count(),
  "exit_code", { type = "integer", description = "Of a command that ended by itself." },
  "output", text "Plain text of the step, whole up to its limit; past 1 MiB head and tail.",
  "output_truncated", flag "True where output is not all of the text; else absent.",
  "error", text "One line for people.",
  "error_code", text "What went wrong, finer than the job's failure_code.",
  "tolerated", flag("True where the step failed and its on_failure is continue, so that the job went on; "
    .. "else absent."),
  "result", { description = "The structured answer, as `--schema steps` says for the type." },
}

local running_step = object({
  "index!", count(), "id!", text(), "type!", text(), "check", check, "started_at!", time,
  "output", text "The last of what it had printed by then, at most 4 KiB.",
  "output_truncated", flag "True where there was more before it; else absent.",
}, { description = "The step that ran when this was written; only in the result of a job that is not over." })

local artifact = object {
  "path!", text "Relative to the artifacts directory.",
  "size_bytes!", count(),
  "sha256", sha256("Left out for a file over 256 MiB, one that cannot be read, "
    .. "or one that the job's time was too short to read."),
  "ref", text(),
}

local todo_item = object {
  "id!", text(), "title!", text(),
  "source!", { enum = { "requirement", "acceptance_criterion", "step", "agent" } },
  "parent!", text_or_null,
  "status!", { enum = { "pending", "in_progress", "done", "dropped" } },
  "note!", text_or_null,
}

local inference = object({
  "model", text(), "requests", count(), "prompt_tokens", count(), "completion_tokens", count(),
  "duration_ms", count "Of all requests together.",
  "source", {
    enum = { "worker" },
    description = "worker: what a worker's report says, which nobody checked; it may lack members. "
      .. "Else absent.",
  },
  "cost_usd", { type = "number", minimum = 0, description = "Of a worker's report alone." },
}, { description = "What models were asked." })

local criterion = object {
  "criterion!", text(),
  "met!", { type = { "boolean", "null" }, description = "null: not checked." },
  "evidence!", text "Names the step that shows it, or says why nothing was checked; may be empty then.",
  "verified_by!", {
    enum = { "check", "model", json.null },
    description = "check: the runner ran the criterion's check; "
      .. "model: the model says so, and named a step; null: not checked.",
  },
}

local runner = object({
  "version!", text(),
  "job_sha256", sha256 "Of the job file; left out where it could not be read.",
  "arch!", text "As uname calls the machine: x86_64.",
  "kernel!", text "Its release.",
}, { description = "What ran the job." })

local confinement = object({
  "writes!", { enum = { "landlock", "none" }, description = "What kept commands from writing elsewhere." },
  "abi", count("Version of the kernel's Landlock.", { minimum = 1 }),
  "writable", list(text(), "Directories below which commands could write."),
  "partial", list(text(), "What could not be kept apart, why, and what would help."),
}, { description = "What the kernel kept commands from." })

local changed_file = object {
  "path!", text(),
  "action!", { enum = { "created", "modified", "deleted", "mode_changed", "type_changed", "unreadable" } },
  "size_bytes_before", count(), "size_bytes", count(),
  "left_out", {
    enum = { "binary", "too_large", "original_not_kept", "patch_too_large", "unreadable", "blocked", "no_time" },
    description = "Why the patch does not have this change.",
  },
}

local workspace_changes = object({
  "counts!", object {
    "created", count(), "modified", count(), "deleted", count(),
    "mode_changed", count(), "type_changed", count(), "unreadable", count(),
  },
  "files!", list(changed_file, "At most 10,000."),
  "truncated!", flag "There are more files than are listed, or some could not be read.",
  "patch", text "The artifact with the diff; left out where there is none.",
  "patch_error", text "Why the diff could not be written.",
  "since_resume", flag "The job was resumed: these are the changes since then.",
}, { description = "What the job did to the files of the workspace; where it was asked for." })

return object({
  "protocol_version!", text(), "job_id!", text(), "task_id!", text(),
  "status!", { enum = { "success", "failure", "timeout" } },
  "started_at!", time, "finished_at!", time, "duration_ms!", count(),
  "steps!", list(step), "running_step", running_step, "artifacts!", list(artifact),
  "todo!", object { "total!", count(), "done!", count(), "items!", list(todo_item) },
  "resource_usage!", object({ "cpu_time_ms!", count(), "max_rss_bytes!", count() }, {
    description = "Of the runner and every process of the job that was waited for.",
  }),
  "final_answer", text "What the model said at the end, or the last worker that wrote a report.",
  "inference_used!", flag(), "inference", inference,
  "acceptance", list(criterion), "runner", runner,
  "retryable", flag("Of a failure: whether the same job may succeed later, "
    .. "because what failed lies outside of it."),
  "confinement!", confinement, "workspace_changes", workspace_changes,
  "failure_code!", {
    enum = {
      json.null, "schema_validation", "ext_net_required", "step_failed", "timeout",
      "constraint_violation", "cancelled", "interrupted", "runs_as_root", "environment_invalid",
      "inference_unavailable", "acceptance_unmet", "agent_gave_up", "agent_stuck", "internal_error",
    },
  },
  "failure_message!", text_or_null,
}, { title = "Result of a cynode-sba job", printed = { ["$id"] = "urn:cynode-sba:schema:result:1" } })
