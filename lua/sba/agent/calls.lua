-- SPDX-License-Identifier: Apache-2.0
-- What a model's call does.

local arguments = require "sba.agent.arguments"
local finish = require "sba.agent.finish"
local json = require "sba.util.json"
local named = require "sba.model.calls".name
local prompts = require "sba.agent.prompts"
local tools_of = require "sba.model.tools"

local calls = {}

local GATEWAY <const>, COMMAND <const>, WRITE <const> = "call_tool", "run_command", "write_file"
local CHANGES_NOTHING <const> = "text_unchanged" -- the failure's code
local NO_PROGRAM <const> = 127 -- the shell's exit code

-- Steps

-- Those that change the workspace if they succeed; a command may even if it fails.
local changes <const> = { write_file = true, replace_in_file = true, apply_unified_diff = true }

--- A program that is not there may be a tool.
local function tool_in(state, command)
  local program = command:match "^%s*([%w_-]+)" or ""
  local tool = state.tools[named(program, state.accepted)]
  if not tool or tool.name == COMMAND then return nil end
  return prompts.is_a_tool:format(program, tool.name, tools_of.example(tool))
end

--- What helps after a failure; nil: its own message is enough.
local function advice(state, step, entry)
  if step.type == GATEWAY then return nil end
  local code, path, command = entry.error_code, step.arguments.path, step.arguments.shell
  if code == "step_failed" then code = (entry.result or {}).exit_code end
  local tool = code == NO_PROGRAM and command and tool_in(state, command)
  if tool then return tool end
  -- It shows no lines to copy.
  if code == "text_not_found" and not entry.output then return nil end
  local words = step.type == COMMAND and prompts.advice_on_commands or prompts.advice
  local name = type(path) == "string" and ("/" .. path):match "/([%w._-]+)$" or "%0"
  return words[code] and (words[code]:gsub("NAME", name))
end

local function body_of(state, entry, step)
  local result, given, outputs = entry.result, step.arguments, state.outputs
  local module = state.run.catalogue.get(step.type)
  local text = module.show and result and module.show(result, given, outputs.limit)
  if not text then
    if entry.output then return entry.output end
    return result and json.encode(result, module.result) or ""
  end
  -- Longer ones are cut later.
  local fitting = #text <= outputs.limit and outputs:fitting(text)
  return fitting and module.show(result, given, fitting) or text
end

local function answer_of(state, entry, step)
  local body = body_of(state, entry, step)
  if entry.status == "success" then return body ~= "" and body or prompts.no_output end
  local head = ("failed (%s): %s"):format(entry.error_code, entry.error)
  local help = advice(state, step, entry)
  if help then head = head .. "; " .. help end
  return body ~= "" and head .. "\n" .. body or head
end

local IN_NAME <const> = "[%w_.\x80-\xff-]"

--- As a whole: "calc.py" is not in "test_calc.py".
local function holds_name(words, name)
  local at = words:find(name, 1, true)
  while at and words:sub(at - 1, at - 1):find(IN_NAME) do at = words:find(name, at + 1, true) end
  return at ~= nil
end

--- Whether the first message shows a file, or an earlier step names it: what it holds was seen, or
--- made, or may have been.
local function is_known(state, path)
  local name = path:match "^.*/(.*)$" or path
  local first, shown = state.conversation.messages[2].content, prompts.file_holds:format(name)
  if first:find("\n" .. shown, 1, true) or first:find("/" .. shown, 1, true) then return true end
  local escaped = json.encode(name):sub(2, -2)
  for _, earlier in ipairs(state.step_arguments) do
    if holds_name(earlier, escaped) then return true end
  end
  return false
end

local function run_step(state, name, given)
  -- A file that the model has not seen is not replaced: what is lost it could not write again. The
  -- answer shows it.
  if name == WRITE and not given.append and not is_known(state, given.path) then given.overwrite = false end
  -- These arguments tell later which files were named (is_known). Of a call that replaces or writes a
  -- file its path is enough: what it writes may be large.
  table.insert(state.step_arguments, json.encode(changes[name] and given.path or given))
  local run = state.run
  local index = run.record.count + 1
  local step = { id = "step-" .. index, type = name, arguments = given }
  local entry, failure, ends_job = run:perform(step)
  if not entry or ends_job then error(failure, 0) end
  -- It is as good as a call that could not be carried out.
  local is_nothing = entry.error_code == CHANGES_NOTHING
  state.has_acted = state.has_acted or not is_nothing
  finish.note(state, entry)
  local recorded_ms = run.recording and run.recording.durations[index]
  local answer, has_failed = answer_of(state, entry, step), entry.status ~= "success"
  return {
    text = state.outputs:show(step.id, answer), answer = answer, step = step.id,
    duration_ms = recorded_ms or entry.duration_ms, failed = has_failed,
    changed = name == COMMAND or changes[name] and not has_failed, mistaken = is_nothing,
  }
end

local kinds = { finish = finish.called }

function kinds.step(state, call, given) return run_step(state, call.name, given) end

function kinds.gateway(state, call, given)
  return run_step(state, GATEWAY, { tool = state.tools[call.name].tool, arguments = given })
end

function kinds.todo(state, call, given)
  local todo, parent, at_top = state.run.todo, given.parent, ""
  if parent and not todo:has(parent) then parent, at_top = nil, prompts.no_parent:format(parent) end
  local item, mistake, is_old
  if call.name == "todo_add" then
    item, mistake, is_old = todo:add(given.title, parent)
  else
    item, mistake = todo:update(given)
  end
  if not item then return { text = "failed: " .. mistake, failed = true } end
  if is_old then return { text = prompts.old_item:format(item.id, item.status) } end
  state.run.log:event("info", "todo.changed", { id = item.id, status = item.status, title = item.title })
  return { text = ("item %s: %s%s"):format(item.id, item.status, at_top) }
end

function kinds.read_output(state, _, given)
  local part, mistake = state.outputs:read(given)
  return { text = part or "failed: " .. mistake, failed = not part }
end

local function mistaken(why) return { mistaken = true, failed = true, text = "failed: " .. why } end

local function unknown_tool(state, name)
  local names = {}
  for i, tool in ipairs(state.offered) do names[i] = tool.name end
  return mistaken(prompts.unknown_tool:format(name, table.concat(names, ", ")))
end

---@class agent.answer to a call
---@field text string for the model
---@field answer? string a step's in full
---@field step? string its id
---@field changed? boolean the workspace, perhaps
---@field arguments? table as run
---@field mistaken? boolean nothing was run, or what changes nothing
---@field failed? boolean
---@field duration_ms? integer

---Raises what ends the job.
---@param state agent.state
---@param call model.call
---@return agent.answer
function calls.perform(state, call)
  local tool, mistake = state.tools[call.name], call.mistake
  if not tool then return unknown_tool(state, call.name) end
  if mistake then return mistaken(prompts.unread_arguments:format(mistake, tools_of.example(tool))) end
  local read, note = arguments.read(tool, call, state.run.catalogue.get(call.name))
  if not read then return mistaken(note) end
  local answer = kinds[tool.kind](state, call, read)
  state.run.context.tick()
  if call.note then note = note and call.note .. "; " .. note or call.note end
  if note then answer.text = ("(%s)\n%s"):format(note, answer.text) end
  if answer.step then answer.text = ("[%s]\n%s"):format(answer.step, answer.text) end
  answer.arguments = read
  return answer
end

return calls
