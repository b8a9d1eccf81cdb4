-- SPDX-License-Identifier: Apache-2.0
-- The result's JSON Schema: its keys in their order, and what `--schema result` prints.

local json = require "sba.util.json"

local time = { type = "string", printed = { format = "date-time" }, description = "RFC 3339 in UTC with milliseconds." }
local count = { type = "integer", minimum = 0 }
local words = { type = { "string", "null" } }
local check = {
  type = "integer", minimum = 1,
  description = "The step is the runner's own check of this acceptance criterion, counted from 1; else absent.",
}

local function object(schema)
  schema.type, schema.additionalProperties = "object", false
  return schema
end

local step = object {
  order = {
    "index", "id", "type", "check", "status", "started_at", "duration_ms", "exit_code", "output", "output_truncated", "error",
    "error_code", "result",
  },
  required = { "index", "id", "type", "status", "started_at", "duration_ms" },
  properties = {
    index = { type = "integer", minimum = 0, description = "Place in the job's steps, from 0." },
    id = { type = "string" },
    type = { type = "string" },
    check = check,
    status = { enum = { "success", "failure", "timeout", "skipped" } },
    started_at = time,
    duration_ms = count,
    exit_code = { type = "integer", description = "Of a command that ended by itself." },
    output = { type = "string", description = "Plain text of the step, whole up to its limit; past 1 MiB head and tail." },
    output_truncated = { type = "boolean", description = "True where output is not all of the text; else absent." },
    error = { type = "string", description = "One line for people." },
    error_code = { type = "string", description = "What went wrong, finer than the job's failure_code." },
    result = { description = "The structured answer, as `--schema steps` says for the type." },
  },
}

local running_step = object {
  order = { "index", "id", "type", "check", "started_at", "output", "output_truncated" },
  required = { "index", "id", "type", "started_at" },
  description = "The step that ran when this was written; only in the result of a job that is not over.",
  properties = {
    index = { type = "integer", minimum = 0 },
    id = { type = "string" },
    type = { type = "string" },
    check = check,
    started_at = time,
    output = { type = "string", description = "The last of what it had printed by then, at most 4 KiB." },
    output_truncated = { type = "boolean", description = "True where there was more before it; else absent." },
  },
}

local artifact = object {
  order = { "path", "size_bytes", "sha256", "ref" },
  required = { "path", "size_bytes" },
  properties = {
    path = { type = "string", description = "Relative to the artifacts directory." },
    size_bytes = count,
    sha256 = {
      type = "string", minLength = 64, maxLength = 64,
      description = "Left out where the file cannot be read, or the job's time was up before it was read.",
    },
    ref = { type = "string" },
  },
}

local todo_item = object {
  required = { "id", "title", "source", "parent", "status", "note" },
  properties = {
    id = { type = "string" },
    title = { type = "string" },
    source = { enum = { "requirement", "acceptance_criterion", "step", "agent" } },
    parent = words,
    status = { enum = { "pending", "in_progress", "done", "dropped" } },
    note = words,
  },
}

local todo = object {
  required = { "total", "done", "items" },
  properties = { total = count, done = count, items = { type = "array", items = todo_item } },
}

local inference = object {
  required = { "model", "requests", "prompt_tokens", "completion_tokens", "duration_ms" },
  properties = {
    model = { type = "string" },
    requests = count,
    prompt_tokens = count,
    completion_tokens = count,
    duration_ms = { type = "integer", minimum = 0, description = "Of all requests together." },
  },
}

local criterion = object {
  required = { "criterion", "met", "evidence", "verified_by" },
  properties = {
    criterion = { type = "string" },
    met = { type = { "boolean", "null" }, description = "null: not checked." },
    evidence = { type = "string", description = "Names the step that shows it; empty where nothing was checked." },
    verified_by = {
      enum = { "check", "model", json.null },
      description = "check: the runner ran the criterion's check; model: the model says so, and named a step; null: not checked.",
    },
  },
}

local strings = { type = "array", items = { type = "string" } }

local confinement = object {
  order = { "writes", "abi", "writable", "partial" },
  required = { "writes" },
  description = "What the kernel kept commands from.",
  properties = {
    writes = { enum = { "landlock", "none" }, description = "What kept commands from writing elsewhere." },
    abi = { type = "integer", minimum = 1, description = "Version of the kernel's Landlock." },
    writable = { type = strings.type, items = strings.items, description = "Directories below which commands could write." },
    partial = { type = strings.type, items = strings.items, description = "What could not be kept apart, why, and what would help." },
  },
}

local changed_file = object {
  order = { "path", "action", "size_bytes_before", "size_bytes", "left_out" },
  required = { "path", "action" },
  properties = {
    path = { type = "string" },
    action = { enum = { "created", "modified", "deleted", "mode_changed", "type_changed", "unreadable" } },
    size_bytes_before = count,
    size_bytes = count,
    left_out = {
      enum = { "binary", "too_large", "original_not_kept", "patch_too_large", "unreadable", "blocked", "no_time" },
      description = "Why the patch does not have this change.",
    },
  },
}

local change_counts = object {
  order = { "created", "modified", "deleted", "mode_changed", "type_changed", "unreadable" },
  properties = {
    created = count, modified = count, deleted = count, mode_changed = count, type_changed = count,
    unreadable = count,
  },
}

local workspace_changes = object {
  order = { "counts", "files", "truncated", "patch", "since_resume" },
  required = { "counts", "files", "truncated" },
  description = "What the job did to the files of the workspace; where it was asked for.",
  properties = {
    counts = change_counts,
    files = { type = "array", items = changed_file, description = "At most 10,000." },
    truncated = { type = "boolean", description = "There are more files than are listed, or some could not be read." },
    patch = { type = "string", description = "The artifact with the diff; left out where there is none." },
    since_resume = { type = "boolean", description = "The job was resumed: these are the changes since then." },
  },
}

local usage = object {
  required = { "cpu_time_ms", "max_rss_bytes" },
  description = "Of the runner and every process of the job that was waited for.",
  properties = { cpu_time_ms = count, max_rss_bytes = count },
}

return object {
  title = "Result of a cynode-sba job",
  printed = { ["$id"] = "urn:cynode-sba:schema:result:1" },
  order = {
    "protocol_version", "job_id", "task_id", "status", "started_at", "finished_at", "duration_ms", "steps", "running_step", "artifacts",
    "todo", "resource_usage", "final_answer", "inference_used", "inference", "acceptance", "confinement",
    "workspace_changes",
    "failure_code", "failure_message",
  },
  required = {
    "protocol_version", "job_id", "task_id", "status", "started_at", "finished_at", "duration_ms", "steps", "artifacts",
    "todo", "resource_usage", "inference_used", "confinement", "failure_code", "failure_message",
  },
  properties = {
    protocol_version = { type = "string" },
    job_id = { type = "string" },
    task_id = { type = "string" },
    status = { enum = { "success", "failure", "timeout" } },
    started_at = time,
    finished_at = time,
    duration_ms = count,
    steps = { type = "array", items = step },
    running_step = running_step,
    artifacts = { type = "array", items = artifact },
    todo = todo,
    resource_usage = usage,
    final_answer = { type = "string", description = "What the model said at the end." },
    inference_used = { type = "boolean" },
    inference = inference,
    acceptance = { type = "array", items = criterion },
    confinement = confinement,
    workspace_changes = workspace_changes,
    failure_code = {
      enum = {
        json.null, "schema_validation", "ext_net_required", "step_failed", "timeout",
        "constraint_violation", "cancelled", "interrupted", "runs_as_root", "environment_invalid",
        "inference_unavailable", "acceptance_unmet", "agent_gave_up", "agent_stuck", "internal_error",
      },
    },
    failure_message = words,
  },
}
