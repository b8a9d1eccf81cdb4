-- SPDX-License-Identifier: Apache-2.0
-- How an agent's job ends: by the model's `finish`, which ends it well where no check of an acceptance criterion fails. An answer in
-- prose ends nothing, but three in a row are the end.

local acceptance = require "sba.agent.acceptance"
local excerpt = require "sba.util.excerpt"
local foreign_schema = require "sba.util.foreign_schema"
local json = require "sba.util.json"
local phrases = require "sba.agent.words"
local printable = require "sba.util.printable"
local schema_check = require "sba.util.schema_check"
local text = require "native.text"
local words = require "sba.util.words"

local finishing = {}

local MOST_REFUSED <const> = 3 -- times that the model is told what is missing, and as many that a check fails
local MOST_MISTAKES <const> = 5 -- of an answer that are told at once
local MOST_SHOWN <const> = 8 -- failing checks whose output the model is shown at once
local MOST_PROSE <const> = 3 -- answers in prose in a row
local LEAST_SHARES <const> = 4 -- of what is shown of a step; each failing check has one
local LONGEST_REASON <const> = 1000 -- bytes of the model's answer in a message

-- What models write for the two words.
local meant <const> = {
  success = "done", successful = "done", succeeded = "done", complete = "done", completed = "done", finished = "done", ok = "done",
  passed = "done", ["true"] = "done",
  failure = "failed", fail = "failed", error = "failed", blocked = "failed", impossible = "failed", incomplete = "failed",
  gave_up = "failed", ["false"] = "failed",
}

---Puts a status that a model writes by itself into the tool's words.
---@param arguments table changed
---@return table
function finishing.read(arguments)
  local status = arguments.status
  if type(status) == "string" or type(status) == "boolean" then
    status = text.trim(tostring(status)):lower()
    arguments.status = meant[status] or status
  end
  return arguments
end

--- Whether the model has done something: a step, or a call to the gateway. The todo list alone is only a plan.
local function has_acted(state)
  for id in pairs(state.status_of) do
    if id:sub(1, #"step-") == "step-" then return true end
  end
  return false
end

--- The job cannot end like this; told so once too often, it ends as unmet.
local function refuse(state, why)
  state.refused = (state.refused or 0) + 1
  if state.refused > MOST_REFUSED then
    return nil, { code = "acceptance_unmet", gave_up = true, message = "the model ended the job without evidence: " .. why }
  end
  return { text = phrases.not_finished:format(why) }
end

--- The answer does not fit the job's schema; once too often, and it is the last.
local function refuse_answer(state, misfit)
  state.misfits = (state.misfits or 0) + 1
  if state.misfits <= MOST_REFUSED then return { text = misfit } end
  return nil, { code = "agent_gave_up", gave_up = true, message = "the model gave no answer that fits inference.answer_schema: " .. misfit }
end

--- The model says that the job cannot be done.
local function give_up(state, list)
  state.acceptance = list
  local reason = printable.line((excerpt.of(state.answer, LONGEST_REASON)))
  return nil, { code = "agent_gave_up", gave_up = true, message = "the model gave up: " .. reason }
end

--- A failing check as the model is shown it: what failed, and its output, without which it cannot be mended.
local function shown(state, checked, count)
  local module, result = state.run.catalogue.get(checked.entry.type), checked.entry.result
  local body = result and module.show(result) or ""
  local head = phrases.check_failed:format(checked.id, words.quoted(checked.verdict.criterion), checked.entry.error)
  return body ~= "" and head .. "\n" .. state.outputs:show(checked.id, body, math.max(LEAST_SHARES, count)) or head
end

--- Failing checks are an answer to the model, or once too often the job's failure.
local function judge_checks(state, failing)
  state.failed_checks = (state.failed_checks or 0) + 1
  if state.failed_checks > MOST_REFUSED then
    local failure = acceptance.unmet(failing)
    failure.gave_up = true
    return nil, failure
  end
  local count = math.min(#failing, MOST_SHOWN)
  local parts = { phrases.checks_failed:format(
    #failing, #acceptance.numbers(state.context), count < #failing and (", of which %d are shown"):format(count) or "") }
  for i = 1, count do parts[i + 1] = shown(state, failing[i], count) end
  return { text = table.concat(parts, "\n\n"), changed = true }
end

--- The criteria that the model judges are met, so that the runner's own checks decide.
local function check_all(state, list)
  local failing, failure = state.run.perform_checks(list, function(checked)
    state.status_of[checked.id] = checked.entry.status
    state.missed:note(checked.entry)
  end)
  if not failing then return nil, failure end
  local answer
  if #failing > 0 then answer, failure = judge_checks(state, failing) end
  if answer then return answer end
  state.acceptance = list
  if failure then return nil, failure end
  state.finished = true
  return { text = "finished" }
end

--- The answer as the result has it, or what is wrong with it: where the job has a schema, JSON that fits, given as text or as a value.
local function read_answer(state, arguments)
  local schema = (state.run.job.inference or {}).answer_schema
  local value = arguments.answer
  if not schema or arguments.status == "failed" then return type(value) == "string" and value or json.encode(value) end
  local function mistakes(one)
    return select(2, schema_check.check(json.copy(one), foreign_schema(schema), { total = 0, limit = MOST_MISTAKES }))
  end
  local decoded, failure = json.decode(type(value) == "string" and value or "")
  local errors = mistakes(value)
  if errors.total > 0 and not failure then value, errors = decoded, mistakes(decoded) end
  if errors.total == 0 then return json.encode(value) end
  local lines = {}
  for i, one in ipairs(errors) do lines[i] = schema_check.line(one, "answer") end
  return nil, phrases.answer_misfits:format(table.concat(lines, "; "))
end

---The model called finish.
---@param state table of the agent
---@param _ table the call
---@param arguments { answer: any, status?: "done"|"failed", acceptance?: table[] }
---@return { text: string }? answer, table? failure the job's
function finishing.called(state, _, arguments)
  local list, missing, unmet = acceptance.judge(state.context, arguments.acceptance or {}, state.status_of)
  local answer, misfit = read_answer(state, arguments)
  state.answer = answer or state.answer
  for i, item in ipairs(list) do
    if item.met == true then state.run.todo:settle(i, "done") end
  end
  if arguments.status == "failed" then return give_up(state, list) end
  if unmet then
    state.acceptance = list
    return nil, { code = "acceptance_unmet", gave_up = true, message = ("the model says that a criterion is not met: %s"):format(unmet) }
  end
  if not has_acted(state) and not state.asked_to_begin then
    state.asked_to_begin = true
    return { text = phrases.nothing_done }
  end
  if misfit then return refuse_answer(state, misfit) end
  if #missing > 0 then return refuse(state, table.concat(missing, "; ")) end
  return check_all(state, list)
end

---The model answered in prose: it is asked to go on or to call finish.
---@param state table of the agent
---@param content string
---@param as_text boolean the reply had to be a call as text, which the reply says: a replay has no session
---@return { text: string }? answer
---@return table? failure the job's, after too many in a row
function finishing.answered(state, content, as_text)
  state.prose, state.answer = state.prose + 1, content
  if state.prose < MOST_PROSE then
    return { text = phrases.go_on:format(as_text and phrases.form_as_text or phrases.form) }
  end
  return nil, {
    code = "agent_gave_up", gave_up = true,
    message = "the model called no tool in three replies in a row; the last of them is the final answer",
  }
end

return finishing
