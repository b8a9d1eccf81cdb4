-- SPDX-License-Identifier: Apache-2.0
-- The events of a job, in the order in which they come:
--
--   job               first line: which job
--   job.resumed       another run continues it
--   job.changed       the job file is another one than before: what `job` has, and how many steps
--                     stay as they are
--   skills            agent: those of context.skill_ids
--   model.session     agent: the model, and the gateway's tools
--   model.tools       agent: the gateway's tools from the next exchange on, for they are others
--   model.exchange    agent: what was new in the request, and the reply
--   model.compacted   agent: the conversation was shortened
--   step.started      before the step does anything; of agents and checks with the arguments
--   step.changes      before the step changes several files: how to undo it
--   step.session      a command of the step runs: its session, for the next run if this one is
--                     killed
--   step.agent        an agent that speaks ACP has opened a session
--   step.append       before the step appends to a file: the file's size; absent: no such file
--   step.report       what a worker, a command of the step, says of its work
--   step.finished     the step's entry of the result
--   step.interrupted  the runner was ended during the step; what it had said
--   job.finished      the result's other fields
--   job.reported      the report of the end arrived or was refused
--   journal.failed    last line: later events could not be written

local schema_check = require "sba.util.schema_check"
local worker_report = require "sba.util.worker_report"

local events = {}

local LAST_TIME <const> = 253402300799999 -- milliseconds since 1970, in 9999
local PERMISSIONS <const> = tonumber("7777", 8)

-- What an event must hold: people edit journals, and write recordings.

local count <const> = schema_check.count()
local flag <const> = schema_check.flag()
local json_object <const> = { type = "object" }
local permissions <const> = schema_check.count(nil, { maximum = PERMISSIONS })
local time <const> = schema_check.count(nil, { maximum = LAST_TIME })
local words <const> = schema_check.text()

local function list_of(items) return { type = "array", items = items } end

--- Journals of other versions may have other members.
local function object(members)
  local schema = schema_check.object(members)
  schema.additionalProperties = nil
  return schema
end

local runner = object { -- native.process.runner
  "word!", words, "pid!", count, "started", count, "boot_id", words, "pid_namespace", count,
  "temporary", words,
}

local job = object {
  "job_sha256", words, "started_wall", time, "version", words, "job_id", words, "task_id", words,
  "run", runner, "kept", count,
}

local change = object { -- sba.change, under the names that run/undo.lua gives its fields
  "kind!", { enum = { "remove", "directory", "put", "mode" } }, "path!", words, "other", words,
  "aside", words, "kept", count, "mode", permissions, "old_mode", permissions,
}

local tool = object {
  "kind!", { enum = { "gateway" } }, "name!", words, "tool!", words, "description!", words,
  "parameters!", words,
}

local call = object {
  "id", words, "name!", words, "arguments!", json_object,
  "mistake", words, "note", words, "size", count, "written", words, "called", words, "extra", json_object,
}

local reply = object {
  "content", words, "thinking", words, "thinking_parts", list_of(json_object),
  "said", words, "unreadable", words, "is_like_a_call", flag,
  "tool_calls", list_of(call), "notes", list_of(words), "done_reason", words,
  "response_model", words, "prompt_tokens", count, "cached_tokens", count,
  "completion_tokens", count, "duration_ms", count,
}

local skill = object { "id!", words, "name!", words, "text!", words }
local message = object { "role!", words, "content", words, "step", words }

events.schemas = {
  job = job,
  ["job.resumed"] = object { "run", runner },
  ["job.changed"] = job,
  skills = object { "found!", list_of(skill), "missing!", list_of(words) },
  ["model.session"] = object {
    "model!", words, "context_length!", schema_check.count(nil, { minimum = 1 }),
    "tools", list_of(tool), "instructions", words, "facts", words, "agents_md", words,
  },
  ["model.tools"] = object { "tools!", list_of(tool) },
  ["model.exchange"] = object { "messages", list_of(message), "reply!", reply },
  ["model.compacted"] = object { "tokens_before!", count, "tokens_after!", count },
  ["step.started"] = object {
    "index!", count, "id!", words, "type!", words, "check", count, "arguments", json_object,
  },
  ["step.changes"] = object { "index!", count, "changes!", list_of(change), "artifacts", flag },
  ["step.session"] = object { "index!", count, "pid!", count, "started!", count },
  ["step.agent"] = object { "index!", count, "session", words },
  ["step.append"] = object { "index!", count, "size", count },
  ["step.report"] = object { "index!", count, "report!", worker_report.schema },
}

---The same, and what an entry and a result hold.
---@param result_schema table
---@return table<string, table> schemas by event
function events.schemas_with(result_schema)
  local properties, required = result_schema.properties, {}
  for _, name in ipairs(result_schema.required) do
    if name ~= "steps" then required[#required + 1] = name end
  end
  local result = { type = "object", properties = properties, required = required }
  return setmetatable({
    ["step.finished"] = object { "entry!", properties.steps.items },
    ["job.finished"] = object { "result!", result },
  }, { __index = events.schemas })
end

---@param value any
---@param wanted? table a schema
---@return string? the first mistake, in words
function events.mistake_in(value, wanted)
  if not wanted then return nil end
  local _, errors = schema_check.check(value, wanted, { total = 0, limit = 1 })
  return errors[1] and schema_check.line(errors[1], "line")
end

return events
