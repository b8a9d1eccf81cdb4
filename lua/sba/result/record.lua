-- SPDX-License-Identifier: Apache-2.0
-- What has come of a job so far, and its result as parts of a text: the entries of steps are
-- spans of the journal.

local bundle = require "native.bundle"
local failures = require "sba.result.failure"
local identity = require "native.identity"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local printable = require "sba.util.printable"
local process = require "native.process"
local result_schema = require "sba.result.result_schema"
local usage = require "sba.journal.usage"

local record = {}
record.__index = record

local INTERRUPTED <const> =
  "the runner was ended before the job was over; the result has the work done so far"
local NO_SPACE <const> =
  "[no space is left on the disk of the result: %d bytes of this step are left out]"

---@class failure
---@field code string
---@field message string

---@class record members of the result have its names
---@field protocol_version string
---@field job_id string
---@field task_id string
---@field began number when the job's time began, as interrupt.now
---@field started_wall integer the same as interrupt.wall; of a resumed job: of its first run
---@field continued? boolean an earlier run began the job
---@field steps (string|integer)[] of each entry the offset and size of its span in the journal, or its JSON
---@field count integer entries
---@field from? native.file.log the journal
---@field succeeded integer steps, without checks
---@field outcomes table<string, integer> steps by status, with checks
---@field tolerated? integer how many of these failed, and the job went on
---@field artifacts table[]
---@field job_sha256? string of the job file
---@field report? table the last that a worker wrote
---@field running? fun(): table? the step that runs
---@field todo? { summary: fun(self): table }
---@field acceptance? table[] by criterion; nil: the job has none
---@field inference? journal.usage of all requests to models
---@field confinement table set by accept
---@field workspace_changes? table set by workspace_changes
---@field final_answer? string set by the agent

---@param job_id string
---@param task_id string
---@return record
function record.new(job_id, task_id)
  return setmetatable({
    protocol_version = "1.0", job_id = job_id, task_id = task_id,
    began = interrupt.now(), started_wall = interrupt.wall(),
    steps = {}, count = 0, succeeded = 0, outcomes = {},
    artifacts = json.array {}, confinement = { writes = "none" },
  }, record)
end

---@param at number when the job's time began, as interrupt.now
function record:start(at)
  self.began, self.started_wall = at, interrupt.wall() - interrupt.elapsed_ms(at)
end

---@param started_wall integer when another run began the job, as interrupt.wall
function record:continue(started_wall) self.started_wall, self.continued = started_wall, true end

---@param part integer|string the offset of its span in the journal, or its JSON
---@param size? integer of the span
---@param status string
---@param check? integer the criterion that it checks
---@param tolerated? boolean its failure is none of the job's
function record:add_step(part, size, status, check, tolerated)
  local steps = self.steps
  if self.count > 0 then steps[#steps + 1] = "," end
  steps[#steps + 1] = part
  steps[#steps + 1] = size
  self.count = self.count + 1
  self.outcomes[status] = (self.outcomes[status] or 0) + 1
  if status == "success" and not check then self.succeeded = self.succeeded + 1 end
  if tolerated then self.tolerated = (self.tolerated or 0) + 1 end
end

--- No criterion was checked yet.
---@param criteria string[]
function record:expect(criteria)
  self.acceptance = json.array {}
  for i, criterion in ipairs(criteria) do
    self.acceptance[i] = { criterion = criterion, met = json.null, evidence = "", verified_by = json.null }
  end
end

---@param model string
---@param used { prompt_tokens?: integer, completion_tokens?: integer, duration_ms?: integer }
function record:count_request(model, used)
  self.inference = usage.add(self.inference, model, used)
end

--- Replaces the entries over so many bytes.
---@param change fun(entry: string): string
local function replace(self, most, change)
  local old, steps, i = self.steps, {}, 1
  while i <= #old do
    local part, size = old[i], old[i + 1]
    local is_span = math.type(part) ~= nil
    if is_span and size <= most then
      steps[#steps + 1], steps[#steps + 2] = part, size
    else
      local entry = is_span and assert(self.from:read(part, size)) or part
      steps[#steps + 1] = #entry > most and change(entry) or entry
    end
    i = i + (is_span and 2 or 1)
  end
  self.steps = steps
end

---For a journal that is lost.
function record:load() replace(self, 0, function(entry) return entry end) end

---Leaves outputs out of large entries: the disk is full.
---@param most integer bytes of an entry
function record:shorten(most)
  replace(self, most, function(text)
    local entry = json.decode_own(text)
    entry.result, entry.output_truncated = nil, true
    entry.output = NO_SPACE:format(#text)
    return json.encode(entry, result_schema.properties.steps.items)
  end)
end

function record:forget() self.steps, self.count = {}, 0 end

local function status_of(failure)
  if not failure then return "success" end
  return failure.code == "timeout" and "timeout" or "failure"
end

--- The monotonic clock counts nothing of an earlier run.
local function duration_ms(self, now)
  if self.continued then return math.max(0, now - self.started_wall) end
  return interrupt.elapsed_ms(self.began)
end

local function runner(self)
  local system, version = identity.system(), bundle.version
  local arch, kernel = system.machine, system.release
  return { version = version, job_sha256 = self.job_sha256, arch = arch, kernel = kernel }
end

--- One line for terminals: it may quote a server's names.
local function line_of(failure)
  if not failure then return json.null end
  return printable.replace((failure.message:gsub("[\r\n\t]+", " ")), "%s")
end

--- What a worker claims to have used; nil: nothing.
local function claimed(report)
  if not report then return nil end
  local used = {
    model = report.model, cost_usd = report.cost_usd,
    prompt_tokens = report.prompt_tokens, completion_tokens = report.completion_tokens,
  }
  if next(used) == nil then return nil end
  used.source = "worker"
  return used
end

---All of the result but `steps`.
---@param failure? failure
---@return table
function record:fields(failure)
  local now = interrupt.wall()
  return {
    protocol_version = self.protocol_version, job_id = self.job_id, task_id = self.task_id,
    status = status_of(failure),
    started_at = interrupt.timestamp(self.started_wall), finished_at = interrupt.timestamp(now),
    duration_ms = duration_ms(self, now), artifacts = self.artifacts,
    todo = self.todo and self.todo:summary() or { total = 0, done = 0, items = json.array {} },
    resource_usage = process.usage(),
    final_answer = self.final_answer or self.report and self.report.answer,
    inference_used = self.inference ~= nil and self.inference.requests > 0,
    inference = self.inference or claimed(self.report), acceptance = self.acceptance,
    runner = runner(self), retryable = failure and failures.is_retryable(failure.code),
    confinement = self.confinement, workspace_changes = self.workspace_changes,
    failure_code = failure and failure.code or json.null, failure_message = line_of(failure),
  }
end

---@param fields table of record:fields
---@return native.file.parts
function record:parts(fields)
  local head, tail = {}, {}
  -- Where a field goes: to the head until the steps, then to the tail.
  local half = head
  for _, name in ipairs(result_schema.order) do
    if name == "steps" then half = tail else half[name] = fields[name] end
  end
  local parts = { json.encode(head, result_schema):sub(1, -2) .. ',"steps":[', from = self.from }
  table.move(self.steps, 1, #self.steps, 2, parts)
  parts[#parts + 1] = json.continue("]", tail, result_schema)
  parts[#parts + 1] = "\n"
  return parts
end

--- With entries of an earlier run that this one has not taken over yet.
local function with_entries(self, history)
  local steps = table.move(self.steps, 1, #self.steps, 1, {})
  local all = setmetatable({ steps = steps, outcomes = {} }, { __index = self })
  for index = self.count + 1, history.count do
    local offset, size = history.offsets[index], history.sizes[index]
    all:add_step(offset, size, history.statuses[index], history.checks[index])
  end
  return all
end

---The result that stays if the runner is killed. It knows no less than the one before.
---@param history? journal.history that the run goes on from
---@return native.file.parts
function record:interim(history)
  local message, running = INTERRUPTED, self.running and self.running()
  if running then
    local form = "%s; step %d (%s, %s) ran since %s"
    local number, id, since = running.index + 1, running.id, running.started_at
    message = form:format(message, number, id, running.type, since)
  end
  local fields = self:fields { code = "interrupted", message = message }
  fields.running_step = running
  if history and history.count > self.count then self = with_entries(self, history) end
  return self:parts(fields)
end

return record
