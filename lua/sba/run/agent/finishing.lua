-- SPDX-License-Identifier: Apache-2.0
-- How an agent's job ends: by the model's `finish`, or by an answer in prose. Neither ends it well before something was done.

local acceptance = require "sba.run.agent.acceptance"

local finishing = {}

local MOST_REFUSED <const> = 3 -- times that the model is told what is missing

local BEGIN <const> = "Nothing has been done yet, so the job cannot end. Begin now: call a tool, for example list_tree to see the "
  .. "workspace."
local CALL_FINISH <const> = "If the job is done, call finish with your answer. If not, call the next tool."

--- Whether the model has done something: a step, or a call to the gateway. The todo list alone is only a plan.
local function has_acted(state) return next(state.status_of) ~= nil end

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

---The model called finish.
---@param state table of the agent
---@param _ table the call
---@param arguments { answer: string, acceptance?: table[] }
---@return { text: string }? answer, table? failure the job's
function finishing.called(state, _, arguments)
  local criteria = state.context.acceptance_criteria
  local list, missing, unmet = acceptance.judge(criteria, arguments.acceptance or {}, function(id) return state.status_of[id] end)
  state.answer = arguments.answer
  for i, item in ipairs(list or {}) do
    if item.met then state.run.todo:meet(i) end
  end
  if unmet then
    state.acceptance = list
    return nil, { code = "acceptance_unmet", gave_up = true, message = ("the model says that a criterion is not met: %s"):format(unmet) }
  end
  if not has_acted(state) then return ask_to_begin(state) end
  if list then
    state.acceptance = #criteria > 0 and list or nil
    state.finished = true
    return { text = "finished" }
  end
  return refuse(state, table.concat(missing, "; "))
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
  if #state.context.acceptance_criteria > 0 then
    return refuse(state, "call finish with an entry for every acceptance criterion, its evidence naming the step that shows it")
  end
  if state.asked_to_finish then
    state.answer, state.finished = content, true
    return nil
  end
  state.asked_to_finish = true
  return { text = CALL_FINISH }
end

return finishing
