-- SPDX-License-Identifier: Apache-2.0
-- The end of a job that could not end by itself (native.ending): this is the program again, with nothing but the journal and the latest
-- result. What the job left running is ended, and the result gets every finished step.

local changes = require "sba.run.undo"
local ending = require "native.ending"
local exit = require "sba.util.exit"
local file = require "native.file"
local finish = require "sba.run.finish"
local identity = require "native.identity"
local interrupt = require "native.interrupt"
local journal = require "sba.run.journal"
local json = require "sba.util.json"
local log = require "sba.util.log"
local on_demand = require "sba.run.on_demand"
local outside = require "sba.run.outside"
local past = require "sba.run.past"
local process = require "native.process"
local record = require "sba.result.record"
local state = require "sba.run.state"
local workspace = require "native.workspace"

local MUCH <const> = 1 << 20 -- bytes of a line
local ENDS <const> = 4 << 20 -- bytes of a result that are read at its beginning and at its end
local GRACE <const> = 1 -- seconds from SIGTERM to SIGKILL; none past the deadline
local AGO <const> = 1.2 -- seconds since the deadline, as far as `finish` is told: it has some for artifacts

local ends <const> = {
  timeout = { "timeout", "the job's time was up, and the runner hung: its watchdog ended it" },
  SIGTERM = { "cancelled", "the job was cancelled by a signal, and the runner hung: its watchdog ended it" },
  SIGINT = { "cancelled", "the job was cancelled by a signal, and the runner hung: its watchdog ended it" },
  memory = { "internal_error", "the runner ran out of memory; a job of this size needs more" },
  crash = { "internal_error", "the runner crashed; this is a bug of the runner, or somebody sent it such a signal" },
}
local statuses <const> = { timeout = exit.TIMEOUT, SIGTERM = 143, SIGINT = 130 }

--- The last place of a text in another.
local function last(bytes, part)
  local found, at = nil, bytes:find(part, 1, true)
  while at do found, at = at, bytes:find(part, at + 1, true) end
  return found
end

--- The fields of the latest result, without its steps. Of a large result only the beginning and the end are read.
local function read_interim(path)
  local handle = io.open(path)
  local size = handle and handle:seek "end" or 0
  if size == 0 then return {} end
  handle:seek "set"
  local head = handle:read(math.min(size, ENDS))
  handle:seek("set", math.max(0, size - ENDS))
  local tail = handle:read "a"
  local steps = head:find(',"steps":[', 1, true)
  local after = last(tail, '],"running_step":{') or last(tail, '],"artifacts":[')
  return steps and after and json.decode_own(head:sub(1, steps - 1) .. tail:sub(after + 1)) or {}
end

--- A run of which nothing is known yet but what accept.keep said.
local function new_run(environment, told)
  local ids = { environment.CYNODE_JOB_ID or "", environment.CYNODE_TASK_ID or "" }
  local run = state {
    settings = { result = told.result, workspace = told.workspace }, environment = environment, record = record.new(ids[1], ids[2]),
    log = log.new { format = told.log_format, environment = environment, terminal = on_demand.terminal },
    past = past.new(), status_url = told.status_url, temporary_artifacts = told.temporary, artifacts_shared = 0,
  }
  run.log:identify(ids[1], ids[2])
  run.outside = outside.new(run)
  return run
end

--- The lines of the journal as util.lines gives them, one at a time: memory may be short.
local function lines_of(book)
  local handle = assert(io.open("/proc/self/fd/" .. book:descriptor()))
  local after = 1
  return function()
    local line, at = handle:read "L", after
    if not line then return nil end
    if #line > MUCH then collectgarbage() end
    local is_whole = line:sub(-1) == "\n"
    after = at + #line
    return after, is_whole and line:sub(1, -2) or line, is_whole, at
  end
end

--- Takes over what the job has done.
local function look_back(run, interim)
  local problem, is_torn = run.past:fold({ strict = true, brief = true }, lines_of(run.lock))
  if problem and not is_torn then error(problem, 0) end
  local fields = read_interim(interim >= 0 and "/proc/self/fd/" .. interim or run.settings.result)
  local result = run.record
  if run.past.job then result:continue(run.past.job.started_wall) end
  for _, name in ipairs { "job_id", "task_id", "confinement", "acceptance", "inference", "final_answer" } do
    result[name] = fields[name] or result[name]
  end
  local todo = fields.todo
  result.todo = todo and { summary = function() return todo end }
  run.log:identify(result.job_id, result.task_id)
end

--- Puts back the files that a step was changing.
local function recover(run)
  local left = run.past.changes
  run.workspace = left and not left.committed and workspace.open(run.settings.workspace) or nil
  if run.workspace then changes.recover(run) end
end

local function say(run, words) run.log:event("error", "watchdog.ended", { error = words }) end

--- What stands is better than a result without steps.
local function give_up(run, problem, reason)
  say(run, "the job's journal cannot be read, so the latest result stays: " .. tostring(problem))
  return statuses[reason] or exit.FAILED
end

---@return integer status
return function()
  local reason, information, book, interim = ending.inherited()
  interrupt.disarm()
  ending.last(statuses[reason] or exit.FAILED)
  process.finish(reason == "timeout" and 0 or GRACE)
  local told = json.decode(information)
  local run = new_run(identity.environment {}, told)
  run.failure = { code = ends[reason][1], message = ends[reason][2] }
  run.artifacts = told.artifacts and workspace.open(told.artifacts)
  if book >= 0 then
    run.lock = file.adopt(book)
    run.record.from = run.lock
    local ok, problem = pcall(look_back, run, interim)
    if not ok and told.result ~= "-" then return give_up(run, problem, reason) end
    run.journal = journal.begin(run.lock, run.past.size, function() end)
    recover(run)
  end
  run.deadline = interrupt.now() - AGO
  local status = finish(run)
  say(run, "the runner could not end the job: it was started again, which wrote the result")
  return status
end
