-- SPDX-License-Identifier: Apache-2.0
-- trajectory.json next to the journal, and --trajectory: an agent's run as an ATIF document, made from the journal line by line.

local document = require "sba.run.trajectory.document"
local exit = require "sba.util.exit"
local file = require "native.file"
local history = require "sba.run.history"
local interrupt = require "native.interrupt"
local journal_lines = require "sba.run.trajectory.journal_lines"
local json = require "sba.util.json"
local redact = require "native.secret".redact
local result_schema = require "sba.result.result_schema"
local secret = require "sba.util.secret"
local text = require "native.text"
local turns = require "sba.run.trajectory.turns"

local trajectory = {}

local LARGEST_JOB <const> = 64 * 1024 * 1024 -- bytes
local TIMEOUT <const> = 3600 -- seconds that a reader of stdout may take
local GARBAGE <const> = 120 -- per cent of what is in use, beyond which memory is collected again
local NAME <const> = "trajectory.json"

-- Which of the document's own fields hold no text from outside.
local own <const> = { enum = {} }
local extra_schema <const> = {
  order = { "job_id", "task_id", "job_sha256", "status", "failure_code", "failure_message", "acceptance" },
  properties = {
    job_id = own, task_id = own, job_sha256 = own, status = own, failure_code = own,
    acceptance = result_schema.properties.acceptance,
  },
}

--- What is wrong with a line, or nil; and the event that it is.
local function read_line(line)
  local event, failure = json.decode_own(line)
  if failure then return failure.message end
  if type(event) ~= "table" or type(event.event) ~= "string" then return "it is not an event of a journal" end
  return history.mistake(event), event
end

local function words(value) return type(value) == "string" and value or nil end

local function tail_of(made)
  local line, result = made.line, made.result or { status = "interrupted" }
  return {
    job_id = words(line.job_id), task_id = words(line.task_id), job_sha256 = line.job_sha256, status = result.status,
    failure_code = words(result.failure_code), failure_message = words(result.failure_message), acceptance = result.acceptance,
  }
end

--- Reads the lines up to the first that is damaged. Returns notes on what is missing, or nil and a failure.
local function read_lines(next_line, made, expired)
  local number = 0
  while true do
    local line, is_whole = next_line()
    if not line and number > 0 then return is_whole == nil and {} or nil, is_whole end
    if not line then return nil, is_whole or { code = "invalid_journal", message = "it is empty" } end
    number = number + 1
    local problem, event
    if is_whole then problem, event = read_line(line) else problem = "it is incomplete, as after a kill" end
    if not problem and event.event == "journal.failed" then problem = "what was done then could not be written" end
    if number == 1 and (problem or event.event ~= "job") then
      return nil, { code = "invalid_journal", message = "it is not a journal: line 1: " .. (problem or "it is not about a job") }
    end
    if problem then return { ("The journal was read up to line %d: %s."):format(number, problem) } end
    if event.event == "job" and number > 1 then return { ("The journal was read up to line %d: a second job begins."):format(number) } end
    made:add(event)
    if made.failure then return nil, made.failure end
    if expired() then return nil, { code = "timeout", message = "the time of the job was up" } end
  end
end

--- Makes the document.
---@param path string of the journal; "-" is stdin
---@param options { catalogue: table, write: fun(...: string), expired: fun(): boolean, arguments_of: fun(line: table): table }
---@return true?, native.failure? failure
local function convert(path, options)
  local next_line, failure = journal_lines(path)
  if not next_line then return nil, failure end
  local writer = document.new(options.write)
  local made = turns.new(options.catalogue, writer, options.arguments_of)
  local notes
  notes, failure = read_lines(next_line, made, options.expired)
  if not notes then return nil, failure end
  made:finish()
  if made.failure then return nil, made.failure end
  return writer:finish(notes, tail_of(made), extra_schema)
end

--- The arguments of the steps of a direct job, from the job file, where it is the journal's.
local function arguments_from(paths)
  return function(line)
    for _, path in ipairs(paths) do
      local bytes = file.read(path, LARGEST_JOB, { regular = true })
      local job = bytes and text.sha256(bytes) == line.job_sha256 and json.decode(bytes)
      if type(job) == "table" then
        local arguments = {}
        for i, step in ipairs(type(job.steps) == "table" and job.steps or {}) do
          arguments[step.id or "step-" .. i] = secret.clean(step.arguments or step.args, {})
        end
        return arguments
      end
    end
    return {}
  end
end

---Writes the trajectory of a journal to stdout. Returns the exit status.
---@param path string of the journal; "-" is stdin
---@param job_path string where the job may be besides the journal's directory
---@param catalogue table the step types
---@return integer
function trajectory.print(path, job_path, catalogue)
  collectgarbage("incremental", GARBAGE)
  local unread = false
  local ok, failure = convert(path, {
    catalogue = catalogue,
    write = function(...)
      if file.write(1, table.concat { ... } .. "\n", TIMEOUT) then return true end
      unread = true
      return nil, { code = "io_error", message = "its reader stopped reading" }
    end,
    expired = function() return false end,
    arguments_of = arguments_from { (path:match("^.*/") or "") .. "job.json", job_path ~= "-" and job_path or nil },
  })
  if ok then return exit.OK end
  if unread then return exit.because("cannot write the trajectory to stdout: its reader stopped reading", exit.UNWRITABLE) end
  return exit.because(("cannot make a trajectory of the journal %s: %s"):format(path, failure.message), exit.REFUSED)
end

local function write_file(directory, catalogue, temporary, seconds)
  os.remove(temporary)
  local out <close>, failure = file.append(temporary, { empty = true })
  if not out then return nil, failure end
  local until_when = interrupt.now() + seconds
  local ok
  ok, failure = convert(directory .. "journal.jsonl", {
    catalogue = catalogue,
    write = function(...) return out:append { ... } end,
    expired = function() return interrupt.now() > until_when end,
    arguments_of = function() return {} end,
  })
  if not ok then return nil, failure end
  local renamed, message = os.rename(temporary, directory .. NAME)
  return renamed, not renamed and { code = "io_error", message = message } or nil
end

---Writes trajectory.json next to the journal of an agent's job. What fails is logged; the job's outcome is what it is.
---@param run run
---@param seconds number it may take
function trajectory.keep(run, seconds)
  local directory = run.result_directory
  if not directory or run.steps then return end
  local temporary = directory .. "." .. NAME .. ".tmp"
  local ok, failure = write_file(directory, run.catalogue, temporary, seconds)
  if ok then return end
  os.remove(temporary)
  run.log:event("warning", "trajectory.failed", {
    code = failure.code, error = redact(failure.message) .. "; cynode-sba --trajectory makes it from the journal",
  })
end

return trajectory
