-- SPDX-License-Identifier: Apache-2.0
-- What an earlier run of the job did: with --resume, before this one goes on; with --replay, to be
-- compared with it.

local file = require "native.file"
local fold = require "sba.journal.fold"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local json_file = require "sba.util.json_file"
local schemas = require "sba.result.events"
local secret = require "sba.util.secret"
local text = require "native.text"

local resume = {}

--- The result that stands knows more than one that is made without the journal.
local function refuse(failure)
  local code = failure.code == "invalid_journal" and "schema_validation" or "environment_invalid"
  error { code = code, message = "cannot resume: " .. failure.message, keeps_result = true }
end

local function tell_edited(run, history)
  local message, first = "the job was edited; the steps that are done stay as they are", nil
  if run.steps and history.same < #run.steps then
    first = history.same + 1
    local what = history.was_there and "was changed" or "is new"
    message = ("step %d %s; it and all after it run"):format(first, what)
  elseif history.same and not run.steps then
    message = "the job had steps and is an agent's now; nothing of what was done is kept"
  end
  run.log:event("info", "job.changed", { message = message, step = first })
end

---Sets run.history. If the earlier run succeeded (history.result), only its result is written
---again. Raises why a journal cannot be used.
---@param run run
---@param path string of the journal
function resume.read_journal(run, path)
  if not run.journal_file then refuse { message = path .. " cannot be written" } end
  local record = run.record
  local job_file = { sha256 = record.job_sha256, job_id = record.job_id, task_id = record.task_id }
  job_file.steps = run.steps
  local rules = { schemas = schemas, catalogue = run.catalogue, job_file = job_file }
  local history, failure = fold.resume(run.journal_file, path, rules)
  -- Held since the start: what earlier runs did is read whole, also where a signal comes meanwhile.
  interrupt.hold(false)
  if failure then refuse(failure) end
  if not history then
    return run:warn("journal.missing", secret.redact(path) .. " holds no job to resume; starting anew")
  end
  run.history = history
  record:continue(history.job.started_wall)
  if history.result then return end
  -- An agent's replies are counted as they are adopted.
  record.inference = history.answers
  if history.edited then tell_edited(run, history) end
end

---Sets run.recording, from what may be the journal, which is cut off next.
---@param run run
function resume.read_recording(run)
  local failure
  run.recording, failure = fold.recording(run.settings.replay, run.record.job_sha256, schemas)
  if not failure then return end
  error { code = "schema_validation", message = "cannot replay: " .. failure.message }
end

---Tells which step was interrupted. What it had said stands in the latest result.
---@param run run
function resume.tell_interrupted(run)
  local index, step = next(run.history.unfinished)
  local log <close> = file.open(run.settings.result)
  local result = log and json_file.outline(log, 0, "steps")
  local output = json.table_of(json.table_of(result).running_step).output
  step.output = type(output) == "string" and secret.redact((text.repair(output))) or nil
  run:emit("step.interrupted", { index = index, step = step })
end

return resume
