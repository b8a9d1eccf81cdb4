-- SPDX-License-Identifier: Apache-2.0
-- The one fold of a journal's events (events.lua lists them): for --resume, --replay, --report and
-- the end after a crash. It reads the file event by event. In memory are numbers of each step and
-- exchange; the rest is read again when it is asked for.
--
-- An event is read as far as it is needed (`complete`), must hold what its schema says, must be able
-- to stand where it stands (`refusals`), and then changes what is known (`apply`). A span is an
-- offset and a size in the file. Indices count from 1 here, and from 0 in events.

local events = require "sba.journal.events"
local digest = require "sba.journal.file".digest
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
---@field count integer finished steps
---@field offsets integer[] of their entries
---@field sizes integer[]
---@field statuses string[]
---@field durations integer[] milliseconds
---@field checks table<integer, integer> by step: the criterion that it checks
---@field reports table<integer, integer[]> by step: offset and size of the last step.report
---@field verdicts table<integer, table> by criterion: what its last check found
---@field unfinished table<integer, table> each step.started without an end; accept sets `output`
---@field started? table<integer, { turn: integer, span: integer[] }> for a report, which sets it;
---turn: exchanges before the step
---@field changes? table the step.changes of the last step; committed: that has succeeded
---@field append? { index: integer, size?: integer } the last step.append
---@field agent? { index: integer, session: string } the last step.agent
---@field runs table[] a native.process.runner of each run, empty in journals of older versions
---@field sessions table<integer, integer> of the last run's commands, if the rules ask for them: when
---the process began that has this PID
---@field planned table<string, true> temporary names in all plans, as the journal has them
---@field undone? string what undo did, for the model
---@field undo_failed? { index: integer, message: string } what undo could not do
---@field result? table of a job that is over, without steps
---@field failed? integer the step that failed and runs again
---@field resumes { after: integer, why: string }[] why runs ended, and after how many exchanges
---@field exchanges { [1]: integer, [2]: integer }[] offset and size of every model.exchange
---@field tool_lists table<integer, integer[]> by exchange: offset and size of the model.tools before it
---@field used? journal.usage what the exchanges used
---@field answers? journal.usage the same of ask_model steps, also of those that run again
---@field same? integer leading steps that are those of the job file; nil: it has no steps, or
---nobody asked
---@field was_there? boolean the first that is another one was there before
---@field edited? boolean the job file is another one than the journal's
---@field session? table the last model.session
---@field skills? { found: table[], missing: string[] }
---@field reported? boolean
---@field last? string time of the last event that has one
---@field goes_back? boolean a run was resumed, and no step has begun since
local history = {}
history.__index = history

local SHORT <const> = 4096 -- bytes of a line
local TORN <const> = "its last line is incomplete, which happens when the runner is killed"
local EDITED <const> = "; the job was edited since: what it says above is what holds now"

---@return journal.history
function history.new()
  return setmetatable({
    size = 0, count = 0, offsets = {}, sizes = {}, statuses = {}, durations = {}, checks = {}, reports = {},
    verdicts = {}, unfinished = {}, planned = {}, runs = {}, sessions = {},
    exchanges = {}, resumes = {}, tool_lists = {},
  }, history)
end

---What a check found of its criterion.
---@param criterion? string
---@param entry table its entry
---@param step { arguments?: table } which ran it
---@return table of the result's acceptance
function history.verdict(criterion, entry, step)
  local met, how = entry.status == "success", entry.error
  if met then
    -- In a journal that somebody edited, they may be of any shape.
    local ok, command = pcall(humanize.step, step)
    how = (ok and "`" .. command .. "`" or "its command") .. " ended with exit code 0"
  end
  local evidence = ("%s: %s"):format(entry.id, how)
  return { criterion = criterion, met = met, verified_by = "check", evidence = evidence }
end

---@param index integer what is finished from there on is not taken
function history:forget_entries(index)
  for _, list in ipairs { self.offsets, self.sizes, self.statuses, self.durations, self.checks, self.reports } do
    for i = self.count, index, -1 do list[i] = nil end
  end
  self.count = math.min(self.count, index - 1)
end

---@param index integer this step and all after it run again
function history:forget_from(index)
  self:forget_entries(index)
  if self.append and self.append.index + 1 >= index then self.append = nil end
  for number in pairs(self.unfinished) do
    if number >= index then self.unfinished[number] = nil end
  end
end

-- What a span of the journal holds

local function read(self, span) return json_file.whole(self.from, span) end

---@param index integer
---@return table? entry whole
---@return native.failure?
function history:entry(index) return read(self, { self.offsets[index], self.sizes[index] }) end

---@param index integer
---@return table? entry without its long members
function history:head(index)
  if index > self.count then return nil end
  return (outline(self.from, self.offsets[index]))
end

---@param index integer
---@return table? report of a worker
function history:report(index)
  local span = self.reports[index]
  local event = span and read(self, span)
  return event and secret.clean(event.report, events.schemas["step.report"].properties.report)
end

local function event_of_agent(self, span, name, number)
  local schema = events.schemas[name]
  if not span then return nil end
  local event, failure = read(self, span)
  local reason = failure and failure.message or mistake_in(event, schema)
  if not reason then return secret.clean(event, schema) end
  local message = ("exchange %d of the journal: %s"):format(number, reason)
  return nil, { code = "environment_invalid", message = message }
end

---@param number integer
---@return table? event a model.exchange
---@return native.failure? both nil: there is none
function history:exchange(number)
  return event_of_agent(self, self.exchanges[number], "model.exchange", number)
end

---@param number integer of an exchange, which need not be there
---@return table? event the model.tools before it
---@return native.failure? both nil: the tools were as before
function history:tools(number) return event_of_agent(self, self.tool_lists[number], "model.tools", number) end

---@param index integer
---@return table? event a step.started
function history:start(index)
  local start = self.started and self.started[index]
  return start and (read(self, start.span)) or nil
end

---A list of the job's line, which may be long.
---@param name "steps"|"todo"
---@return table?
function history:job_list(name)
  local span = self.job.left[name]
  if span then return (read(self, span)) end
  return self.job[name]
end

--- The steps of the job's line one by one: there may be very many, and people edit journals.
local function each_step(self, job)
  local steps, number = json.table_of(job.steps), 0
  local next_step = job.left.steps and json_file.elements(self.from, job.left.steps) or function()
    number = number + 1
    return steps[number]
  end
  return function()
    local step = next_step()
    if step ~= nil then return json.table_of(step) end
  end
end

-- Events

local apply = {} -- by event

--- How many leading steps of the job file are those of the journal's job, and whether that had
--- another one after these.
local function same_steps(self, event, job_file)
  if event.job_sha256 == job_file.sha256 then return math.maxinteger, false end
  local number = 0
  for step in each_step(self, event) do
    local ours = job_file.steps[number + 1]
    local is_same = ours and step.id == ours.id and step.type == ours.type
    if not is_same or step.digest ~= digest(ours) then return number, true end
    number = number + 1
  end
  return number, false
end

local function compare(self, event, job_file)
  if not job_file then return end
  self.edited = event.job_sha256 ~= job_file.sha256
  self.same = nil
  if job_file.steps then
    self.same, self.was_there = same_steps(self, event, job_file)
  elseif event.steps or event.left.steps then
    self.same = 0
  end
end

function apply.job(self, event, rules)
  self.job = event
  table.insert(self.runs, event.run or {})
  compare(self, event, rules.job_file)
end

--- The steps after the first difference run again; those before it are as they were.
apply["job.changed"] = function(self, event, rules)
  event.started_wall = self.job.started_wall
  event.earlier_artifacts = self.job.earlier_artifacts
  self.job = event
  local last = self.resumes[#self.resumes]
  if last then last.why = last.why .. EDITED end
  if event.kept then self:forget_from(event.kept + 1) end
  compare(self, event, rules.job_file)
end

local function go_on(self)
  local result, why = self.result or {}, "the runner was killed"
  if type(result.failure_message) == "string" then
    why = ("%s: %s"):format(result.failure_code, result.failure_message)
  end
  table.insert(self.resumes, { after = #self.exchanges, why = why })
  self.result, self.reported = nil, nil
  self.verdicts = {}
  self.goes_back = true
end

apply["job.resumed"] = function(self, event)
  table.insert(self.runs, event.run or {})
  self.sessions = {} -- that run has ended what was left
  go_on(self)
end

apply["step.started"] = function(self, event)
  local index = event.index + 1
  self.unfinished[index] = event
  self.changes, self.reports[index] = nil, nil
  if self.started then
    self.started[index] = { turn = #self.exchanges, span = event.span }
    event.arguments = nil
  end
end

apply["step.changes"] = function(self, event)
  self.changes = event
  for _, change in ipairs(event.changes) do
    if change.other then self.planned[change.other] = true end
    if change.aside then self.planned[change.aside] = true end
  end
end

apply["step.report"] = function(self, event) self.reports[event.index + 1] = event.span end

--- What had begun of the step is over. Of a skipped one an earlier run may have begun something,
--- which is still to be undone.
local function end_step(self, index, status)
  if status == "skipped" then return end
  self.unfinished[index], self.append = nil, nil
  if status ~= "success" then self.changes = nil end
  if self.changes then self.changes.committed = true end
end

apply["step.finished"] = function(self, event)
  local entry, span = event.entry, event.left.entry
  local index, result = entry.index + 1, json.table_of(entry.result)
  if entry.check then
    self.verdicts[entry.check] = history.verdict(nil, entry, self.unfinished[index] or {})
    self.checks[index] = entry.check
  end
  end_step(self, index, entry.status)
  if entry.type == "ask_model" and type(result.model) == "string" then
    self.answers = usage.add(self.answers, result.model, result)
  end
  self.offsets[index], self.sizes[index] = span[1], span[2]
  self.statuses[index], self.durations[index] = entry.status, entry.duration_ms
  self.count = index
end

apply["model.session"] = function(self, event) self.session, event.tools = event, event.tools or {} end

apply["model.tools"] = function(self, event) self.tool_lists[#self.exchanges + 1] = event.span end

apply["model.exchange"] = function(self, event)
  local model = self.session and self.session.model or ""
  self.used = usage.add(self.used, model, event.reply)
  self.exchanges[#self.exchanges + 1] = event.span
end

function apply.skills(self, event) self.skills = event end

apply["step.agent"] = function(self, event) self.agent = event end
apply["step.append"] = function(self, event) self.append = event end
apply["job.reported"] = function(self) self.reported = true end
apply["job.finished"] = function(self, event) self.result = event.result end
for _, name in ipairs { "model.compacted", "step.interrupted", "journal.failed" } do
  apply[name] = function() end
end

--- One that is older than its runner is none of its commands'.
apply["step.session"] = function(self, event, rules)
  local since = self.runs[#self.runs] and self.runs[#self.runs].started
  local is_wanted = rules.living and rules.living[event.pid]
  if is_wanted and since and event.started >= since then self.sessions[event.pid] = event.started end
end

-- Why an event cannot stand where it stands

--- After the steps of a direct job come the checks.
local function is_of_job(self, about, steps)
  if about.index >= math.min(self.same, #steps) then
    return self.edited or about.type == "run_command" and about.check ~= nil
  end
  local step = steps[about.index + 1]
  return about.type == step.type and about.id == step.id and not about.check
end

local function misplaced(self, about, rules)
  if about.index ~= self.count then return "the step is not the next one" end
  local steps = rules.job_file and rules.job_file.steps
  local is_known = steps and self.same
  return is_known and not is_of_job(self, about, steps) and "the job has no such step"
end

-- By event: why it cannot stand where it stands, or nothing.
local refusals = { ["step.started"] = misplaced }

local function is_other_job(event, other)
  return event.job_id ~= other.job_id or event.task_id ~= other.task_id
end

function refusals.job(self, event, rules)
  local job_file = rules.job_file
  if self.job then return "a second job begins" end
  if not event.started_wall then return "it does not say when the job began" end
  if not job_file or event.job_sha256 == job_file.sha256 then return nil end
  if not event.job_id or is_other_job(event, job_file) then return "it belongs to another job" end
  local first = each_step(self, event)()
  if first and not first.digest then
    return "the job was edited, and an older version wrote the journal, which does not say what its steps were"
  end
end

refusals["job.changed"] = function(self, event, rules)
  local is_edited = rules.job_file and event.job_sha256 ~= rules.job_file.sha256
  return is_edited and is_other_job(event, self.job) and "it belongs to another job"
end

refusals["step.changes"] = function(self, event)
  local runs = event.index == self.count and self.unfinished[event.index + 1]
  return not runs and "the step had not begun"
end

for _, name in ipairs { "step.agent", "step.append", "step.report", "step.session" } do
  refusals[name] = refusals["step.changes"]
end

refusals["step.finished"] = function(self, event, rules)
  local entry = event.entry
  local reason = misplaced(self, entry, rules)
  if reason then return reason end
  local has_begun = self.unfinished[entry.index + 1] or entry.status == "skipped"
  if not has_begun then return "the step had not begun" end
  local failed = entry.status == "failure" or entry.status == "timeout"
  if failed and not (entry.error and entry.error_code) then return "its error is missing" end
  local is_whole = entry.result ~= nil and next(event.left_of_entry) == nil
  local module = is_whole and rules.catalogue and rules.catalogue.get(entry.type)
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
  local steps = self.same == math.maxinteger and rules.job_file.steps
  local is_short = steps and self.count < #steps
  return is_short and event.result.status == "success" and "steps are missing"
end

refusals["journal.failed"] = function(self)
  return not self.result and "what was done then could not be written"
end

local after_end <const> = { ["job.reported"] = true, ["journal.failed"] = true, ["job.resumed"] = true }

local function untimely(self, name)
  if not self.job and name ~= "job" then return "the journal does not begin with its job" end
  return self.result and not after_end[name] and "the job was over"
end

-- Reading

-- Of the journal, not of the disk.
local mistakes <const> = { invalid_json = true, too_deep = true, incomplete = true }

-- Members that may be as long as the job, and are read when they are asked for.
local unneeded <const> = { steps = true, todo = true, arguments = true, messages = true }

--- Reads what is needed of an event's long members. Returns a failure.
local function complete(self, event)
  for name, span in pairs(event.left) do
    local value, extent
    if name == "entry" or name == "reply" then
      value, extent = outline(self.from, span[1])
    elseif not unneeded[name] then
      value, extent = read(self, span)
    end
    if extent and value == nil then return extent end
    event[name] = value
    if name == "entry" then event.left_of_entry = extent.left end
  end
  local result = event.left_of_entry and event.left_of_entry.result
  if not result or json.table_of(event.entry).type ~= "ask_model" then return nil end
  local failure
  event.entry.result, failure = outline(self.from, result[1]) -- it says what was used
  return event.entry.result == nil and failure or nil
end

--- After a resume, a step that begins again takes the place of what was there.
local function go_back(self, event)
  local name, index = event.event, event.index
  if name ~= "step.started" and name ~= "step.finished" then return end
  if name == "step.finished" then index = event.entry.index end
  if self.goes_back and index < self.count then
    self:forget_entries(index + 1)
    self.unfinished = {}
  end
  self.goes_back = nil
end

local ends <const> = { ["job.finished"] = true, ["job.reported"] = true }

--- Returns why it cannot. Of a job whose beginning could not be written there may be an end.
local function take(self, event, rules)
  local name = event.event
  if not self.job and ends[name] then return nil end
  local failure = complete(self, event)
  if failure then return failure.message end
  local wanted = name == "job" and rules.job_sha256
  if wanted and event.job_sha256 ~= wanted then return "it belongs to another job" end
  local reason = rules.strict and untimely(self, name) or mistake_in(event, rules.schemas[name])
  if reason then return reason end
  self.last = event.at or self.last
  go_back(self, event)
  reason = rules.strict and refusals[name] and refusals[name](self, event, rules)
  if reason then return reason end
  apply[name](self, event, rules)
end

--- The next event, with its extent; nil and a failure.
local function next_event(self, at, rules)
  local event, extent = outline(self.from, at, "entry")
  if event == nil then return nil, extent end
  if not json.is_object(event) or rules.strict and not apply[event.event] then
    return nil, { code = "invalid_json", message = "it is not an event of a journal" }
  end
  event.left, event.span = extent.left, { extent.offset, extent.size }
  if type(event.at) ~= "string" then event.at = nil end
  return event
end

---@class journal.rules
---@field schemas table<string, table> of events
---@field strict? boolean each event must be able to stand where it stands
---@field script? boolean with lines that are no events
---@field job_sha256? string of the job that a recording must be of
---@field job_file? journal.job_file with which the journal's job is compared
---@field catalogue? table the step types: results must be as they say
---@field living? table<integer, true> of which sessions the history is to tell; of steps it need not

---@class journal.job_file
---@field sha256 string
---@field job_id string
---@field task_id string
---@field steps? table[] of a direct job

--- Of the lines that tell of runs and sessions only the first is long.
local function pass_long_lines(self)
  local head, size
  repeat
    head, size = self.from:line(self.size, 0)
    -- A line of one byte is the line end of the event before it.
    local is_passed = head and (size > SHORT or size == 1)
    if is_passed then self.size = self.size + size end
  until not is_passed
end

---@param rules journal.rules
---@param log native.file.log
---@return string? problem why the rest is left out
---@return boolean|"unread"|nil is_torn only the last line has no end; "unread": it could not be
---read
function history:fold(rules, log)
  self.from = log
  local number = 0
  while true do
    if rules.living and self.size > 0 then pass_long_lines(self) end
    local event, failure = next_event(self, self.size, rules)
    if not event and failure.code == "end" then return nil end
    if not event and failure.code == "incomplete" and not rules.script then return TORN, true end
    number = number + 1
    local reason = failure and failure.message
    if event and apply[event.event] then reason = take(self, event, rules) end
    if reason then
      local is_unread = failure ~= nil and not mistakes[failure.code]
      return ("line %d: %s"):format(number, reason), is_unread and "unread"
    end
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
  local most, done = math.min(#steps, self.same), 0
  while done < math.min(most, self.count) and is_done(self, done + 1) do done = done + 1 end
  local status = self.statuses[done + 1]
  if status and status ~= "skipped" and done < most then self.failed = done + 1 end
  self:forget_entries(done + 1)
end

---@param log native.file.log what an earlier run left
---@param path string its name
---@param rules journal.rules
---@return journal.history?, native.failure? both nil: there is nothing to go on from
function history.resume(log, path, rules)
  local self = history.new()
  rules.strict = true
  local problem, is_torn = self:fold(rules, log)
  if problem and is_torn ~= true then
    local message = "the journal %s cannot be used, %s; without --resume the job starts anew"
    return unusable(message:format(path, problem), is_torn)
  end
  if not self.job then return nil end
  if self.result and self.result.status == "success" and not self.edited then return self end
  go_on(self)
  local last, steps = self.resumes[#self.resumes], rules.job_file.steps
  if self.edited then last.why = last.why .. EDITED end
  if not self.same then return self end
  if steps then
    keep_successes(self, steps)
    if self.edited then self:forget_from(math.min(self.same, #steps) + 1) end
  else
    -- It was a direct job, and is an agent's now.
    self:forget_from(1)
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
  -- The file may be the journal of this job, which begins anew.
  self.from = assert(file.memory())
  self.from:append({ 0, self.size, from = log }, true)
  return self
end

return history
