-- SPDX-License-Identifier: Apache-2.0
-- journal.jsonl, next to the result: one line for each event, appended in one write before the event takes effect.
-- past.lua reads it.
--
--   {"event":"job","job_sha256",...}              first line: which job
--   {"event":"step.started","index","id","type"}  before the step does anything; agent's and checks: with their arguments
--   {"event":"step.changes","index","changes",...} before the step changes several files at once: how to undo it
--   {"event":"step.append","index","size"}        before the step appends to a file: the size that the file has; absent: no such file
--   {"event":"step.finished","entry":{...}}       the step's whole entry of the result
--   {"event":"step.interrupted","index","since","output"} the runner was ended during the step, which had said this
--   {"event":"model.session","model",...}         agent: which model works, with which tools of the gateway
--   {"event":"model.compacted",...}               agent: the conversation was shortened to fit the model's context
--   {"event":"model.exchange","messages","reply"} agent: what was new in the request, and the reply
--   {"event":"job.resumed",...}                   another run continues the job
--   {"event":"skills","found","missing"}          agent: what the orchestrator gave of context.skill_ids
--   {"event":"job.finished","result":{...}}       the result's other fields
--   {"event":"job.reported","outcome"}            the report of the end arrived or was refused
--   {"event":"journal.failed"}                    last line: later events could not be written, so the job cannot be resumed

local bundle = require "native.bundle"
local file = require "native.file"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local result_schema = require "sba.result.result_schema"

local journal = {}
journal.__index = journal

local FAILED <const> = '{"event":"journal.failed"}'
local ENTRY_PREFIX <const> = '{"event":"step.finished","entry":'
-- The order of an event's own fields, which follow `event` and `at`.
local fields_schema = {
  properties = { result = result_schema },
  order = { "index", "id", "type", "check", "job_sha256", "protocol_version", "job_id", "task_id", "started_wall" },
}

--- Opens the file of a journal and locks it: one runner works in a job directory. It stays as it is until journal.begin.
---@param path string
---@param create boolean
---@return native.file.log? log, native.failure? failure not_locked: the log is returned, and others may open it too
function journal.lock(path, create)
  local log, failure = file.append(path, create)
  if not log then return nil, failure end
  local locked, why = log:lock()
  if locked or why.code ~= "locked" then return log, why and { code = "not_locked", message = why.message } end
  log:close()
  return nil, { code = "locked", message = ("another runner works in this job directory: %s is locked"):format(path) }
end

--- Begins to write.
---@param log? native.file.log nil: this journal writes nothing
---@param size integer bytes of it that stay; a torn line does not
---@param failed fun(failure: native.failure) called once, when it cannot be written
---@return journal
function journal.begin(log, size, failed)
  local self = setmetatable({ failed = failed, log = log, size = size }, journal)
  local done, failure = true, nil
  if log then done, failure = log:cut(size) end
  if not done then
    self.log = nil
    failed(failure)
  end
  return self
end

--- Marks the journal as incomplete, so that --resume refuses it. Cutting off the torn line makes room for that, or else all lines.
local function end_early(self, failure)
  local log = self.log
  self.log = nil
  self.failed(failure)
  for _, size in ipairs { self.size, 0 } do
    if log:cut(size) and log:append { FAILED } then return end
  end
end

---@param parts string[] a line
---@return integer? offset nil: it is not written
function journal:append(parts)
  if not self.log then return nil end
  local offset, more = self.log:append(parts)
  if not offset then return end_early(self, more) end
  self.size = more
  return offset
end

function journal:event(event, fields)
  if not self.log then return end
  self:append { json.continue('{"event":"' .. event .. '","at":"' .. interrupt.timestamp() .. '"', fields, fields_schema) }
end

--- The first line.
---@param job table
---@param job_sha256 string
---@param started_wall integer as interrupt.wall
---@param known? { steps?: table[], criteria?: string[], todo: table[], confinement: table } for an end by exec
function journal:job(job, job_sha256, started_wall, known)
  local fields = known or {}
  fields.job_sha256, fields.started_wall, fields.version = job_sha256, started_wall, bundle.version
  fields.protocol_version, fields.job_id, fields.task_id = job.protocol_version, job.job_id, job.task_id
  self:event("job", fields)
end

function journal:resumed() self:event("job.resumed", {}) end

--- A step is about to begin.
---@param index integer from 1
---@param step { id: string, type: string, check?: integer }
---@param arguments? table those of a model's step, which may have written them otherwise, and of a check
function journal:step_started(index, step, arguments)
  self:event("step.started", { index = index - 1, id = step.id, type = step.type, check = step.check, arguments = arguments })
end

--- A step is about to change files.
---@param index integer from 1
---@param changes sba.change[] names as JSON can hold them
---@param in_artifacts boolean they are in the artifacts directory, not in the workspace
function journal:step_changes(index, changes, in_artifacts)
  self:event("step.changes", { index = index - 1, changes = changes, artifacts = in_artifacts or nil })
end

--- A step is about to append to a file.
---@param index integer from 1
---@param size? integer of the file; nil: there is none
function journal:step_append(index, size) self:event("step.append", { index = index - 1, size = size }) end

--- An earlier run was ended during a step.
---@param index integer from 1
---@param step { id: string, type: string, output?: string } output: what it had said
---@param since? string when it began
function journal:step_interrupted(index, step, since)
  self:event("step.interrupted", { index = index - 1, id = step.id, type = step.type, since = since, output = step.output })
end

journal.BETWEEN = #("}\n" .. ENTRY_PREFIX) -- bytes from one entry to the next of a call

--- Steps are over.
---@param entries string[] the JSON of each
---@return integer? offset of the first entry; nil: they are not written
function journal:steps_finished(entries)
  local line = { ENTRY_PREFIX }
  for i, entry in ipairs(entries) do
    if i > 1 then line[#line + 1] = "}\n" .. ENTRY_PREFIX end
    line[#line + 1] = entry
  end
  line[#line + 1] = "}"
  local offset = self:append(line)
  return offset and offset + #ENTRY_PREFIX
end

--- Which model works, how much it holds, the gateway's tools that it is offered, and what it is told besides the job.
---@param session inference.session
---@param offered agent.tool[]
---@param told sba.prompt.more
function journal:session(session, offered, told)
  self:event("model.session", {
    model = session.model, context_length = session.context_length, tools = #offered > 0 and json.array(offered) or nil,
    instructions = told.instructions, facts = told.facts, agents_md = told.agents_md,
  })
end

--- The conversation was shortened to fit the model's context.
---@param before integer tokens, estimated
---@param after integer
function journal:compacted(before, after)
  self:event("model.compacted", { tokens_before = before, tokens_after = after })
end

--- A reply of the model, and what was new in the request that it answers.
---@param number integer from 1
---@param messages table[]
---@param reply table
function journal:exchange(number, messages, reply)
  self:event("model.exchange", { number = number, messages = json.array(messages), reply = reply })
end

--- The job is over.
---@param fields table the result without its steps
function journal:job_finished(fields)
  self:event("job.finished", { result = fields })
end

--- The skills that were fetched, and the ids of those that were not.
---@param found { id: string, name: string, text: string }[]
---@param missing string[] ids
function journal:skills(found, missing)
  self:event("skills", { found = json.array(found), missing = json.array(missing) })
end

--- The orchestrator was told how the job ended.
---@param outcome "delivered"|"refused"
function journal:reported(outcome)
  self:event("job.reported", { outcome = outcome })
end

return journal
