-- SPDX-License-Identifier: Apache-2.0
-- The events of a job, in the order in which they come:
--
--   job               first line: which job
--   job.resumed       another run continues it
--   job.changed       the job file is another one than before: what `job` has, and how many steps stay as they are
--   skills            agent: those of context.skill_ids
--   model.session     agent: the model, and the gateway's tools
--   model.exchange    agent: what was new in the request, and the reply
--   model.compacted   agent: the conversation was shortened
--   step.started      before the step does anything; of agents and checks with the arguments
--   step.changes      before the step changes several files: how to undo it
--   step.session      a command of the step runs: its session, for the next run if this one is killed
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

local words <const>, count <const>, truth <const> = { type = "string" }, { type = "integer", minimum = 0 }, { type = "boolean" }
local bits <const> = { type = "integer", minimum = 0, maximum = 4095 }
local function object(properties, required) return { type = "object", properties = properties, required = required } end
local function list_of(items) return { type = "array", items = items } end

local time <const> = { type = "integer", minimum = 0, maximum = LAST_TIME }

-- What an event must hold: people edit journals, and write recordings.
events.schemas = {
  job = object { job_sha256 = words, started_wall = time, version = words, job_id = words, task_id = words },
  ["job.changed"] = object { job_sha256 = words, version = words, job_id = words, task_id = words, kept = count },
  ["step.started"] = object({
    index = count, id = words, type = words, check = count, arguments = object(),
  }, { "index", "id", "type" }),
  ["step.changes"] = object({
    changes = list_of(object({
      kind = { enum = { "remove", "directory", "put", "mode" } }, path = words, other = words, kept = count, aside = words, mode = bits,
      old_mode = bits,
    }, { "kind", "path" })),
    index = count, artifacts = truth,
  }, { "index", "changes" }),
  ["step.session"] = object({ index = count, pid = count, started = count }, { "index", "pid", "started" }),
  ["step.report"] = object({ index = count, report = worker_report.schema }, { "index", "report" }),
  ["step.agent"] = object({ index = count, session = words }, { "index", "session" }),
  ["step.append"] = object({ index = count, size = count }, { "index" }),
  ["model.session"] = object({
    model = words, context_length = { type = "integer", minimum = 1 }, instructions = words, facts = words, agents_md = words,
    tools = list_of(object({
      kind = { enum = { "gateway" } }, name = words, tool = words, description = words, parameters = words,
    }, { "kind", "name", "tool", "description", "parameters" })),
  }, { "model", "context_length" }),
  ["model.exchange"] = object({
    messages = list_of(object({ role = words, content = words, step = words }, { "role" })),
    reply = object {
      content = words, thinking = words, said = words, unreadable = words, is_like_a_call = truth, done_reason = words,
      prompt_tokens = count, cached_tokens = count, completion_tokens = count, duration_ms = count, notes = list_of(words),
      response_model = words,
      tool_calls = list_of(object({
        id = words, name = words, arguments = object(), mistake = words, size = count, written = words, called = words, extra = object(),
      }, { "name", "arguments" })),
    },
  }, { "reply" }),
  ["model.compacted"] = object({ tokens_before = count, tokens_after = count }, { "tokens_before", "tokens_after" }),
  skills = object({
    found = list_of(object({ id = words, name = words, text = words }, { "id", "name", "text" })), missing = list_of(words),
  }, { "found", "missing" }),
}

---The same, and what an entry and a result hold.
---@param result_schema table
---@return table<string, table> schemas by event
function events.schemas_with(result_schema)
  local fields, schemas = {}, { ["step.finished"] = object({ entry = result_schema.properties.steps.items }, { "entry" }) }
  for _, name in ipairs(result_schema.required) do
    if name ~= "steps" then fields[#fields + 1] = name end
  end
  schemas["job.finished"] = object({ result = object(result_schema.properties, fields) }, { "result" })
  return setmetatable(schemas, { __index = events.schemas })
end

---@param value any
---@param wanted? table a schema
---@return string? the first mistake, in words
function events.mistake_in(value, wanted)
  local errors = wanted and select(2, schema_check.check(value, wanted, { total = 0, limit = 1 })) or {}
  return errors[1] and schema_check.line(errors[1], "line")
end

return events
