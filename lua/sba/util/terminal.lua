-- SPDX-License-Identifier: Apache-2.0
-- The log for people: a line for each step, and, where the log follows the output, all of it
-- between them, indented.

local excerpt = require "sba.util.excerpt"
local humanize = require "sba.util.humanize"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local printable = require "sba.util.printable"

---@class terminal: log.view
---@field write fun(bytes: string)
---@field follow? boolean all output is shown
---@field redraws boolean on a terminal, where a line can be drawn again in its place
---@field colour boolean
---@field marks table<string, string> signs, or names in their place
---@field longest_what integer bytes that are shown of what a step does
---@field running? { step: table, began: number, next: number } what runs; next: when a line tells again
---that it does
---@field drawn? boolean such a line stands on the terminal
---@field in_step? boolean a step runs
---@field in_line? boolean the output has begun a line, and not ended it
---@field rest string of the output: half a control sequence, or of a line's end
---@field notes string[] lines for the end
---@field last_error? string of the last step
---@field refused? boolean that the job is refused is said already
---@field job_id? string
---@field final_answer? string
local terminal = { now = interrupt.now }
terminal.__index = terminal
-- Bytes of an output, of which people see the last lines.
terminal.TAIL = 64 * 1024

local LONGEST_MESSAGE <const>, LONGEST_ANSWER <const> = 2048, 64 * 1024 -- bytes
local LONGEST_ID <const>, LONGEST_WHAT <const> = 40, 200 -- bytes
-- Columns of what a step does, and of all beside it: its line is to fit one of the terminal.
local SHORTEST_WHAT <const>, BESIDE_IT <const> = 30, 45
local TAIL_LINES <const> = 20 -- of a failed step's output
local LONGEST_SEQUENCE <const> = 64 -- bytes of a control sequence
local INDENT <const> = "    " -- of output
-- Seconds in which nothing is shown, until a line tells that a step still runs; until the next one; and
-- the same on a terminal, where it is drawn in its place.
local QUIET <const>, AGAIN <const>, REDRAWN <const> = 5, 30, 1
local ERASED <const> = "\r\27[K"
-- Seconds: who asks for so many wants no limit.
local ENDLESS <const> = 1e9

-- On a terminal that shows UTF-8, and elsewhere:
local signs <const> = {
  success = "✓", failure = "✗", timeout = "✗", skipped = "-", more = "…", begun = "▸",
}
local names <const> = {
  success = "ok", failure = "FAILED", timeout = "TIMEOUT", skipped = "-", more = "...", begun = ">",
}
-- As ECMA-48 numbers them: green, red, faint and yellow.
local colours <const> = {
  success = "32", failure = "31", timeout = "31", skipped = "2", warning = "33", error = "31",
}

-- Of the locale's variables the first that is set counts; where none is, most terminals are taken
-- at their best.
local function shows_utf8(environment)
  for _, name in ipairs { "LC_ALL", "LC_CTYPE", "LANG" } do
    local locale = environment[name] or ""
    if locale ~= "" then return locale:lower():find("utf%-?8") ~= nil end
  end
  return true
end

---@param write fun(bytes: string)
---@param columns? integer nil: no terminal
---@param environment table<string, string>
---@param follow? boolean show all output
function terminal.new(write, columns, environment, follow)
  local can_move = columns ~= nil and (environment.TERM or "dumb") ~= "dumb"
  local has_signs = can_move and shows_utf8(environment)
  return setmetatable({
    write = write, follow = follow, rest = "", notes = {}, redraws = can_move,
    longest_what = columns and math.max(columns - BESIDE_IT, SHORTEST_WHAT) or LONGEST_WHAT,
    colour = can_move and (environment.NO_COLOR or "") == "",
    marks = has_signs and signs or names,
  }, terminal)
end

function terminal:identify(job_id) self.job_id = job_id end

function terminal:answer(answer) self.final_answer = answer end

---@param line string for the end, above the last line
function terminal:note(line) self.notes[#self.notes + 1] = line end

-- Writes in the place of the line that tells that it lives.
local function put(self, bytes)
  if self.drawn then bytes = ERASED .. bytes end
  self.drawn = false
  self.write(bytes)
end

local function begin(self, step)
  self.running = { step = step, began = self.now(), next = self.now() + QUIET }
  if self.follow then self:step_line(self.marks.begun, "running", step) end
end

---Tells from time to time that a step, or a question to a model, still runs.
function terminal:tick()
  local running, now = self.running, self.now()
  if not running or now < running.next or self.in_line then return end
  local elapsed = humanize.duration((now - running.began) // 1 * 1000)
  if self.redraws then
    put(self, self:painted("skipped", INDENT .. elapsed))
    self.drawn, running.next = true, now + REDRAWN
  else
    self:step_line(self.marks.begun, "running", running.step, elapsed)
    running.next = now + AGAIN
  end
end

function terminal:painted(kind, text)
  local colour = self.colour and colours[kind]
  return colour and ("\27[%sm%s\27[0m"):format(colour, text) or text
end

local function place(step)
  if not step.step then return step.type end
  local id, kind, words = step.id, step.type, "step " .. step.step
  if step.steps then words = words .. " of " .. step.steps end
  if step.check then
    kind = "check"
  elseif id and id ~= "step-" .. step.step then
    words = words .. "  " .. printable.line(id, LONGEST_ID)
  end
  return words .. "  " .. kind
end

-- "step 3 of 12  test  run_command  make test  1.2 s", after a mark; the third is the step's id, unless
-- it is step-3.
function terminal:step_line(mark, kind, step, elapsed)
  local line, what = { place(step) }, step.what or ""
  if what ~= "" then line[2] = printable.line(what, self.longest_what) end
  line[#line + 1] = elapsed
  self:print(nil, self:painted(kind, mark) .. " " .. table.concat(line, "  "))
end

-- Colours go, and so does what a carriage return overwrites; other control sequences are named.
local function plain(line)
  return printable.line((line:gsub("^.*\r", ""):gsub("\27%[[%d;:]*[mK]", "")))
end

---@param text string UTF-8, without secrets
function terminal:output(text)
  if not self.follow then return end
  text = self.rest .. text
  -- Half a control sequence, or of a line's end, waits for the rest.
  local half = text:find("\27%[?[%d;:]*$", -LONGEST_SEQUENCE) or text:find("\r", -1, true)
  self.rest = half and text:sub(half) or ""
  local parts, whole = {}, text:sub(1, half and half - 1):gsub("\r\n", "\n")
  local anew = self.redraws and ERASED or "\n"
  for _, line, is_whole in excerpt.lines(whole) do
    local begun = self.in_line and "" or INDENT
    if self.in_line and line:find("\r", 1, true) then begun = anew .. INDENT end
    parts[#parts + 1] = begun .. plain(line) .. (is_whole and "\n" or "")
    self.in_line = not is_whole
  end
  if #parts == 0 then return end
  put(self, table.concat(parts))
  -- The output has shown that the step lives: no line needs to say so soon.
  if self.running then self.running.next = self.now() + QUIET end
end

function terminal:end_output()
  if self.rest ~= "" or self.in_line then self:output("\n") end
end

-- A missed part may have been torn where it was coloured.
function terminal:missed(count)
  local start = self.colour and "\27[0m\n" or ""
  local words = "[%s %d parts of the log were left out because they were not read in time]\n"
  return start .. words:format(self.marks.more, count)
end

function terminal:print(kind, line)
  if self.in_line then self:end_output() end
  put(self, self:painted(kind, line) .. "\n")
end

function terminal:message(kind, message)
  self:print(kind, "  " .. printable.line(message, LONGEST_MESSAGE))
end

function terminal:text(text)
  for _, line in excerpt.lines(text) do self:print(nil, INDENT .. printable.line(line)) end
end

function terminal:tail(text)
  local list, more = excerpt.last_lines(text, TAIL_LINES)
  if more then self:print("skipped", INDENT .. self.marks.more) end
  for _, line in ipairs(list) do self:print(nil, INDENT .. plain(line)) end
end

local events = {}

events["job.accepted"] = function(self, job)
  local count = job.steps and humanize.counted(job.steps, "step") or "steps chosen by a model"
  local seconds = job.max_runtime_seconds
  local limit = seconds < ENDLESS and ", at most " .. humanize.duration(seconds * 1000) or ""
  self:print(nil, ("job %s: %s%s"):format(printable.line(self.job_id), count, limit))
end

events["step.started"] = function(self, step)
  self.in_step = true
  begin(self, step)
end

events["step.finished"] = function(self, step)
  self.in_step, self.running = false, nil
  local mark = self.marks[step.status] or self.marks.failure
  local kind, message = step.status, step.error
  if step.tolerated then kind, message = "warning", message and "tolerated: " .. message end
  self:step_line(mark, kind, step, humanize.duration(step.duration_ms))
  if message then self:message(kind, message) end
  self.last_error = step.error
  if step.output_tail and not self.follow then self:tail(step.output_tail) end
end

events["model.request"] = function(self, request)
  -- What a step asks a model is the step's.
  if self.in_step then return end
  begin(self, { type = "model", what = request.model })
end

events["model.response"] = function(self)
  if not self.in_step then self.running = nil end
end

events["job.refused"] = function(self, job)
  self.refused = true
  self:print("failure", "refused: " .. job.failure_code)
  for _, message in ipairs(job.errors or { job.failure_message }) do
    self:message("failure", message)
  end
end

events["job.finished"] = function(self, job)
  self.running = nil
  local code, outcome = job.failure_code, job.status
  if code and code ~= outcome then outcome = outcome .. ": " .. code end
  if not self.refused then
    local duration = humanize.duration(job.duration_ms)
    local steps = humanize.outcomes(job.outcomes, job.tolerated)
    self:print(job.status, ("%s in %s, %s"):format(outcome, duration, steps))
    local message, last = job.failure_message, self.last_error
    local is_shown = message and last and message:sub(-#last) == last -- above, with the step
    if message and not is_shown then self:message(job.status, message) end
  end
  if self.final_answer then self:text(excerpt.of(self.final_answer, LONGEST_ANSWER)) end
  for _, line in ipairs(self.notes) do self:print(nil, printable.line(line)) end
  if job.result then self:print(nil, "result: " .. printable.line(job.result)) end
end

events["job.done_before"] = function(self, job) self:print(nil, job.message) end

-- What stands at the end as a note is no warning.
events["confinement.partial"] = function(self, fields, level)
  for _, gap in ipairs(level == "warning" and fields.partial or {}) do
    if not json.contains(self.notes, gap) then self:print(level, "warning: " .. printable.line(gap)) end
  end
end

events["step.interrupted"] = function(self, step)
  self:print("warning", "warning: " .. printable.line(step.error))
  if step.output_tail then self:tail(step.output_tail) end
end

-- Of other events people see warnings and errors: "warning: report failed: connection refused"
function terminal:event(level, event, fields)
  if events[event] then return events[event](self, fields, level) end
  if level ~= "warning" and level ~= "error" then return end
  local what = event:gsub("%.warning$", ""):gsub("[._]", " ")
  local words = printable.line(tostring(fields.error or fields.message or ""))
  self:print(level, ("%s: %s: %s"):format(level, what, words))
end

return terminal
