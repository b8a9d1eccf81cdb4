-- SPDX-License-Identifier: Apache-2.0
-- What --lua offers beside the modules: a look at what the runner would make of a job file. Failures are raised in their words.

local catalogue = require "sba.catalogue"
local context = require "sba.job.context"
local file = require "native.file"
local job = require "sba.job"
local prompt = require "sba.run.agent.prompt"
local todo = require "sba.run.todo"

local inspect = {}

local LARGEST_JOB <const> = 64 * 1024 * 1024 -- bytes

local function must(value, failure)
  if value == nil then error(failure.message, 0) end
  return value
end

---A job file, checked, with its context.
---@param path string
---@return sba.job
function inspect.job(path)
  local read = must(job.parse(must(file.read(path, LARGEST_JOB)), catalogue, {}))
  read.context = must(context.load(read.context, path:match("^.*/") or "."))
  return read
end

---What a model is told at the beginning of a job: the system text, the task, and what comes last in every request.
---@param path string of the job file
---@return string
function inspect.prompt(path)
  local read = inspect.job(path)
  local list = todo.new()
  list:fill(read, require "sba.run.describe")
  return table.concat({
    prompt.system(read, read.context), prompt.opening(read.context), prompt.status(read.constraints.max_runtime_seconds, list.items),
  }, "\n")
end

return inspect
