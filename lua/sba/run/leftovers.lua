-- SPDX-License-Identifier: Apache-2.0
-- What a killed run left running. Each run has a word in the environment of its commands, and its journal names that,
-- the runner, and the sessions that its commands began. So the next run in that job directory ends what lives on; in a
-- session container, which has no journal, the next round.

local file = require "native.file"
local fold = require "sba.journal.fold"
local process = require "native.process"
local schemas = require "sba.result.events"
local worker_report = require "sba.util.worker_report"

local leftovers = {}

local SECONDS <const> = 3 -- until all must be dead
local PIECE <const> = 64 << 10 -- bytes that are read at once

--- Where the last line begins. That of job.finished has the todo list, which may be long. None has a NUL, but a hole
--- may have a terabyte of them.
local function last_line(log)
  -- From the last line end, if there is one, or the last byte.
  local at, before = log:size() - 1
  repeat
    local start = math.max(0, at - PIECE)
    local piece = log:read(start, at - start) or ""
    -- Where there is none, the pattern alone takes long.
    at, before = start, piece:find("\n", 1, true) and piece:match "^.*()\n"
  until before or at == 0 or piece:find("\0", 1, true)
  return at + (before or 0)
end

--- Whether the run ended by itself: then it ended its processes too.
local function is_over(log)
  if log:size() == 0 then return true end
  -- 64 bytes say which event it is.
  local head, _, is_whole = log:line(last_line(log), 64)
  local name = is_whole and head:match '^{"event": ?"([%a.]+)"'
  return name == "job.finished" or name == "job.reported"
end

--- words: nil: those of all runs that are gone; sessions_by_pid: see journal.history.
local function end_all(run, words, sessions_by_pid)
  local sessions = {}
  for pid, started in pairs(sessions_by_pid) do
    sessions[#sessions + 1] = { pid = pid, started = started }
  end
  local ended, left, first = process.end_leftovers(words, sessions, SECONDS)
  if ended > 0 then
    run:warn("leftovers.ended", "a run that was killed had left processes running; ended: " .. ended, { count = ended })
  end
  if left > 0 then
    local message = "%d processes that a killed run left are still alive, including process %d: "
      .. "they hang in the kernel"
    run:warn("leftovers.alive", message:format(left, first), { count = left, pid = first })
  end
end

---Ends what the run of a journal left, if the journal is locked by us, or its runner is known to be
---gone.
---@param run run
---@param path string of the journal
---@param is_ours boolean it is locked
---@return "alive"|"gone"|nil life of its runner; nil: it ended by itself, or that is unknown
function leftovers.end_run(run, path, is_ours)
  local log <close> = file.append(path, false)
  if not log or is_over(log) then return nil end
  local history = fold.new()
  history:fold({ schemas = schemas, living = process.sessions() }, log)
  local last = history.runs[#history.runs] or {}
  local life = last.word and process.life(last)
  -- Where it is not known, it was another boot or PID namespace, where PIDs mean other processes.
  if life == "gone" or is_ours and not life then
    local words = {}
    for _, runner in ipairs(history.runs) do
      words[#words + 1] = runner.word
      worker_report.remove(runner.word, run.environment)
    end
    end_all(run, words, life and history.sessions or {})
  end
  return life
end

---In a session, ends what killed rounds left.
---@param run run
function leftovers.end_rounds(run)
  if run.runner.pid ~= 1 then end_all(run, nil, {}) end
end

return leftovers
