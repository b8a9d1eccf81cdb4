-- SPDX-License-Identifier: Apache-2.0
-- How an agent's job ends: by the model's `finish`, or by an answer in prose. Neither ends it well before something was done, nor
-- while a check of an acceptance criterion fails.

local acceptance = require "sba.run.agent.acceptance"
local check = require "sba.run.check"
local excerpt = require "sba.util.excerpt"
local printable = require "sba.util.printable"
local text = require "native.text"
local words = require "sba.util.words"

local finishing = {}

local MOST_REFUSED <const> = 3 -- times that the model is told what is missing, and as many that a check fails
local MOST_SHOWN <const> = 8 -- failing checks whose output the model is shown at once
local LEAST_SHARES <const> = 4 -- of what is shown of a step; each failing check has one
local LONGEST_REASON <const> = 1000 -- bytes of the model's answer in a message

local BEGIN <const> = "Nothing has been done yet, so the job cannot end. Begin now: call a tool, for example list_tree to see the "
  .. "workspace. If the job cannot be done, call finish with the status failed, and say why."
local CALL_FINISH <const> = "If the job is done, call finish with your answer. If not, call the next tool."

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

--- The model ends the job and has done nothing: it is asked once to begin.
local function ask_to_begin(state)
  if state.asked_to_begin then
    return nil, {
      code = "agent_gave_up", gave_up = true,
      message = "the model ended the job and had done nothing, even when it was asked to begin; its last words are the final answer",
    }
  end
  state.asked_to_begin = true
  return { text = BEGIN }
end

--- The job cannot end like this; told so once too often, it ends as unmet.
local function refuse(state, why)
  state.refused = (state.refused or 0) + 1
  if state.refused > MOST_REFUSED then
    return nil, { code = "acceptance_unmet", gave_up = true, message = "the model ended the job without evidence: " .. why }
  end
  return { text = "not finished: " .. why }
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
  local head = ("[%s]\nThe check of %s failed: %s"):format(checked.id, words.quoted(checked.verdict.criterion), checked.entry.error)
  return body ~= "" and head .. "\n" .. state.outputs:show(checked.id, body, math.max(LEAST_SHARES, count)) or head
end

--- Failing checks are an answer to the model, or once too often the job's failure.
local function judge_checks(state, failing)
  state.failed_checks = (state.failed_checks or 0) + 1
  if state.failed_checks > MOST_REFUSED then
    local failure = check.unmet(failing)
    failure.gave_up = true
    return nil, failure
  end
  local count = math.min(#failing, MOST_SHOWN)
  local parts = { ("not finished: %d of %d checks failed%s. Mend what they show, then call finish again."):format(
    #failing, #check.numbers(state.context), count < #failing and (", of which %d are shown"):format(count) or "") }
  for i = 1, count do parts[i + 1] = shown(state, failing[i], count) end
  return { text = table.concat(parts, "\n\n"), changed = true }
end

--- The criteria that the model judges are met, so that the runner's own checks decide.
local function check_all(state, list)
  local failing, failure = check.perform_all(state.run, list, function(checked)
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

---The model called finish.
---@param state table of the agent
---@param _ table the call
---@param arguments { answer: string, status?: "done"|"failed", acceptance?: table[] }
---@return { text: string }? answer, table? failure the job's
function finishing.called(state, _, arguments)
  local list, missing, unmet = acceptance.judge(state.context, arguments.acceptance or {}, state.status_of)
  state.answer = arguments.answer
  for i, item in ipairs(list) do
    if item.met == true then state.run.todo:settle(i, "done") end
  end
  if arguments.status == "failed" then return give_up(state, list) end
  if unmet then
    state.acceptance = list
    return nil, { code = "acceptance_unmet", gave_up = true, message = ("the model says that a criterion is not met: %s"):format(unmet) }
  end
  if not has_acted(state) then return ask_to_begin(state) end
  if #missing > 0 then return refuse(state, table.concat(missing, "; ")) end
  return check_all(state, list)
end

---The model answered in prose. It is asked to call finish; where the job names no criteria, a second such answer in a row counts.
---@param state table of the agent
---@param content string
---@return { text: string }? answer nil without failure: the job is over
---@return table? failure the job's
function finishing.answered(state, content)
  if not has_acted(state) then
    state.answer = content
    return ask_to_begin(state)
  end
  local criteria = #state.context.acceptance_criteria
  if criteria > 0 and #check.numbers(state.context) == criteria then
    return refuse(state, "call finish; then the runner checks the acceptance criteria")
  elseif criteria > 0 then
    return refuse(state,
      "call finish with an entry for every acceptance criterion without a check, its evidence naming the step that shows it")
  end
  if state.asked_to_finish then
    state.answer, state.finished = content, true
    return nil
  end
  state.asked_to_finish = true
  return { text = CALL_FINISH }
end

return finishing
