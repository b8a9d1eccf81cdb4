-- SPDX-License-Identifier: Apache-2.0
-- What has come of a job so far, and its result as text. A step's entry is turned into JSON once, when it is added; the
-- result is a list of strings to be written one after the other, so that a large step is never copied again.

local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local chunks = require "sba.util.chunks"
local printable = require "sba.util.printable"
local process = require "native.process"
local result_schema = require "sba.result.result_schema"

local record = {}
record.__index = record

local INTERRUPTED <const> = "the runner was ended before the job was over; the result has the work done so far"
local PROTOCOL_VERSION <const> = "1.0"

---@class failure
---@field code string
---@field message string

---@class record
---@field steps (string|string[])[] JSON of the entries, whole or in parts
---@field succeeded integer steps that did, checks left out
---@field outcomes table<string, integer> how many steps have each status, checks among them
---@field artifacts table[]
---@field running? fun(): table? the step that runs, for the result of a job that is not over
---@field todo? { items: table[], summary: (fun(self): table), encoded: (fun(self): string[]) }

--- The record of a job that starts now.
---@param job_id string
---@param task_id string
---@return record
function record.new(job_id, task_id)
  return setmetatable({
    protocol_version = PROTOCOL_VERSION, job_id = job_id, task_id = task_id,
    began = interrupt.now(), started_wall = interrupt.wall(),
    steps = {}, succeeded = 0, outcomes = {}, artifacts = json.array {}, confinement = { writes = "none" },
  }, record)
end

--- The job's time began to count.
---@param at number as interrupt.now
function record:start(at)
  self.began, self.started_wall = at, interrupt.wall() - math.floor((interrupt.now() - at) * 1000 + 0.5)
end

--- The run continues a job that another run began.
---@param started_wall integer as interrupt.wall
function record:continue(started_wall)
  self.started_wall, self.continued = started_wall, true
end

--- Adds a step's entry.
---@param text string|string[] its JSON, whole or in parts
---@param status string
---@param check? integer the criterion that it checks: then it is none of the job's own
function record:add_step(text, status, check)
  self.steps[#self.steps + 1] = text
  self.outcomes[status] = (self.outcomes[status] or 0) + 1
  if status == "success" and not check then self.succeeded = self.succeeded + 1 end
end

--- Leaves what a step gave out of entries over so many bytes, and says so there. For a disk that is full.
---@param most integer
function record:shorten(most)
  for i, text in ipairs(self.steps) do
    local whole = type(text) == "table" and table.concat(text) or text
    if #whole > most then
      local entry = json.decode_own(whole)
      entry.result, entry.output_truncated = nil, true
      entry.output = ("[no space is left on the disk of the result: %d bytes of this step are left out]"):format(#whole)
      self.steps[i] = json.encode(entry, result_schema.properties.steps.items)
    end
  end
end

local function status_of(failure)
  if not failure then return "success" end
  return failure.code == "timeout" and "timeout" or "failure"
end

function record:duration_ms(now)
  if self.continued then return math.max(0, now - self.started_wall) end
  return math.floor((interrupt.now() - self.began) * 1000 + 0.5)
end

function record:todo_summary()
  return self.todo and self.todo:summary() or { total = 0, done = 0, items = json.array {} }
end

--- A failure's message as one line that a terminal shows as it is: it may quote a server's names.
local function line_of(failure)
  return failure and printable.replace((failure.message:gsub("[\r\n\t]+", " ")), "%s") or json.null
end

--- Every field of the result but `steps`, as of now.
---@param failure? failure
---@return table
function record:fields(failure)
  local now = interrupt.wall()
  return {
    protocol_version = self.protocol_version, job_id = self.job_id, task_id = self.task_id, status = status_of(failure),
    started_at = interrupt.timestamp(self.started_wall), finished_at = interrupt.timestamp(now),
    duration_ms = self:duration_ms(now), artifacts = self.artifacts, todo = self:todo_summary(),
    resource_usage = process.usage(),
    final_answer = self.final_answer, inference_used = self.inference ~= nil and self.inference.requests > 0,
    inference = self.inference, acceptance = self.acceptance, confinement = self.confinement, workspace_changes = self.workspace_changes,
    failure_code = failure and failure.code or json.null, failure_message = line_of(failure),
  }
end

-- The lists that are kept as the JSON of each element.
local function add_steps(parts, self)
  parts[#parts + 1] = "["
  chunks.add_list(parts, self.steps)
  parts[#parts + 1] = "]"
end

local function add_todo(parts, self, summary)
  parts[#parts + 1] = ('{"total":%d,"done":%d,"items":['):format(summary.total, summary.done)
  chunks.add_list(parts, self.todo:encoded())
  parts[#parts + 1] = "]}"
end

local function add_field(parts, self, name, value)
  if name == "steps" then return add_steps(parts, self) end
  if name == "todo" and self.todo and value.items == self.todo.items then return add_todo(parts, self, value) end
  parts[#parts + 1] = json.encode(value, result_schema.properties[name])
end

--- The result as strings to be written one after the other.
---@param fields table as record:fields gives
---@return string[], table<string, integer> places the index of the string where each field begins
function record:parts(fields)
  local parts, before, places = {}, "{", {}
  for _, name in ipairs(result_schema.order) do
    local value = fields[name]
    if value ~= nil or name == "steps" then
      places[name] = #parts + 1
      parts[#parts + 1] = ('%s"%s":'):format(before, name)
      add_field(parts, self, name, value)
      before = ","
    end
  end
  parts[#parts + 1] = "}\n"
  return parts, places
end

--- The result of a job that is not over: it stays if the runner is killed.
---@return string[] parts
function record:interim()
  local message, running = INTERRUPTED, self.running and self.running()
  if running then
    message = ("%s; step %d (%s, %s) ran since %s"):format(message, running.index + 1, running.id, running.type, running.started_at)
  end
  local fields = self:fields { code = "interrupted", message = message }
  fields.running_step = running
  return (self:parts(fields))
end

return record
