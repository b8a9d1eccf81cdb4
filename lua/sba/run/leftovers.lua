-- SPDX-License-Identifier: Apache-2.0
-- What a killed run left running. Each run has a word in the environment of its commands, and its journal names that,
-- the runner, and the sessions that its commands began. So the next run in that job directory ends what lives on; in a
-- session container, which has no journal, the next round.

local file = require "native.file"
local json = require "sba.util.json"
local process = require "native.process"
local schema_check = require "sba.util.schema_check"
local worker_report = require "sba.util.worker_report"

local leftovers = {}

local SECONDS <const> = 3 -- until all must be dead
local TAIL <const> = 64 << 10 -- bytes; the last line of most journals fits
local SHORT <const> = 4096 -- bytes; but for the first, the lines that are looked for are shorter
local LARGEST <const> = 64 << 20 -- bytes of the first

local count <const>, words <const> = { type = "integer", minimum = 0 }, { type = "string" }
local schemas <const> = {
  runner = {
    type = "object", required = { "word", "pid" },
    properties = {
      word = words, pid = count, started = count, boot_id = words, pid_namespace = count, temporary = words,
    },
  },
  session = { type = "object", required = { "pid", "started" }, properties = { pid = count, started = count } },
}

local function fits(value, schema)
  local mistakes = select(2, schema_check.check(value, schema, { total = 0, limit = 1 }))
  return #mistakes == 0
end

--- Whether the run ended by itself: then it ended its processes too.
local function is_over(log)
  local size = log:size()
  if size == 0 then return true end
  local length = math.min(size, TAIL)
  local text, last = log:read(size - length, length) or "", ""
  for line in text:gmatch "[^\n]+" do last = line end
  local name = text:sub(-1) == "\n" and last:match '^{"event": ?"([%a.]+)"'
  return name == "job.finished" or name == "job.reported"
end

local apply = {}

function apply.job(marks, event)
  if not fits(event.run, schemas.runner) then return end
  marks.last = event.run
  table.insert(marks.words, event.run.word)
end

--- It has ended what was left before.
apply["job.resumed"] = function(marks, event)
  marks.last, marks.sessions = nil, {}
  apply.job(marks, event)
end

--- One that is older than the runner is none of its commands'.
apply["step.session"] = function(marks, event)
  local since = marks.last and marks.last.started
  if since and fits(event, schemas.session) and event.started >= since then marks.sessions[event.pid] = event.started end
end

--- Of a journal's lines, those that tell of runs, and of sessions that are still there: there may be very many others.
local function is_wanted(line, living)
  if line:find('"run"', 1, true) then return true end
  local pid = line:find('"step.session"', 1, true) and line:match '"pid": ?(%d+)'
  return pid and living[tonumber(pid)]
end

---@class leftovers.marks
---@field words string[] of all runs
---@field sessions table<integer, integer> of the last run's commands: when the process began that has this PID
---@field last? native.process.runner nil: the journal is of an older version

---@param log native.file.log
---@return leftovers.marks
local function read_marks(log)
  local marks, at, living = { words = {}, sessions = {} }, 0, process.sessions()
  while true do
    local head, size = log:line(at, SHORT)
    if not head then return marks end
    if at == 0 and size > SHORT and size <= LARGEST then head = log:read(0, size) or head end
    local event = size <= #head + 1 and is_wanted(head, living) and json.decode_own(head)
    if json.is_object(event) and apply[event.event] then apply[event.event](marks, event) end
    at = at + size
  end
end

local function end_all(run, marked_words, sessions_by_pid)
  local sessions = {}
  for _, word in ipairs(marked_words or {}) do worker_report.remove(word, run.environment) end
  for pid, started in pairs(sessions_by_pid) do sessions[#sessions + 1] = { pid = pid, started = started } end
  local ended, left, first = process.end_leftovers(marked_words, sessions, SECONDS)
  if ended > 0 then
    local message = "a run that was killed had left processes running: %d were ended"
    run:warn("leftovers.ended", message:format(ended), { count = ended })
  end
  if left > 0 then
    local message = "%d processes that a killed run left are still alive, including process %d: they hang in the kernel"
    run:warn("leftovers.alive", message:format(left, first), { count = left, pid = first })
  end
end

---Ends what the run of a journal left, if the journal is locked by us, or its runner is known to be gone.
---@param run run
---@param path string of the journal
---@param is_ours boolean it is locked
---@return "alive"|"gone"|nil life of its runner; nil: it ended by itself, or that is unknown
function leftovers.finish(run, path, is_ours)
  local log <close> = file.append(path, false)
  if not log or is_over(log) then return end
  local marks = read_marks(log)
  local life = marks.last and process.life(marks.last)
  if life == "gone" then
    end_all(run, marks.words, marks.sessions)
  elseif is_ours and not life then -- of another boot or PID namespace, where PIDs mean other processes
    end_all(run, marks.words, {})
  end
  return life
end

---In a session, ends what killed rounds left.
---@param run run
function leftovers.finish_rounds(run)
  if run.runner.pid ~= 1 then end_all(run, nil, {}) end
end

return leftovers
