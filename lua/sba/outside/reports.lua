-- SPDX-License-Identifier: Apache-2.0
-- The reports of a job's start and end to whoever gave it. If they fail, the job goes on.

local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local retry = require "sba.util.retry"

local reports = {}

-- Seconds.
-- For the report of the start: all tries together, and one of them.
local START <const>, START_TRY <const> = 3, 2
local END <const>, END_AFTER_SIGNAL <const> = 30, 5 -- for the report of the end
-- Of one try. REST: for what follows the status.
local CONNECT <const>, ANSWER <const>, REST <const> = 5, 10, 1

local body_schema = { order = { "status", "job_id", "task_id" } }

---@return number seconds for what is sent at the end: a report, a file
function reports.seconds_of_end() return interrupt.signal() and END_AFTER_SIGNAL or END end

---@param run run
---@param who string for messages
---@param request native.http.request
---@param until_when number
---@return integer? status of a 2xx, http.failure?
function reports.deliver(run, who, request, until_when)
  local client, failure = run:client()
  if not client then return nil, failure end
  request.connect_timeout = CONNECT
  return http.deliver(client, request, until_when, ("%s at %s"):format(who, http.display_url(request.url)))
end

---@param run run
---@param who string for messages
---@param to string
---@param body string|native.file.parts of JSON
---@param until_when number
---@param headers? string[]
---@return integer? status of a 2xx, http.failure?
function reports.post(run, who, to, body, until_when, headers)
  local all, own = { "Content-Type: application/json", "Accept: application/json" }, headers or {}
  table.move(own, 1, #own, 3, all)
  local request = { method = "POST", url = to, headers = all, body = body }
  request.first_timeout, request.idle_timeout = ANSWER, REST
  return reports.deliver(run, who, request, until_when)
end

local function send(run, body, until_when)
  return reports.post(run, "the status server", run.status_url, body, until_when)
end

local function body_of(run, what)
  local body = { status = what, job_id = run.record.job_id, task_id = run.record.task_id }
  return json.encode(body, body_schema)
end

-- Returns the outcome. refused: another try would change nothing.
local function log_end(run, report, status, failure, tries, duration_ms)
  local fields = { report = report, status = status, tries = tries, duration_ms = duration_ms }
  if status then
    run.log:event("info", "report.sent", fields)
    return "delivered"
  end
  local is_refused = failure.status and not failure.transient
  local outcome, message = is_refused and "refused" or "undeliverable", failure.message
  fields.outcome, fields.status, fields.duration_ms = outcome, failure.status, nil
  run:warn("report.failed", "the report " .. report .. " was not delivered: " .. message, fields)
  return outcome
end

local function close_beginning(run, status)
  local start = run.beginning
  run.beginning = nil
  log_end(run, "in_progress", status, start.failure, start.tries, start.duration_ms)
end

---To be called again before later steps while run.beginning is set. Reports do not use the job's
---time.
---@param run run
function reports.start(run)
  if interrupt.reason() then return end
  local start = run.beginning or { left = START, tries = 0, duration_ms = 0 }
  run.beginning = start
  local began, most = interrupt.now(), math.min(start.left, START_TRY)
  -- The deadline moves by what the try may take, and then by what it took.
  run:set_deadline(run.deadline + most, run.reserved_seconds)
  local status, failure = send(run, body_of(run, "in_progress"), began + most)
  local took = interrupt.now() - began
  run:set_deadline(run.deadline + took - most, run.reserved_seconds)
  start.tries, start.left, start.failure = start.tries + 1, start.left - took, failure
  start.duration_ms = start.duration_ms + interrupt.elapsed_ms(began)
  if status or not failure.transient or start.left <= 0 then return close_beginning(run, status) end
  if start.tries > 1 then return end
  local message = failure.message .. "; it tries again before later steps"
  run:warn("report.retry", message, { report = "in_progress" })
end

-- Returns the status or nil, the failure or nil, and the number of tries.
local function send_again(run, body)
  local tries = 0
  local function attempt(until_when, number)
    tries = number
    return send(run, body, until_when)
  end
  local function on_wait(failure, seconds)
    run:warn("report.retry", failure.message, { report = "completed", seconds = seconds })
  end
  local status, failure = retry.within(reports.seconds_of_end(), attempt, on_wait)
  return status, failure, tries
end

---After a signal it has 5 s; the next one ends it.
---@param run run
---@param result native.file.parts|false
function reports.finish(run, result)
  if run.history.reported then return end -- or refused
  if not result then
    local message = "the end is not reported because the result was not written"
    local fields = { report = "completed", outcome = "undeliverable", tries = 0 }
    return run:warn("report.failed", message, fields)
  end
  if run.beginning then close_beginning(run) end
  local before_result = body_of(run, "completed"):gsub("}$", ',"result":')
  local body = table.move(result, 1, #result, 2, { before_result })
  body.from = result.from
  body[#body + 1] = "}"
  local began, signalled = interrupt.now(), interrupt.signal()
  local status, failure, tries = send_again(run, body)
  -- A signal that came meanwhile has ended the wait before another try.
  local is_cut_off = not status and not signalled and interrupt.signal()
  if is_cut_off then status, failure, tries = send_again(run, body) end
  local outcome = log_end(run, "completed", status, failure, tries, interrupt.elapsed_ms(began))
  if outcome == "undeliverable" or not run.journal then return end
  run:emit("job.reported", { outcome = outcome })
end

return reports
