-- SPDX-License-Identifier: Apache-2.0
-- Sends a run's status reports to run.status_url. Runs without that URL never call this module.

local status = require "sba.orchestrator.status"

local report = {}

local function reporter(run)
  if run.reporter then return run.reporter end
  local http, failure = run.outside:client()
  if not http then
    run.log:event("warning", "report.failed", { outcome = "undeliverable", error = failure.message })
    return nil
  end
  run.reporter = status.new {
    url = run.status_url, http = http, job_id = run.record.job_id, task_id = run.record.task_id,
    log = function(level, event, fields) run.log:event(level, event, fields) end,
  }
  return run.reporter
end

---Reports that the job is in progress, once.
---@param run run
function report.began(run)
  local to = reporter(run)
  if to then to:began() end
end

---Reports how the job ended. A resumed run does not repeat a report that arrived or was refused.
---@param run run
---@param result string[]|false as written; false: it could not be written, and the end is not reported
function report.ended(run, result)
  if run.history and run.history.reported then return end
  if not result then
    return run.log:event("warning", "report.failed", {
      report = "completed", outcome = "undeliverable", tries = 0, error = "the end is not reported because the result was not written",
    })
  end
  local to = reporter(run)
  local outcome = to and to:completed(result)
  if outcome and outcome ~= "undeliverable" and run.journal then run.journal:reported(outcome) end
end

return report
