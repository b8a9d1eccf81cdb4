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

local file = require "native.file"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local result_schema = require "sba.result.result_schema"

local journal = {}
journal.__index = journal

journal.ENTRY_PREFIX = '{"event":"step.finished","entry":' -- of a line whose rest is the entry and "}"
local FAILED <const> = '{"event":"journal.failed"}'
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

--- Appends a line with long texts, which begins with a string.
local function append_long(log, parts)
  local offset
  for _, part in ipairs(parts) do
    local done, failure
    local is_string = type(part) == "string"
    if is_string then done, failure = log:append({ part }, true) else done, failure = file.append_text(part, log) end
    if not is_string and part.file then part.file:close() end
    if not done then return nil, failure end
    offset = offset or done
  end
  local at, size = log:append {}
  return at and offset, size
end

---@param parts string[]|(string|native.file.text)[] a line
---@param is_long? boolean
---@return integer? offset nil: it is not written
function journal:append(parts, is_long)
  if not self.log then return nil end
  local offset, more = (is_long and append_long or self.log.append)(self.log, parts)
  if not offset then return end_early(self, more) end
  self.size = more
  return offset
end

function journal:event(event, fields)
  if not self.log then return end
  self:append { json.continue('{"event":"' .. event .. '","at":"' .. interrupt.timestamp() .. '"', fields, fields_schema) }
end

journal.BETWEEN = #("}\n" .. journal.ENTRY_PREFIX) -- bytes from one entry to the next of a call

--- Steps are over.
---@param entries string[]|(string|native.file.text)[][] the JSON of each, or parts of the only one, as entry.encode gives them
---@return integer? offset of the first entry; nil: they are not written
---@return integer? size of all, with what is between them
function journal:steps_finished(entries)
  local line, is_long = { journal.ENTRY_PREFIX }, type(entries[1]) == "table"
  for i, entry in ipairs(is_long and entries[1] or entries) do
    if i > 1 and not is_long then line[#line + 1] = "}\n" .. journal.ENTRY_PREFIX end
    line[#line + 1] = entry
  end
  line[#line + 1] = "}"
  local offset = self:append(line, is_long)
  if offset then return offset + #journal.ENTRY_PREFIX, self.size - offset - #journal.ENTRY_PREFIX - #"}\n" end
end

return journal
