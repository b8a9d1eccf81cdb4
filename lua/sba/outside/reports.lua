-- SPDX-License-Identifier: Apache-2.0
-- The reports of a job's start and end to whoever gave it. If they fail, the job goes on.

local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local retry = require "sba.util.retry"

local reports = {}

-- Seconds and bytes.
local START <const>, TRY <const> = 3, 2 -- the report of the start, and one try
local END <const>, END_AFTER_SIGNAL <const> = 30, 5 -- the report of the end
local CONNECT <const>, ANSWER <const>, REST <const> = 5, 10, 1 -- to connect, for an answer, for the rest of its body

local body_schema = { order = { "status", "job_id", "task_id" } }

---@param run run
---@param who string for messages
---@param to string
---@param body string|native.file.parts
---@param until_when number
---@param headers? string[]
---@return integer? status of a 2xx, http.failure?
function reports.post(run, who, to, body, until_when, headers)
  local client, failure = run:client()
  if not client then return nil, failure end
  return http.deliver(client, {
    method = "POST", url = to, body = body, connect_timeout = CONNECT, first_timeout = ANSWER, idle_timeout = REST,
    headers = { "Content-Type: application/json", "Accept: application/json", table.unpack(headers or {}) },
  }, until_when, ("%s at %s"):format(who, http.display_url(to)))
end

local function send(run, body, until_when) return reports.post(run, "the status server", run.status_url, body, until_when) end

local function body_of(run, what)
  return json.encode({ status = what, job_id = run.record.job_id, task_id = run.record.task_id }, body_schema)
end

local function milliseconds(seconds) return math.floor(seconds * 1000 + 0.5) end

--- refused: another try would change nothing.
local function log_end(run, report, code, failure, tries, seconds)
  if code then
    run.log:event("info", "report.sent", { report = report, status = code, tries = tries, duration_ms = milliseconds(seconds) })
    return "delivered"
  end
  local outcome = failure.status and not failure.transient and "refused" or "undeliverable"
  run:warn("report.failed", ("the report %s was not delivered: %s"):format(report, failure.message), {
    report = report, outcome = outcome, status = failure.status, tries = tries,
  })
  return outcome
end

local function close_beginning(run, code)
  local start = run.beginning
  run.beginning = nil
  log_end(run, "in_progress", code, start.failure, start.tries, START - start.left)
end

---To be called again before later steps while run.beginning is set. Reports do not use the job's time.
---@param run run
function reports.start(run)
  if interrupt.reason() then return end
  local start, at = run.beginning or { left = START, tries = 0 }, interrupt.now()
  local most = math.min(start.left, TRY)
  run.beginning = start
  run:set_deadline(run.deadline + most, run.kept_seconds)
  local code, failure = send(run, body_of(run, "in_progress"), at + most)
  local took = interrupt.now() - at
  run:set_deadline(run.deadline + took - most, run.kept_seconds)
  start.tries, start.left, start.failure = start.tries + 1, start.left - took, failure
  if code or not failure.transient or start.left <= 0 then return close_beginning(run, code) end
  if start.tries == 1 then
    run:warn("report.retry", failure.message .. "; it tries again before later steps", { report = "in_progress" })
  end
end

local function deliver(run, body)
  local tries = 0
  local code, failure = retry.within(interrupt.signal() and END_AFTER_SIGNAL or END, function(until_when, number)
    tries = number
    return send(run, body, until_when)
  end, function(problem, wait)
    run:warn("report.retry", problem.message, { report = "completed", seconds = wait })
  end)
  return code, failure, tries
end

---After a signal it has 5 s; the next one ends it.
---@param run run
---@param result native.file.parts|false
function reports.finish(run, result)
  if run.history.reported then return end -- or refused
  if not result then
    local fields = { report = "completed", outcome = "undeliverable", tries = 0 }
    return run:warn("report.failed", "the end is not reported because the result was not written", fields)
  end
  if run.beginning then close_beginning(run) end
  local body = table.move(result, 1, #result, 2, { (body_of(run, "completed"):gsub("}$", ',"result":')), from = result.from })
  body[#body + 1] = "}"
  local at, signalled = interrupt.now(), interrupt.signal()
  local code, failure, tries = deliver(run, body)
  if not code and not signalled and interrupt.signal() then code, failure, tries = deliver(run, body) end
  local outcome = log_end(run, "completed", code, failure, tries, interrupt.now() - at)
  if outcome ~= "undeliverable" and run.journal then run:emit("job.reported", { outcome = outcome }) end
end

return reports
