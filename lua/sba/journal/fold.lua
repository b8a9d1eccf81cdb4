-- SPDX-License-Identifier: Apache-2.0
-- The one fold of a journal's events (events.lua lists them): for --resume, --replay, --report and the end after a
-- crash. It reads the file event by event. In memory are numbers of each step and exchange; the rest is read again when
-- it is asked for.

local events = require "sba.journal.events"
local file = require "native.file"
local humanize = require "sba.util.humanize"
local json = require "sba.util.json"
local json_file = require "sba.util.json_file"
local secret = require "sba.util.secret"
local usage = require "sba.journal.usage"

local mistake_in, outline = events.mistake_in, json_file.outline

---@class journal.history
---@field from native.file.log the journal
---@field size integer bytes of the events that were folded
---@field job? table the first event, with what a later job.changed says
---@field count integer finished steps; of each the next fields have offset and size of its entry, and its status
---@field offsets integer[]
---@field sizes integer[]
---@field statuses string[]
---@field checks table<integer, integer> by step: the criterion that it checks
---@field reports table<integer, integer[]> by step: offset and size of the last step.report
---@field verdicts table<integer, table> by criterion: what its last check found
---@field unfinished table<integer, table> each step.started without an end; accept sets `output`
---@field started? table<integer, { turn: integer, offset: integer, size: integer }> for a report; turn: exchanges before
---@field changes? { index: integer, plan: table, committed?: boolean } of the last step; committed: it succeeded
---@field append? { index: integer, size?: integer } the last step that began to append, and the file's size before
---@field temporary string[] of each run the first name that it gave to a temporary file
---@field agent? { index: integer, session: string } the last session that an agent opened
---@field words any[] of each run the word that its commands' environment has; unchecked
---@field planned table<string, true> temporary names in all plans, as the journal has them
---@field undone? string what undo did, for the model
---@field undo_failed? { index: integer, message: string } what undo could not do
---@field result? table of a job that is over, without steps
---@field failed? integer the step that failed and runs again
---@field resumes { after: integer, why: string }[] why runs ended, and after how many exchanges
---@field exchanges { [1]: integer, [2]: integer }[] offset and size of every model.exchange
---@field used? journal.usage what the exchanges used
---@field answers? journal.usage the same of ask_model steps, also of those that run again
---@field same? integer leading steps that are those of the job file; nil: it has no steps, or nobody asked
---@field was_there? boolean the first that is another one was there before
---@field edited? boolean the job file is another one than the journal's
---@field session? table the last model.session
---@field skills? { found: table[], missing: string[] }
---@field reported? boolean
---@field last? string time of the last event that has one
---@field goes_back? boolean a run was resumed, and no step has begun since
local history = {}
history.__index = history

local TORN <const> = "its last line is incomplete, which happens when the runner is killed"
local EDITED <const> = "; the job was edited since: what it says above is what holds now"

---@return journal.history
function history.new()
  return setmetatable({
    size = 0, count = 0, offsets = {}, sizes = {}, statuses = {}, checks = {}, reports = {}, verdicts = {},
    unfinished = {}, planned = {}, temporary = {}, words = {}, exchanges = {}, resumes = {},
  }, history)
end

-- What a span of the journal holds

local function read(self, span) return json_file.whole(self.from, span) end

---What a check found of its criterion.
---@param criterion? string
---@param entry table its entry
---@param step { arguments?: table } which ran it
---@return table of the result's acceptance
function history.verdict(criterion, entry, step)
  local met, how = entry.status == "success", entry.error
  if met then
    local command = step.arguments and ("`%s`"):format(humanize.step(step)) or "its command"
    how = command .. " ended with exit code 0"
  end
  return { criterion = criterion, met = met, verified_by = "check", evidence = ("%s: %s"):format(entry.id, how) }
end

---@param index integer from 1: what is finished from there on is not taken
function history:forget_entries(index)
  for i = self.count, index, -1 do
    for _, list in ipairs { self.offsets, self.sizes, self.statuses, self.checks, self.reports } do list[i] = nil end
  end
  self.count = math.min(self.count, index - 1)
end

---@param index integer from 1: this step and all after it run again
function history:forget_from(index)
  self:forget_entries(index)
  if self.append and self.append.index >= index then self.append = nil end
  for number in pairs(self.unfinished) do
    if number >= index then self.unfinished[number] = nil end
  end
end

---@param index integer from 1
---@return table? entry whole
---@return native.failure?
function history:entry(index) return read(self, { self.offsets[index], self.sizes[index] }) end

---@param index integer from 1
---@return table? entry without its long members
function history:head(index)
  if index > self.count then return nil end
  return (outline(self.from, self.offsets[index]))
end

---@param index integer from 1
---@return table? report of a worker
function history:report(index)
  local event = self.reports[index] and read(self, self.reports[index])
  return event and secret.clean(event.report, events.schemas["step.report"].properties.report)
end

---@param number integer from 1
---@return table? event a model.exchange
---@return native.failure? both nil: there is none
function history:exchange(number)
  local span, schema = self.exchanges[number], events.schemas["model.exchange"]
  if not span then return nil end
  local event, failure = read(self, span)
  local reason = failure and failure.message or mistake_in(event, schema)
  if not reason then return secret.clean(event, schema) end
  return nil, { code = "environment_invalid", message = ("exchange %d of the journal: %s"):format(number, reason) }
end

---@param index integer from 1
---@return table? event a step.started
function history:start(index)
  local span = self.started and self.started[index]
  return span and (read(self, { span.offset, span.size })) or nil
end

---A list of the job line, which may be long.
---@param name string
---@return table?
function history:job_list(name)
  local left = self.job and self.job.left or {}
  if left[name] then self.job[name], left[name] = read(self, left[name]), nil end
  return self.job and self.job[name]
end

--- The same one by one.
local function elements(self, event, name)
  local span = event.left[name]
  if not span then
    local number = 0
    return function()
      number = number + 1
      return (event[name] or {})[number]
    end
  end
  return json_file.elements(self.from, span)
end

-- Events

local apply = {} -- by event

--- How many leading steps of the job file are those of the journal's job, and whether it had another one after these.
local function same_steps(self, event, rules)
  if event.job_sha256 == rules.job_sha256 then return math.maxinteger end
  local number = 0
  for step in elements(self, event, "steps") do
    local ours = rules.steps[number + 1]
    if not ours or not step or step.id ~= ours.id or step.type ~= ours.type or step.digest ~= rules.digest(ours) then
      return number, true
    end
    number = number + 1
  end
  return number, false
end

local function compare(self, event, rules)
  if not rules.digest then return end
  self.edited = event.job_sha256 ~= rules.job_sha256
  self.same = nil
  if rules.steps then
    self.same, self.was_there = same_steps(self, event, rules)
  elseif event.steps or event.left.steps then
    self.same = 0
  end
end

local function add_run(self, event)
  local run = event.run
  if type(run) ~= "table" then return end
  if type(run.temporary) == "string" then table.insert(self.temporary, run.temporary) end
  table.insert(self.words, run.word)
end

function apply.job(self, event, rules)
  self.job = event
  add_run(self, event)
  compare(self, event, rules)
end

--- The steps after the first difference run again; those before it are as they were.
apply["job.changed"] = function(self, event, rules)
  event.started_wall, event.earlier_artifacts = self.job.started_wall, self.job.earlier_artifacts
  self.job = event
  local last = self.resumes[#self.resumes]
  if last then last.why = last.why .. EDITED end
  if event.kept then self:forget_from(event.kept + 1) end
  compare(self, event, rules)
end

apply["job.resumed"] = function(self, event)
  if event then add_run(self, event) end
  local result = self.result
  local why = result and type(result.failure_message) == "string"
    and ("%s: %s"):format(result.failure_code, result.failure_message)
  table.insert(self.resumes, { after = #self.exchanges, why = why or "the runner was killed" })
  self.result, self.reported = nil, nil
  self.goes_back, self.verdicts = true, {}
end

apply["step.started"] = function(self, event)
  local index = event.index + 1
  self.unfinished[index], self.changes, self.reports[index] = event, nil, nil
  if self.started then
    self.started[index] = { turn = #self.exchanges, offset = event.span[1], size = event.span[2] }
    event.arguments = nil
  end
end

apply["step.changes"] = function(self, event)
  self.changes = { index = event.index + 1, plan = event }
  for _, change in ipairs(event.changes) do
    if change.other then self.planned[change.other] = true end
    if change.aside then self.planned[change.aside] = true end
  end
end

apply["step.report"] = function(self, event) self.reports[event.index + 1] = event.span end
apply["step.agent"] = function(self, event) self.agent = { index = event.index + 1, session = event.session } end
apply["step.append"] = function(self, event) self.append = { index = event.index + 1, size = event.size } end

apply["step.finished"] = function(self, event)
  local entry = event.entry
  local index = entry.index + 1
  if entry.check then
    self.verdicts[entry.check] = history.verdict(nil, entry, self.unfinished[index] or {})
    self.checks[index] = entry.check
  end
  if entry.status ~= "skipped" then -- what an earlier run had begun of a skipped step is still to be undone
    self.unfinished[index], self.append = nil, nil
    if self.changes and entry.status == "success" then self.changes.committed = true else self.changes = nil end
  end
  if entry.type == "ask_model" and json.is_object(entry.result) and type(entry.result.model) == "string" then
    self.answers = usage.add(self.answers, entry.result.model, entry.result)
  end
  self.offsets[index], self.sizes[index] = event.left.entry[1], event.left.entry[2]
  self.statuses[index], self.count = entry.status, index
end

apply["model.session"] = function(self, event) self.session, event.tools = event, event.tools or {} end

apply["model.exchange"] = function(self, event)
  self.used = usage.add(self.used, self.session and self.session.model or "", event.reply)
  self.exchanges[#self.exchanges + 1] = event.span
end

function apply.skills(self, event) self.skills = event end

apply["job.reported"] = function(self) self.reported = true end
apply["job.finished"] = function(self, event) self.result = event.result end
for _, name in ipairs { "model.compacted", "step.interrupted", "step.session", "journal.failed" } do
  apply[name] = function() end
end

-- Why an event cannot stand where it stands

--- After the steps of a direct job come the checks.
local function is_of_job(self, about, rules)
  local step = rules.steps[about.index + 1]
  if about.index < math.min(self.same, #rules.steps) then
    return about.type == step.type and about.id == step.id and not about.check
  end
  return self.edited or about.type == "run_command" and about.check ~= nil
end

local function misplaced(self, about, rules)
  if about.index ~= self.count then return "the step is not the next one" end
  local is_known = rules.steps and self.same
  return is_known and not is_of_job(self, about, rules) and "the job has no such step" or nil
end

local refusals = { ["step.started"] = misplaced }

function refusals.job(self, event, rules)
  if self.job then return "a second job begins" end
  if not event.started_wall then return "it does not say when the job began" end
  if not rules.digest or event.job_sha256 == rules.job_sha256 then return nil end
  local is_its = event.job_id and event.job_id == rules.job_id and event.task_id == rules.task_id
  if not is_its then return "it belongs to another job" end
  local first = elements(self, event, "steps")()
  if not first or first.digest then return nil end
  return "the job was edited, and an older version wrote the journal, which does not say what its steps were"
end

refusals["job.changed"] = function(self, event, rules)
  if not rules.digest or event.job_sha256 == rules.job_sha256 then return nil end
  return (event.job_id ~= self.job.job_id or event.task_id ~= self.job.task_id) and "it belongs to another job"
end

refusals["step.changes"] = function(self, event)
  return (event.index ~= self.count or not self.unfinished[event.index + 1]) and "the step had not begun"
end

for _, name in ipairs { "step.agent", "step.append", "step.report", "step.session" } do
  refusals[name] = refusals["step.changes"]
end

refusals["step.finished"] = function(self, event, rules)
  local entry = event.entry
  local reason = misplaced(self, entry, rules)
  if reason then return reason end
  if not self.unfinished[entry.index + 1] and entry.status ~= "skipped" then return "the step had not begun" end
  local failed = entry.status == "failure" or entry.status == "timeout"
  if failed and not (entry.error and entry.error_code) then return "its error is missing" end
  local module = entry.result ~= nil and not event.is_cut and rules.catalogue and rules.catalogue.get(entry.type)
  return module and mistake_in(entry.result, module.result)
end

refusals["model.exchange"] = function(_, event)
  for _, call in ipairs(event.reply.tool_calls or {}) do
    if call.written and json.kind((json.decode(call.written))) ~= "object" then
      return "what a call's model wrote is not JSON"
    end
  end
end

refusals["job.reported"] = function(self) return not self.result and "the job was not over" end

refusals["job.finished"] = function(self, event, rules)
  local is_known = rules.steps and self.same == math.maxinteger
  return event.result.status == "success" and is_known and self.count < #rules.steps and "steps are missing"
end

refusals["journal.failed"] = function(self) return not self.result and "what was done then could not be written" end

local after_end <const> = { ["job.reported"] = true, ["journal.failed"] = true, ["job.resumed"] = true }

local function untimely(self, name)
  if not self.job and name ~= "job" then return "the journal does not begin with its job" end
  return self.result and not after_end[name] and "the job was over"
end

-- Reading

local mistakes <const> = { invalid_json = true, too_deep = true, incomplete = true } -- of the journal, not of the disk

local complete = {} -- by event: reads what is needed of its long members; returns a failure

complete["step.finished"] = function(self, event)
  if not event.left.entry then return nil end
  local entry, place = outline(self.from, event.left.entry[1])
  if entry == nil then return place end
  event.entry, event.is_cut = entry, next(place.left) ~= nil
  if type(entry) ~= "table" or entry.type ~= "ask_model" or not place.left.result then return nil end
  entry.result, place = outline(self.from, place.left.result[1])
  return entry.result == nil and place or nil
end

complete["model.exchange"] = function(self, event)
  if not event.left.reply then return nil end
  local failure
  event.reply, failure = outline(self.from, event.left.reply[1])
  return event.reply == nil and failure or nil
end

complete["step.started"] = function() end

local function complete_others(self, event, but)
  for name, span in pairs(event.left) do
    if not (but and but[name]) then
      local failure
      event[name], failure = read(self, span)
      if failure then return failure end
    end
  end
end

local long_lists <const> = { steps = true, todo = true } -- as long as the job

function complete.job(self, event) return complete_others(self, event, long_lists) end

complete["job.changed"] = complete.job

--- After a resume, a step that begins again takes the place of what was there.
local function go_back(self, event)
  local step = event.event == "step.started" and event or event.event == "step.finished" and event.entry
  if not step or not self.goes_back then return end
  if step.index < self.count then
    self:forget_entries(step.index + 1)
    self.unfinished = {}
  end
  self.goes_back = nil
end

--- Returns why it cannot.
local function take(self, event, rules)
  local name = event.event
  local failure = (complete[name] or complete_others)(self, event)
  if failure then return failure.message end
  if rules.script and rules.job_sha256 and name == "job" and event.job_sha256 ~= rules.job_sha256 then
    return "it belongs to another job"
  end
  local reason = rules.strict and untimely(self, name) or mistake_in(event, rules.schemas[name])
  if reason then return reason end
  self.last = event.at or self.last
  go_back(self, event)
  reason = rules.strict and refusals[name] and refusals[name](self, event, rules)
  if reason then return reason end
  apply[name](self, event, rules)
end

--- The next event, with its place; nil and a failure.
local function next_event(self, at, rules)
  local event, place = outline(self.from, at, "entry")
  if event == nil then return nil, place end
  if not json.is_object(event) or rules.strict and not apply[event.event] then
    return nil, { code = "invalid_json", message = "it is not an event of a journal" }
  end
  event.left, event.span = place.left, { place.offset, place.size }
  if type(event.at) ~= "string" then event.at = nil end
  return event
end

---@class journal.rules
---@field schemas table<string, table> of events
---@field strict? boolean each event must be able to stand where it stands
---@field script? boolean with lines that are no events
---@field job_sha256? string of the job file
---@field job_id? string
---@field task_id? string
---@field digest? fun(step: table): string of its arguments; nil: the job file is not to be compared
---@field steps? table[] of a direct job
---@field catalogue? table the step types

---@param rules journal.rules
---@param log native.file.log
---@return string? problem why the rest is left out
---@return boolean|"unread"|nil is_torn only the last line has no end; "unread": it could not be read
function history:fold(rules, log)
  self.from = log
  local number = 0
  while true do
    local event, failure = next_event(self, self.size, rules)
    if not event and failure.code == "end" then return nil end
    if not event and failure.code == "incomplete" and not rules.script then return TORN, true end
    number = number + 1
    local reason = failure and failure.message or apply[event.event] and take(self, event, rules)
    if reason then return ("line %d: %s"):format(number, reason), failure ~= nil and not mistakes[failure.code] and "unread" end
    self.size = event.span[1] + event.span[2]
  end
end

-- Whose journal it is

local function unusable(message, is_unread)
  return nil, { code = is_unread and "io_error" or "invalid_journal", message = message }
end

local function is_done(self, index)
  return self.statuses[index] == "success" or json.table_of(self:head(index)).tolerated == true
end

--- Checks run again: what they check may have changed.
local function keep_successes(self, steps)
  local most = math.min(#steps, self.same)
  for index = 1, self.count do
    if index > most or not is_done(self, index) then
      local runs_again = index <= most and self.statuses[index] ~= "skipped"
      self.failed = runs_again and index or nil
      return self:forget_entries(index)
    end
  end
end

--- At most ends of jobs: their beginning could not be written.
local function has_no_job(log)
  local at = 0
  while true do
    local event, place = outline(log, at, "entry")
    if event == nil then return place.code == "end" or place.code == "incomplete" end
    local name = json.is_object(event) and event.event
    if name ~= "job.finished" and name ~= "job.reported" then return false end
    at = place.offset + place.size
  end
end

---@param log native.file.log what an earlier run left
---@param path string its name
---@param rules journal.rules
---@return journal.history?, native.failure? both nil: there is nothing to go on from
function history.resume(log, path, rules)
  local self = history.new()
  rules.strict = true
  if has_no_job(log) then return nil end
  local problem, is_torn = self:fold(rules, log)
  if problem and is_torn ~= true then
    local message = "the journal %s cannot be used, %s; without --resume the job starts anew"
    return unusable(message:format(path, problem), is_torn)
  end
  if not self.job then return nil end
  if self.result and self.result.status == "success" and not self.edited then return self end
  apply["job.resumed"](self)
  if self.edited then self.resumes[#self.resumes].why = self.resumes[#self.resumes].why .. EDITED end
  if not self.same then return self end
  if rules.steps then
    keep_successes(self, rules.steps)
    if self.edited then self:forget_from(math.min(self.same, #rules.steps) + 1) end
  else
    self:forget_from(1) -- it was a direct job, and is an agent's now
  end
  return self
end

---@param path string of a journal, or of a script: lines of model.exchange with at least a reply
---@param job_sha256 string
---@param schemas table<string, table> of events
---@return journal.history?, native.failure?
function history.recording(path, job_sha256, schemas)
  local log <close>, failure = json_file.open(path)
  if not log then return nil, failure end
  local self = history.new()
  local problem = self:fold({ schemas = schemas, script = true, job_sha256 = job_sha256 }, log)
  if problem then return unusable(("the recording %s, %s"):format(path, problem)) end
  self.from = assert(file.memory()) -- the file may be the journal of this job, which begins anew
  self.from:append({ 0, self.size, from = log }, true)
  return self
end

return history
