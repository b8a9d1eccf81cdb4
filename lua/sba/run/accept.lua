-- SPDX-License-Identifier: Apache-2.0
-- From a valid job to one that may run: its folders, its journal, and a first result that says
-- `interrupted`. What is missing here ends the job before anything has run.

local artifacts = require "sba.run.artifacts"
local checkpoint = require "sba.result.checkpoint"
local confinement = require "sba.run.confinement"
local file = require "native.file"
local journal = require "sba.run.journal"
local secret = require "sba.util.secret"
local todo = require "sba.run.todo"
local workspace = require "native.workspace"
local workspace_changes = require "sba.run.workspace_changes"

--- The folder that a file lies in, with a slash at its end.
local function folder_of(path)
  return path:match("^.*/") or "./"
end

--- Logs the failure of something that the job can do without.
local function warn(run, event, failure, advice)
  run.log:event("warning", event, { code = failure.code, error = secret.redact(failure.message) .. "; " .. advice })
end

--- The same as a function that is called with the first failure only.
local function once(run, event, advice)
  return function(failure) warn(run, event, failure, advice) end
end

--- Takes what an earlier run left; returns why it cannot. Nothing there: the job begins anew, and the log says so.
local function read_history(run, path)
  local history, failure = require "sba.run.history".read(path, {
    job_sha256 = run.job_sha256, steps = run.steps, catalogue = run.catalogue,
  })
  if failure then return { code = "schema_validation", message = "cannot resume: " .. failure.message } end
  if not history then
    run.log:event("warning", "journal.missing", { error = secret.redact(path) .. " holds nothing to go on from; the job begins anew" })
    return nil
  end
  run.history = history
  run.record:continue(history.started_wall)
  for index in pairs(history.begun) do
    run.log:event("warning", "step.interrupted", { step = index, error = "it had begun and not ended, and is run again" })
  end
end

local function open_journal(run, path)
  if not path then
    run.journal = journal.none()
    return
  end
  run.journal = journal.open(path, not run.history, once(run, "journal.failed", "this job cannot be resumed"))
  if not run.history then
    run.journal:job(run.job, run.job_sha256, run.record.started_wall)
  elseif not run.history.result then
    run.journal:resumed()
  end
end

--- What commands get: the runner's environment less its passwords, and where artifacts go.
local function children_environment(run)
  local list = {}
  for name, value in pairs(secret.for_commands(run.environment)) do
    if name ~= "CYNODE_ARTIFACTS_DIR" then list[#list + 1] = name .. "=" .. value end
  end
  if run.artifacts then list[#list + 1] = "CYNODE_ARTIFACTS_DIR=" .. run.artifacts:path() end
  table.sort(list)
  return list
end

local function open_workspace(run)
  local folder, failure = workspace.open(run.settings.workspace)
  if not folder then
    return nil, { code = "internal_error", message = ("cannot use the workspace: %s"):format(failure.message) }
  end
  run.workspace = folder
  return true
end

--- Commands write where they may from here on; what could not be kept apart is said once.
local function confine(run)
  local state, failure = confinement.begin {
    mode = run.settings.confine, environment = run.environment, workspace = run.workspace:path(),
    artifacts = run.artifacts and run.artifacts:path(), job_directory = run.result_directory,
    token_file = require "sba.util.secret".token_file(),
  }
  if not state then return nil, failure end
  run.record.confinement, run.job_directory = state, run.result_directory and confinement.real_path(run.result_directory)
  return true
end

--- Says that the job is accepted, and once what could not be kept apart from its commands.
local function log_accepted(run)
  local confined = run.record.confinement
  run.log:event("info", "job.accepted", {
    steps = run.steps and #run.steps,
    max_runtime_seconds = run.job.constraints.max_runtime_seconds,
    mode = run.job.execution_mode, confinement = confined,
  })
  if not confined.partial then return end
  run.log:event("warning", "confinement.partial", { partial = confined.partial, error = table.concat(confined.partial, "; ") })
end

local function open_context(run)
  local folder = run.workspace
  if run.history and run.history.changes then require "sba.patch.changes".recover(run, folder) end
  if run.history then require "sba.patch.changes".sweep(run, folder) end
  run.context = {
    workspace = folder,
    max_output_bytes = run.job.constraints.max_output_bytes,
    environment = children_environment(run),
    agent = not run.steps,
    ask = function(request)
      run.ask = run.ask or require "sba.run.ask".new(run)
      return run.ask(request)
    end,
    commit = function(transaction) return require "sba.patch.changes".commit(run, transaction) end,
    size_before_append = function(size)
      local index, known = #run.record.steps + 1, run.history and run.history.append
      if known and known.index == index then return known.size end
      run.journal:step_append(index, size)
      return size
    end,
    call_tool = function(...) return run.outside:call(...) end,
    tick = function()
      run.log:tick()
      run.todo:tick()
      run.checkpoint:tick()
    end,
  }
end

local function open_todo(run)
  run.todo = todo.new()
  run.todo:fill(run.job, #run.job.steps > 0 and require "sba.run.describe" or nil)
  run.record.todo = run.todo
end

--- The results in between. With the result on stdout only the watchdog has them.
local function open_checkpoint(run)
  local warned = false
  run.checkpoint = checkpoint.new(function()
    local parts = run.record:interim()
    if run.settings.result == "-" then return true end
    local how, failure = file.replace(run.settings.result, parts, { durable = false })
    if how then return true end
    run.checkpoint_failure = failure
    if run.accepted and not warned then
      warned = true
      warn(run, "checkpoint.failed", failure, "the last one stands, and the job goes on")
    end
  end)
end

--- The first result. Where it cannot be written, neither could the last: nothing may run.
local function write_first(run)
  if run.checkpoint:write() then return true end
  return nil, {
    code = "internal_error", unwritable = true,
    message = "the result cannot be written, so nothing was run: " .. run.checkpoint_failure.message,
  }
end

local function open_files(run)
  local path = run.settings.result
  local folder = path ~= "-" and folder_of(path) or nil
  run.result_directory = folder
  if run.settings.resume then
    local failure = read_history(run, folder .. "journal.jsonl")
    if failure then return nil, failure end
  end
  if run.settings.replay then
    -- Before the journal is opened anew: it may be the recording.
    local recording, failure = require "sba.run.history".recording(run.settings.replay, run.job_sha256)
    if not recording then
      return nil, { code = "schema_validation", message = "cannot replay: " .. failure.message }
    end
    run.recording = recording
  end
  -- The old journal goes before the first result is written: no kill in between can make a resumed run take it for this one's.
  open_journal(run, folder and folder .. "journal.jsonl")
  open_todo(run)
  open_checkpoint(run)
  local ok, failure = true, nil
  if not (run.history and run.history.result) then ok, failure = write_first(run) end
  if ok and folder then run.todo:keep(folder .. "todo.json", once(run, "todo.failed", "the list is in the result only")) end
  return ok, failure
end

--- Accepts a valid job.
---@param run run
---@return true?, failure? failure
return function(run)
  local ok, failure = open_files(run)
  if not ok then return nil, failure end
  artifacts.open(run) -- which makes folders, so after what wants the result's folder to be there
  run.accepted = true
  ok, failure = open_workspace(run)
  if ok then ok, failure = confine(run) end
  log_accepted(run)
  if ok then ok, failure = workspace_changes.begin(run) end
  if ok then open_context(run) end
  return ok, failure
end
