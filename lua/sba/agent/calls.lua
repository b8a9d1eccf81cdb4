-- SPDX-License-Identifier: Apache-2.0
-- What a model's call does: a step of the job, a change of the todo list, a look at what was left out, or the end.
-- Whatever goes wrong is an answer to the model; only the job's own time and a bug of ours end the job here.

local arguments_of = require "sba.agent.arguments"
local finish = require "sba.agent.finish"
local json = require "sba.util.json"
local phrases = require "sba.agent.words"

local calls = {}

local GATEWAY_STEP <const> = "call_tool" -- what a call to a tool of the gateway is among the job's steps
local COMMAND <const> = "run_command"

-- Steps whose success changes the workspace. A command may, whatever comes of it. After one, the same call may well be tried again.
local changes <const> = { write_file = true, replace_in_file = true, apply_unified_diff = true }

--- What may help after a step that failed: the tool or the argument, by name; nil: the failure's own message says it.
local function advice(step, entry)
  local key, of_type = entry.error_code, phrases.advice
  if step.type == GATEWAY_STEP then return nil end
  if step.type == COMMAND then of_type = phrases.advice_on_commands end
  if key == "step_failed" then key = (entry.result or {}).exit_code or key end
  local words = of_type[key]
  -- The file that was looked for, in the command that would find it.
  local path = step.arguments.path
  local name = type(path) == "string" and ("/" .. path):reverse():match("^[^/]*"):reverse():match("^[%w._-]+$")
  return words and name and words:gsub("NAME", name) or words
end

--- A result as its step shows it, within the bytes and the tokens that there are for it.
local function show(module, result, step, outputs)
  local text = module.show(result, step.arguments, outputs.limit)
  local fitting = #text <= outputs.limit and outputs:fitting(text) -- longer ones are cut as all answers are
  return fitting and module.show(result, step.arguments, fitting) or text
end

--- What a model is told of a step.
local function answer_of(entry, module, step, outputs)
  local result = entry.result
  local body = module.show and result and show(module, result, step, outputs) or entry.output
    or result and json.encode(result, module.result) or ""
  if entry.status == "success" then return body ~= "" and body or "done, no output" end
  local help = advice(step, entry)
  local head = ("failed (%s): %s%s"):format(entry.error_code, entry.error, help and "; " .. help or "")
  return body ~= "" and head .. "\n" .. body or head
end

--- @param note? string on the call, for the model
local function run_step(state, name, arguments, note)
  local module = state.run.catalogue.get(name)
  local index = state.run.record.count + 1
  local step = { id = "step-" .. index, type = name, arguments = arguments }
  local entry, failure, ends_job = state.run.perform(step)
  if not entry or ends_job then return nil, failure end
  state.status_of[step.id] = entry.status
  finish.note(state, entry)
  local recorded = state.run.recording and state.run.recording.entries[index]
  local answer = answer_of(entry, module, step, state.outputs)
  return {
    text = ("[%s]\n%s%s"):format(step.id, note and ("(%s)\n"):format(note) or "", state.outputs:show(step.id, answer)),
    answer = answer, step = step.id,
    duration_ms = recorded and recorded.entry.duration_ms or entry.duration_ms,
    changed = name == COMMAND or changes[name] and entry.status == "success",
  }
end

local kinds = { finish = finish.called }

function kinds.step(state, call, arguments, note)
  return run_step(state, call.name, arguments, note)
end

function kinds.gateway(state, call, arguments)
  return run_step(state, GATEWAY_STEP, { tool = state.tools[call.name].tool, arguments = arguments })
end

function kinds.todo(state, call, arguments)
  local todo = state.run.todo
  local item, mistake, is_old
  local no_parent = arguments.parent and not todo:has(arguments.parent)
  if call.name == "todo_add" then
    item, mistake, is_old = todo:add(arguments.title, not no_parent and arguments.parent or nil)
  else
    item, mistake = todo:update(arguments)
  end
  if not item then return { text = "failed: " .. mistake } end
  if is_old then return { text = phrases.old_item:format(item.id, item.status) } end
  state.run.log:event("info", "todo.changed", { id = item.id, status = item.status, title = item.title })
  return { text = ("item %s: %s%s"):format(item.id, item.status, no_parent and phrases.no_parent:format(arguments.parent) or "") }
end

function kinds.read_output(state, _, arguments)
  local part, mistake = state.outputs:read(arguments)
  return { text = part or "failed: " .. mistake }
end

local function mistaken(words) return { mistaken = true, text = "failed: " .. words } end

local function unknown_tool(state, name)
  local names = {}
  for i, tool in ipairs(state.offered) do names[i] = tool.name end
  return mistaken(phrases.unknown_tool:format(name, table.concat(names, ", ")))
end

---Does what a call says.
---@param state agent.state
---@param call inference.call
---@return { text: string, answer?: string, step?: string, changed?: boolean, arguments?: table, mistaken?: boolean }? answer text is what
---the model is shown; answer the same without the step's number and notes; arguments those that were run
---@return table? failure the job's
function calls.perform(state, call)
  local tool = state.tools[call.name]
  if not tool then return unknown_tool(state, call.name) end
  if call.mistake then
    local form = tool.kind ~= "gateway" and "; it has " .. arguments_of.form(tool) or ""
    return mistaken(phrases.unread_arguments:format(call.mistake, form))
  end
  local arguments, note = arguments_of.read(tool, call.arguments, state.run.catalogue.get(call.name))
  if not arguments then return mistaken(note) end
  local answer, failure = kinds[tool.kind](state, call, arguments, note)
  state.run.context.tick()
  if answer then
    answer.arguments = arguments
    if note and not answer.step then answer.text = ("(%s)\n%s"):format(note, answer.text) end
  end
  return answer, failure
end

return calls
