-- SPDX-License-Identifier: Apache-2.0
-- Folds the events of a journal (events.lua lists them), for --resume, --replay, --report and the end by exec (crash_exit.lua).

local events = require "sba.journal.events"
local file = require "native.file"
local journal = require "sba.journal.file"
local json = require "sba.util.json"
local lines = require "sba.util.excerpt".lines
local mistake_in = events.mistake_in
local secret = require "sba.util.secret"

---@class journal.history
---@field size integer bytes of the lines that were folded
---@field job? table the first event
---@field entries { part: integer|string, size?: integer, entry: table }[] of finished steps; part, size: see record:add_step
---@field unfinished table<integer, table> each step.started without an end; accept sets `output`
---@field started? table<integer, table> each step.started, for a report; `turn`: after how many exchanges
---@field changes? { index: integer, plan: table, committed?: boolean } of the last step; committed: it succeeded
---@field append? { index: integer, size?: integer } the last step that began to append, and the file's size before
---@field planned table<string, true> temporary names in all plans, as the journal has them
---@field undone? string what undo did, for the model
---@field undo_failed? { index: integer, message: string } what undo could not do
---@field result? table of a job that is over, without steps
---@field failed? integer the step that failed and runs again
---@field resumes { after: integer, why: string }[] why runs ended, and after how many exchanges
---@field exchanges table[] every model.exchange, see schemas
---@field model_answers table[] results of all ask_model steps, also of those that run again
---@field session? table the last model.session
---@field skills? { found: table[], missing: string[] }
---@field reported? boolean
---@field last? string time of the last event that has one
local history = {}
history.__index = history

local LIMIT <const> = 1 << 40 -- bytes: any journal that a run could write
local LONGEST_HEAD <const> = 4096 -- bytes of a line that hold index, check and status

---@return journal.history
function history.new()
  return setmetatable({ size = 0, entries = {}, unfinished = {}, planned = {}, exchanges = {}, resumes = {}, model_answers = {} }, history)
end

local function forget_from(self, index)
  for i = #self.entries, index, -1 do self.entries[i] = nil end
end

local apply = {} -- by event

function apply.job(self, event) self.job = event end

apply["job.resumed"] = function(self)
  local result = self.result
  local why = result and type(result.failure_message) == "string" and ("%s: %s"):format(result.failure_code, result.failure_message)
  table.insert(self.resumes, { after = #self.exchanges, why = why or "the runner was killed" })
  self.result, self.reported, self.goes_back = nil, nil, true
end

apply["step.started"] = function(self, event)
  local index = event.index + 1
  self.unfinished[index], self.changes = event, nil
  if self.started then self.started[index], event.turn = event, #self.exchanges end
end

apply["step.changes"] = function(self, event)
  self.changes = { index = event.index + 1, plan = event }
  for _, change in ipairs(event.changes) do
    if change.other then self.planned[change.other] = true end
    if change.aside then self.planned[change.aside] = true end
  end
end

apply["step.append"] = function(self, event) self.append = { index = event.index + 1, size = event.size } end

--- The entry's span in the journal, or its text where more follows in its line.
local function part_of(event, size, at)
  for name in pairs(event) do
    if name ~= "event" and name ~= "entry" then return json.encode(event.entry) end
  end
  return at - 1 + #journal.ENTRY_PREFIX, size - #journal.ENTRY_PREFIX - 1
end

apply["step.finished"] = function(self, event, size, at)
  local entry = event.entry
  local index = entry.index + 1
  if entry.status ~= "skipped" then -- what an earlier run had begun of a skipped step is still to be undone
    self.unfinished[index], self.append = nil, nil
    if self.changes and entry.status == "success" then self.changes.committed = true else self.changes = nil end
  end
  if entry.type == "ask_model" and entry.result then table.insert(self.model_answers, entry.result) end
  local part, length = part_of(event, size, at)
  self.entries[index] = { part = part, size = length, entry = entry }
end

apply["model.session"] = function(self, event) self.session, event.tools = event, event.tools or {} end

apply["model.exchange"] = function(self, event)
  secret.clean(event, events.schemas["model.exchange"])
  table.insert(self.exchanges, event)
end

function apply.skills(self, event) self.skills = event end

apply["job.reported"] = function(self) self.reported = true end
apply["job.finished"] = function(self, event) self.result = event.result end
for _, name in ipairs { "model.compacted", "step.interrupted", "step.session", "journal.failed" } do
  apply[name] = function() end
end

--- After the steps of a direct job come the checks.
local function is_of_job(about, rules)
  local step = rules.steps[about.index + 1]
  if step then return about.type == step.type and about.id == step.id and not about.check end
  return about.type == "run_command" and about.check == rules.checks[about.index + 1 - #rules.steps]
end

local function misplaced(self, about, rules)
  if about.index ~= #self.entries then return "the step is not the next one" end
  return rules.steps and not is_of_job(about, rules) and "the job has no such step" or nil
end

local refusals = { ["step.started"] = misplaced } -- why an event cannot stand there

function refusals.job(self, event)
  return self.job and "a second job begins" or not event.started_wall and "it does not say when the job began"
end

refusals["step.changes"] = function(self, event)
  return (event.index ~= #self.entries or not self.unfinished[event.index + 1]) and "the step had not begun"
end

refusals["step.append"], refusals["step.session"] = refusals["step.changes"], refusals["step.changes"]

refusals["step.finished"] = function(self, event, rules)
  local entry = event.entry
  local reason = misplaced(self, entry, rules)
  if reason then return reason end
  if not self.unfinished[entry.index + 1] and entry.status ~= "skipped" then return "the step had not begun" end
  if rules.brief then return nil end
  local failed = entry.status == "failure" or entry.status == "timeout"
  if failed and not (entry.error and entry.error_code) then return "its error is missing" end
  local module = entry.result ~= nil and rules.catalogue and rules.catalogue.get(entry.type)
  return module and mistake_in(entry.result, module.result)
end

refusals["model.exchange"] = function(_, event)
  for _, call in ipairs(event.reply.tool_calls or {}) do
    if call.written and json.kind((json.decode(call.written))) ~= "object" then return "what a call's model wrote is not JSON" end
  end
end

refusals["job.reported"] = function(self) return not self.result and "the job was not over" end

refusals["job.finished"] = function(self, event, rules)
  return event.result.status == "success" and rules.steps and #self.entries < #rules.steps and "steps are missing"
end

refusals["journal.failed"] = function(self) return not self.result and "what was done then could not be written" end

--- Decodes nothing: memory may be short, and a report reads the result besides.
local function brief(text)
  if text:sub(1, #journal.ENTRY_PREFIX) ~= journal.ENTRY_PREFIX then return nil end
  local head = text:sub(#journal.ENTRY_PREFIX + 1, LONGEST_HEAD)
  local index, status, check = head:match '^{"index":(%d+),', head:match ',"status":"(%a+)"', head:match ',"check":(%d+)'
  if not index or not status then return nil end
  return { event = "step.finished", entry = { index = tonumber(index), status = status, check = tonumber(check) } }
end

local function untimely(self, event)
  if not self.job and event.event ~= "job" then return "the journal does not begin with its job" end
  local follows = not self.result or event.event == "job.reported" or event.event == "journal.failed"
    or event.event == "job.resumed" and self.result.status ~= "success"
  return not follows and "the job was over"
end

--- Returns why it cannot.
local function fold_line(self, text, rules, at)
  local short = rules.brief and brief(text)
  local event, failure = short, nil
  if not event then event, failure = json.decode_own(text) end
  if failure then return failure.message end
  if type(event) ~= "table" or rules.strict and not apply[event.event] then return "it is not an event of a journal" end
  local name = event.event
  if not apply[name] then return nil end
  if type(event.at) ~= "string" then event.at = nil end
  if rules.job_sha256 and name == "job" and event.job_sha256 ~= rules.job_sha256 then return "it belongs to another job" end
  local reason = rules.strict and untimely(self, event) or not short and mistake_in(event, rules.schemas[name])
  if reason then return reason end
  self.last = event.at or self.last
  local step = name == "step.started" and event or name == "step.finished" and event.entry
  if step and self.goes_back then
    if step.index < #self.entries then
      forget_from(self, step.index + 1)
      self.unfinished = {}
    end
    self.goes_back = nil
  end
  reason = rules.strict and refusals[name] and refusals[name](self, event, rules)
  if reason then return reason end
  apply[name](self, event, #text, at)
end

---@class journal.rules
---@field schemas table<string, table> of events
---@field strict? boolean each event must be able to stand where it stands
---@field script? boolean with blank lines, and a last line without its end
---@field brief? boolean of finished steps only index, status and check
---@field job_sha256? string of the job that it must belong to
---@field steps? table[] of a direct job
---@field checks? integer[] criteria that have one
---@field catalogue? table the step types

---@param rules journal.rules
---@param ... any an iterator as excerpt.lines gives
---@return string? problem why the rest is left out
---@return boolean? is_torn only the last line has no end
function history:fold(rules, ...)
  local number = 0
  for after, text, is_whole, at in ... do
    number = number + 1
    if not rules.script and not is_whole then return "its last line is incomplete, which happens when the runner is killed", true end
    local reason = not (rules.script and text == "") and fold_line(self, text, rules, at)
    if reason then return ("line %d: %s"):format(number, reason) end
    self.size = after - 1
  end
end

local function invalid(message) return nil, { code = "invalid_journal", message = message } end

--- Checks run again: what they check may have changed.
local function keep_successes(self, steps)
  for index, old in ipairs(self.entries) do
    if index > #steps or old.entry.status ~= "success" then
      self.failed = index <= #steps and old.entry.status ~= "skipped" and index or nil
      return forget_from(self, index)
    end
  end
end

---@param path string of what an earlier run left
---@param rules journal.rules
---@return journal.history?, native.failure? both nil: there is nothing to go on from
function history.resume(path, rules)
  local bytes, failure = file.read(path, LIMIT)
  if not bytes then return nil, failure.code ~= "not_found" and failure or nil end
  local self = history.new()
  rules.strict = true
  local problem, is_torn = self:fold(rules, lines(bytes))
  if problem and not is_torn then
    return invalid(("the journal %s cannot be used, %s; without --resume the job starts anew"):format(path, problem))
  end
  if not self.job then return nil end
  if not self.result or self.result.status ~= "success" then
    apply["job.resumed"](self)
    if rules.steps then keep_successes(self, rules.steps) end
  end
  return self
end

---@param path string of a journal, or of a script: lines of model.exchange with at least a reply
---@param job_sha256 string
---@param schemas table<string, table> of events
---@return journal.history?, native.failure?
function history.recording(path, job_sha256, schemas)
  local bytes, failure = file.read(path, LIMIT)
  if not bytes then return nil, failure end
  local self = history.new()
  local problem = self:fold({ schemas = schemas, script = true, job_sha256 = job_sha256 }, lines(bytes))
  if problem then return invalid(("the recording %s, %s"):format(path, problem)) end
  return self
end

return history
