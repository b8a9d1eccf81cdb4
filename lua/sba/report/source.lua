-- SPDX-License-Identifier: Apache-2.0
-- The input of a report: a result, and the journal, up to any damage, and job next to it if they
-- are of the same job.

local file = require "native.file"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local json_file = require "sba.util.json_file"
local parts = require "sba.report.parts"
local fold = require "sba.journal.fold"
local result_schema = require "sba.result.result_schema"
local schema_check = require "sba.util.schema_check"
local schemas = require "sba.result.events"
local secret = require "sba.util.secret"
local text = require "native.text"

local whole = json_file.whole
local source = {}

-- Bytes of the longest string of a step that is kept in memory.
local SHORT <const> = 1024
-- Bytes of a step that must not be in memory twice: garbage is collected before it is read.
local LARGE <const> = 1 << 20
local LARGEST_JOB <const> = 64 * 1024 * 1024 -- bytes, and of a patch
local PATCH <const> = "changes.patch" -- see sba.run.workspace_changes

-- A later version may know more failure codes.
local readable <const> = schema_check.with(result_schema, { failure_code = { type = { "string", "null" } } })

local step_schema <const> = result_schema.properties.steps.items

---@class report.source
---@field result table a valid result
---@field journal? journal.history
---@field exchanges table[] of the journal: each is read when it is asked for, as the long members of
---steps are
---@field calls table<integer, { type: string, arguments: table }> of steps, from 1, as far as known
---@field running boolean the runner still runs
---@field patch? string
---@field notes string[] sentences: which files the report uses, and which are missing

local function first_mistake(value, schema, pointer)
  local _, errors = schema_check.check(value, schema, { total = 0, limit = 1 })
  local first = errors[1]
  if not first then return nil end
  first.pointer = (pointer or "") .. first.pointer
  return schema_check.line(first)
end

--- Long members are judged only now.
local function read_step(log, extent)
  if extent.size > LARGE then collectgarbage() end
  local step = whole(log, { extent.offset, extent.size })
  local mistake = first_mistake(step, step_schema)
  if not mistake then return secret.clean(step, step_schema) end
  return { output = "[this step is not as it should be: " .. mistake .. "]" }
end

--- A step as the result has it, but only its short members are in memory. Others are read when they
--- are asked for. latest: the step that was read last, for all steps: a page asks for the members of
--- one step after another.
local function lazy_step(log, step, extent, latest)
  local head, long = {}, {}
  for name in pairs(extent.left) do long[name] = true end
  for name, value in pairs(step) do
    local is_long = type(value) == "table" or type(value) == "string" and #value > SHORT
    if is_long then long[name] = true else head[name] = value end
  end
  if not next(long) then return head end
  return setmetatable(head, { __index = function(_, name)
    if not long[name] then return nil end
    if latest.of ~= head then latest.of, latest.step = head, read_step(log, extent) end
    return latest.step[name]
  end })
end

local function read_steps(log, span)
  local steps, latest = {}, {}
  for entry, extent in json_file.elements(log, span) do
    if extent.message then return nil, extent.message end -- it cannot be read
    local message = first_mistake(entry, step_schema, "/steps/" .. #steps)
    if message then return nil, message end
    entry = secret.clean(entry, step_schema)
    steps[#steps + 1] = lazy_step(log, entry, extent, latest)
  end
  return steps
end

local function read_members(log, result, left)
  for name, span in pairs(left) do
    local failure
    if name ~= "steps" then result[name], failure = whole(log, span) end
    if failure then return failure.message end
  end
end

--- The reader of JSON says at which line and column.
local function mistake_in_text(log, failure)
  local _, better = json.decode_own(log:line(0, LARGE) or "")
  return better and better.message or failure.message
end

local function read_result(path)
  local log, failure = json_file.open(path)
  if not log then return nil, "cannot read the result: " .. failure.message end
  local result, extent = json_file.outline(log, 0, "steps")
  if result == nil then
    local mistake = mistake_in_text(log, extent)
    return nil, ("%s is not a result: %s"):format(path, mistake)
  end
  local left, steps = extent.left, nil
  if left.steps then result.steps = json.array {} end
  local message = read_members(log, result, left) or first_mistake(result, readable)
  if not message then steps, message = read_steps(log, left.steps) end
  if message then return nil, ("%s is not a result of cynode-sba: %s"):format(path, message) end
  result = secret.clean(result, result_schema)
  result.steps = steps
  return result
end

---@param log native.file.log
---@param result { job_id: string, task_id: string }
---@return journal.history?, string note
function source.journal(log, result)
  local journal = fold.new()
  journal.started = {}
  local problem, is_torn = journal:fold({ schemas = schemas }, log)
  local job = journal.job or {}
  if job.job_id ~= result.job_id or job.task_id ~= result.task_id then
    return nil, "The journal next to the result belongs to another job and was ignored."
  end
  if not problem then return journal, "This report uses the journal next to the result." end
  if is_torn ~= true then problem = problem .. "; the lines after it are ignored" end
  return journal, "The journal next to the result is damaged: " .. problem .. "."
end

local function read_journal(path, result)
  local log, failure = file.open(path)
  if log then return source.journal(log, result) end
  if failure.code == "not_found" then return nil, "There is no journal next to the result." end
  return nil, "The journal next to the result cannot be read: " .. failure.message .. "."
end

--- Each is read when it is asked for.
local function exchanges_of(journal)
  if not journal then return {} end
  return setmetatable({}, {
    __len = function() return #journal.exchanges end,
    __index = function(_, number) return (journal:exchange(number)) end,
  })
end

--- What a model's steps were called with.
local function calls_of(journal)
  return setmetatable({}, { __index = function(_, index)
    local start = journal and journal:start(index)
    if not start or not json.is_object(start.arguments) then return nil end
    local arguments = secret.clean(start.arguments, {})
    return { type = secret.redact(tostring(start.type)), arguments = arguments }
  end })
end

-- The digest in the journal tells whether it is exactly this file.
local function read_job(paths, result, journal)
  for _, path in ipairs(paths) do
    local bytes = file.read(path, LARGEST_JOB, { regular = true })
    local job = json.table_of(bytes and json.decode(bytes))
    local is_its = type(job.steps) == "table" and job.job_id == result.job_id
    if is_its and (not journal or journal.job.job_sha256 == text.sha256(bytes)) then return job end
  end
end

local function add_job_calls(calls, job, result)
  for i, entry in ipairs(result.steps) do
    local step = job.steps[i]
    if type(step) ~= "table" or step.type ~= entry.type then return end
    if (step.id or "step-" .. i) ~= entry.id then return end
    local arguments = json.table_of(step.arguments or step.args)
    calls[i] = { type = step.type, arguments = secret.clean(arguments, {}) }
  end
end

local function read_patch(directory, result)
  if not result.workspace_changes then return nil end
  local path = directory .. "artifacts/" .. PATCH
  for _, artifact in ipairs(result.artifacts) do
    if artifact.path == PATCH then
      local bytes = file.read(path, LARGEST_JOB, { regular = true })
      local is_it = bytes and text.sha256(bytes) == artifact.sha256
      return is_it and secret.redact((text.repair(bytes))) or nil
    end
  end
end

-- Milliseconds from one time of a result or a journal to another; 0 where one is none, or they go back.
local function between(from, to)
  local first, last = parts.instant(from), parts.instant(to)
  if not first or not last then return 0 end
  return math.max(0, last - first)
end

-- Of a job that is not over, adds the step that runs, and corrects the times: the result was written
-- before.
local function add_running(result, journal, is_running)
  local now = journal and journal.last
  if is_running then now = interrupt.timestamp() end
  if now and between(result.finished_at, now) > 0 then
    result.finished_at = now
    result.duration_ms = math.max(result.duration_ms, between(result.started_at, now))
  end
  local step = result.running_step
  local output = step and step.output
  if journal then step = select(2, next(journal.unfinished)) end
  if not step then return end
  local at = step.started_at or step.at or result.finished_at
  result.steps[#result.steps + 1] = {
    index = #result.steps, id = step.id, type = step.type,
    status = is_running and "running" or "interrupted",
    started_at = at, duration_ms = between(at, result.finished_at), output = output,
  }
end

---@param path string of the result; "-" is stdin, which has no files next to it
---@param job_path string another place where the job may be
---@return report.source?, string? message one line
function source.read(path, job_path)
  local result, message = read_result(path)
  if not result then return nil, message end
  local directory = path ~= "-" and (path:match("^.*/") or "")
  local notes, jobs = {}, { job_path ~= "-" and job_path or nil }
  local journal, patch, is_running = nil, nil, false
  if directory then
    local journal_path = directory .. "journal.jsonl"
    journal, notes[1] = read_journal(journal_path, result)
    is_running = journal ~= nil and file.is_locked(journal_path)
    patch = read_patch(directory, result)
    table.insert(jobs, 1, directory .. "job.json")
  end
  if result.failure_code == "interrupted" then add_running(result, journal, is_running) end
  local calls = calls_of(journal)
  local is_agent = journal and (journal.session or #journal.exchanges > 0)
    or result.inference_used and result.final_answer
  if not is_agent and #result.steps > 0 then
    local job = read_job(jobs, result, journal)
    if job then add_job_calls(calls, job, result) end
    notes[#notes + 1] = job and "Commands and diffs come from the job file."
      or "The job file is not next to the result, so commands and diffs are missing."
  end
  return {
    result = result, journal = journal, exchanges = exchanges_of(journal), calls = calls,
    notes = notes, patch = patch, running = is_running,
  }
end

return source
