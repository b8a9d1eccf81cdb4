-- SPDX-License-Identifier: Apache-2.0
-- How an agent's job ends: by the model's `finish`, with evidence for each criterion without a
-- check, where no check fails; or by three answers in prose in a row.

local fail = require "sba.util.fail"
local humanize = require "sba.util.humanize"
local json = require "sba.util.json"
local printable = require "sba.util.printable"
local prompts = require "sba.agent.prompts"
local schema_document = require "sba.util.schema_document"
local text = require "native.text"
local tools_of = require "sba.model.tools"

local finish = {}

-- What the model is told to do otherwise, and how often; once more ends the job with this code and
-- message.
local GAVE_UP <const>, UNMET <const> = "agent_gave_up", "acceptance_unmet"
local REFUSALS <const> = {
  prose = { 2, GAVE_UP,
    "the model called no tool in three replies in a row; the last of them is the final answer" },
  undone = { 1, GAVE_UP,
    "the model says that the job is done, but none of its calls could be carried out" },
  misfits = { 3, GAVE_UP, "the model gave no answer that fits inference.answer_schema: %s" },
  no_evidence = { 3, UNMET, "the model ended the job without evidence: %s" },
  failed_checks = { 3, UNMET, "%s" },
}
-- Of what is shown of a step; a failing check has one.
local LEAST_SHARES <const> = 4
local LONGEST_REASON <const> = 1000 -- bytes

---@class agent.ending
---@field refused table<string, integer> how often, by names of REFUSALS; prose: in a row
---@field asked_to_begin? boolean
---@field answer? string the last one
---@field is_over? boolean the job ended well

---@return agent.ending
function finish.new() return { refused = {} } end

-- Evidence

--- The number before it, "2. ", is the list's: "2 files exist" is another criterion than "3 files
--- exist".
local function normalised(criterion)
  return text.trim_end(criterion:lower():gsub("%s+", " "):gsub("^ ", ""):gsub("^%d+[.)] ", ""), " .")
end

--- Which criterion an entry is for: the one of this text, but for case, blanks and the number before
--- it; else the one of this number. Where two are alike but for these, the very text decides, then the
--- number before it.
local function criterion_of(named, criteria)
  local wanted, found, prefix = normalised(named), nil, tonumber(named:match "^%s*(%d+)[.)]")
  for i, criterion in ipairs(criteria) do
    if criterion == named then return criterion end
    if normalised(criterion) == wanted and (not found or i == prefix) then found = criterion end
  end
  return found or criteria[tonumber(named:match "^%s*#?(%d+)[.):]?%s*$")]
end

--- Two criteria of one text share their entry.
local function find(entries, criteria, criterion)
  for _, entry in ipairs(entries) do
    if criterion_of(entry.criterion, criteria) == criterion then return entry end
  end
end

--- "step 3" counts as "step-3".
local function named_steps(evidence)
  local ids, lower = {}, evidence:lower()
  for number in lower:gmatch("step[%s_-]*(%d+)") do ids[#ids + 1] = "step-" .. number end
  for number in lower:gmatch("check[%s_-]*(%d+)") do ids[#ids + 1] = "check-" .. number end
  return ids
end

local function what_is_missing(criterion, entry, status_of)
  if not entry then return ('no entry for the criterion "%s"'):format(criterion) end
  local ids = named_steps(entry.evidence)
  for _, id in ipairs(ids) do
    if status_of[id] == "success" then return nil end
  end
  local named = 'no step of this job; write for example "step-3: ..."'
  if ids[1] then
    local is_known = status_of[ids[1]]
    named = ids[1] .. (is_known and ", which did not succeed" or ", which is not a step of this job")
  end
  return ('the evidence for "%s" names %s'):format(criterion, named)
end

---@class run.verdict an element of the result's acceptance
---@field criterion string
---@field met boolean|lightuserdata json.null: not checked
---@field evidence string names the step, or ""
---@field verified_by "check"|"model"|lightuserdata

---What the model says of the criteria without a check.
---@param context sba.context
---@param entries { criterion: string, met: boolean, evidence: string }[]
---@param status_of table<string, string> by step id
---@return run.verdict[] list in the criteria's order
---@return string[] missing evidence, a line each
---@return string? unmet the first criterion that is said not to be met
function finish.judge(context, entries, status_of)
  local list, missing, unmet = json.array {}, {}, nil
  local criteria, null = context.acceptance_criteria, json.null
  for i, criterion in ipairs(criteria) do
    local verdict = { criterion = criterion, met = null, evidence = "", verified_by = null }
    local is_models = not context.checks[i]
    local entry = is_models and find(entries, criteria, criterion)
    local is_unmet = entry and not entry.met -- it needs no evidence
    local reason = is_models and not is_unmet and what_is_missing(criterion, entry, status_of)
    if is_unmet then unmet = unmet or criterion end
    if reason then
      missing[#missing + 1] = reason
    elseif entry then
      verdict.met, verdict.evidence, verdict.verified_by = entry.met, entry.evidence, "model"
    end
    list[i] = verdict
  end
  return list, missing, unmet
end

-- The end

--- Ends the job, not well.
local function give_up(code, message) error({ code = code, gave_up = true, message = message }, 0) end

--- Returns what the model is told. Once too often ends the job. detail: what the message of that
--- end has in it.
local function refuse(state, why, told, detail)
  local most, code, message = table.unpack(REFUSALS[why])
  local times = (state.ending.refused[why] or 0) + 1
  state.ending.refused[why] = times
  if times > most then give_up(code, message:format(detail)) end
  return told
end

--- count: failing checks; they share what is shown of a step.
local function report_of(state, checked, count)
  local entry, criterion = checked.entry, humanize.quoted(checked.verdict.criterion)
  local head = prompts.check_failed:format(checked.id, criterion, entry.error)
  local shown = entry.result and state.run.catalogue.get(entry.type).show(entry.result)
  local body = shown or entry.output or ""
  if body == "" then return head end
  return head .. "\n" .. state.outputs:show(checked.id, body, math.max(LEAST_SHARES, count))
end

--- The checks that fail are an answer to the model; nil: none fails.
local function check_all(state)
  local count = 0
  local failing, failure = state.run:perform_checks(function(checked)
    count = count + 1
    finish.note(state, checked.entry)
  end)
  if #fail.check(failing, failure) == 0 then return nil end
  local told = prompts.checks_failed:format(#failing, count)
  local parts = { refuse(state, "failed_checks", told, failure.message) }
  for i, checked in ipairs(failing) do parts[i + 1] = report_of(state, checked, #failing) end
  return { text = table.concat(parts, "\n\n"), changed = true }
end

--- Verdicts of checks are the runner's.
local function keep_verdicts(state, list)
  local verdicts, checks = state.run.record.acceptance, state.run.job.context.checks
  for i, verdict in ipairs(list) do
    if not checks[i] then verdicts[i] = verdict end
  end
end

--- What the model is told that says `done` before any step, and nothing is checked; nil: it counts.
local function begin_first(state)
  if state.has_acted then return nil end
  if state.has_failed_calls then return { text = refuse(state, "undone", prompts.nothing_carried_out) } end
  if state.ending.asked_to_begin then return nil end
  state.ending.asked_to_begin = true
  return { text = prompts.nothing_done }
end

--- The answer as the result has it, or nil and what is wrong. With a schema it is JSON that fits,
--- given as text or as a value.
local function read_answer(state, arguments)
  local schema = (state.run.job.inference or {}).answer_schema
  local value = arguments.answer
  local is_text = type(value) == "string"
  if not schema or arguments.status == "failed" then return is_text and value or json.encode(value) end
  local decoded, failure = json.decode(is_text and value or "")
  local misfit = schema_document.misfit(value, schema)
  if misfit and not failure then value, misfit = decoded, schema_document.misfit(decoded, schema) end
  if misfit then return nil, prompts.answer_misfits:format(misfit) end
  return json.encode(value)
end

---Raises the failure of a job that does not end well. A call that failed in the same reply was not
---seen when `done` was written.
---@param state agent.state
---@param _ model.call
---@param arguments { answer: any, status?: "done"|"failed", acceptance?: table[] }
---@return agent.answer
function finish.called(state, _, arguments)
  local ending, has_failed, early = state.ending, arguments.status == "failed", state.failed_now
  if early and not has_failed then return { text = prompts.too_early:format(early) } end
  local context, todo = state.run.job.context, state.run.todo
  local list, missing, unmet = finish.judge(context, arguments.acceptance or {}, state.status_of)
  local answer, misfit = read_answer(state, arguments)
  ending.answer = answer or ending.answer
  for i, item in ipairs(list) do
    if item.verified_by == "model" then
      todo:set(todo.criteria[i], item.met and "done" or "pending", json.null)
    end
  end
  if has_failed or unmet then keep_verdicts(state, list) end
  if has_failed then
    give_up(GAVE_UP, "the model gave up: " .. printable.line(ending.answer, LONGEST_REASON))
  end
  if unmet then give_up(UNMET, "the model says that a criterion is not met: " .. unmet) end
  -- Where nothing was done yet, the checks say first whether something is to be done.
  local is_checked = not state.has_acted and next(context.checks) ~= nil
  local first = is_checked and check_all or begin_first
  local told = first(state)
  if told then return told end
  if misfit then return { text = refuse(state, "misfits", misfit, misfit) } end
  if #missing > 0 then
    local what = table.concat(missing, "; ")
    return { text = refuse(state, "no_evidence", prompts.not_finished:format(what), what) }
  end
  told = not is_checked and check_all(state)
  if told then return told end
  keep_verdicts(state, list)
  ending.is_over = true
  return { text = "finished" }
end

---What a model is told whose reply held no call: small ones need the form of a call before their
---eyes, and take what they see: behind a call that failed it is not the form of finish.
---@param state agent.state
---@param as_text boolean the reply had to be a call as text
---@return string
function finish.go_on(state, as_text)
  local form, failed = as_text and prompts.form_as_text or prompts.form, state.tools[state.failed_last]
  if not failed then return prompts.go_on:format(form:format("finish", prompts.finish_arguments)) end
  return prompts.go_on_after:format(failed.name, form:format(failed.name, tools_of.example(failed)))
end

---@param state agent.state
---@param content string prose
---@param as_text boolean the reply had to be a call as text
---@return string words for the model; raises after three
function finish.answered(state, content, as_text)
  state.ending.answer = content
  return refuse(state, "prose", finish.go_on(state, as_text))
end

local reach_out <const> = { run_command = true, call_tool = true }

---Notes a step's or check's status, and whether the last command or gateway call failed for want
---of the network.
---@param state agent.state
---@param entry { id: string, type: string, status: string, error?: string, error_code?: string }
function finish.note(state, entry)
  state.status_of[entry.id] = entry.status
  if not reach_out[entry.type] then return end
  state.unreached = entry.error_code == "ext_net_required" and entry or nil
end

---A model that gives up or repeats itself after a step that failed for want of the network failed
---for that.
---@param state agent.state
---@param failure { code: string, message: string, gave_up?: boolean }
---@return failure
function finish.failure(state, failure)
  local entry = failure.gave_up and state.unreached
  if not entry then return failure end
  return { code = "ext_net_required", message = ("%s: %s; %s"):format(entry.id, entry.error, failure.message) }
end

return finish
