-- SPDX-License-Identifier: Apache-2.0
-- Reports the beginning and the end of a job. The log says how each report ended: delivered (a 2xx), refused (an answer that another
-- try would not change) or undeliverable. None of them changes the job's result.

local ending = require "native.ending"
local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local retry = require "sba.util.retry"
local url = require "sba.util.url"

local status = {}

local BEGINNING <const>, TRY <const> = 3, 2 -- seconds that the report of the beginning may take in all, and one try of it
local ENDING <const>, AFTER_SIGNAL <const> = 30, 5 -- seconds within which the end must be reported
local CONNECT <const>, ANSWER <const>, REST <const> = 5, 10, 1 -- seconds to connect, for an answer, for the rest of its body
local LARGEST_ANSWER <const> = 64 * 1024 -- bytes; the body is not used

local body_schema = { order = { "status", "job_id", "task_id" } }

---Posts once, for a trace too.
---@param run run
---@param who string what messages call the server
---@param to string
---@param body string|native.file.parts
---@param until_when number
---@param headers? string[]
---@return integer? status of a 2xx, http.failure? failure
function status.post(run, who, to, body, until_when, headers)
  local client, failure = run:client()
  if not client then return nil, failure end
  local exchange <close>, code = http.send(client, {
    method = "POST", url = to, body = body, connect_timeout = CONNECT, first_timeout = ANSWER, idle_timeout = REST,
    headers = { "Content-Type: application/json", "Accept: application/json", table.unpack(headers or {}) },
  }, until_when)
  if not exchange then return nil, code end
  if code >= 300 then return nil, http.refusal(exchange, code, ("%s at %s"):format(who, url.shown(to))) end
  http.read(exchange, LARGEST_ANSWER) -- to its end, so that the connection can be used again
  return code
end

local function send(run, body, until_when) return status.post(run, "the status server", run.status_url, body, until_when) end

local function body_of(run, what)
  return json.encode({ status = what, job_id = run.record.job_id, task_id = run.record.task_id }, body_schema)
end

--- Logs whether a report was delivered; returns the outcome.
---@return "delivered"|"refused"|"undeliverable"
local function log_end(run, report, code, failure, tries, seconds)
  if code then
    local duration_ms = math.floor(seconds * 1000 + 0.5)
    run.log:event("info", "report.sent", { report = report, status = code, tries = tries, duration_ms = duration_ms })
    return "delivered"
  end
  local outcome = failure.status and not failure.transient and "refused" or "undeliverable"
  run.log:event("warning", "report.failed", {
    report = report, outcome = outcome, status = failure.status, tries = tries,
    error = ("the report %s was not delivered: %s"):format(report, failure.message),
  })
  return outcome
end

--- Ends the report of the beginning.
local function close_beginning(run, code)
  local beginning = run.beginning
  run.beginning = nil
  log_end(run, "in_progress", code, beginning.failure, beginning.tries, BEGINNING - beginning.left)
end

--- Moves the deadline, so that reports do not use the job's time.
local function move_deadline(run, seconds)
  run.deadline = run.deadline + seconds
  interrupt.set_deadline(math.max(0, run.deadline - interrupt.now()))
  ending.deadline(run.deadline)
end

---Reports that the job is in progress. Call it when the job begins and, as long as run.beginning is set, before each later step: the
---tries take 3 s in all at most.
---@param run run with a status_url
function status.began(run)
  if interrupt.reason() then return end
  local beginning, at = run.beginning or { left = BEGINNING, tries = 0 }, interrupt.now()
  local most = math.min(beginning.left, TRY)
  run.beginning = beginning
  move_deadline(run, most)
  local code, failure = send(run, body_of(run, "in_progress"), at + most)
  local took = interrupt.now() - at
  move_deadline(run, took - most)
  beginning.tries, beginning.left, beginning.failure = beginning.tries + 1, beginning.left - took, failure
  if code or not failure.transient or beginning.left <= 0 then return close_beginning(run, code) end
  if beginning.tries == 1 then
    local message = failure.message .. "; it tries again before later steps"
    run.log:event("warning", "report.retry", { report = "in_progress", error = message })
  end
end

--- Reports the end until it is delivered or the time is up: 30 s, or 5 s after a signal.
local function deliver(run, body)
  local tries = 0
  local code, failure = retry.within(interrupt.signal() and AFTER_SIGNAL or ENDING, function(until_when, number)
    tries = number
    return send(run, body, until_when)
  end, function(problem, wait)
    run.log:event("warning", "report.retry", { report = "completed", error = problem.message, seconds = wait })
  end)
  return code, failure, tries
end

---Reports how the job ended, within 30 s. The first signal leaves it 5 s; the next one ends it at once. A resumed run does not repeat a
---report that arrived or was refused.
---@param run run with a status_url
---@param result native.file.parts|false as written; false: it could not be written, and the end is not reported
function status.ended(run, result)
  if run.past.reported then return end
  if not result then
    return run.log:event("warning", "report.failed", {
      report = "completed", outcome = "undeliverable", tries = 0, error = "the end is not reported because the result was not written",
    })
  end
  if run.beginning then close_beginning(run) end
  local head = body_of(run, "completed"):gsub("}$", ',"result":')
  local body = table.move(result, 1, #result, 2, { head, from = result.from })
  body[#body + 1] = "}"
  local at, signalled = interrupt.now(), interrupt.signal()
  local code, failure, tries = deliver(run, body)
  if not code and not signalled and interrupt.signal() then code, failure, tries = deliver(run, body) end
  local outcome = log_end(run, "completed", code, failure, tries, interrupt.now() - at)
  if outcome ~= "undeliverable" and run.journal then run:emit("job.reported", { outcome = outcome }) end
end

return status
