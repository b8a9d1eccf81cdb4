-- SPDX-License-Identifier: Apache-2.0
-- What a model's call does. Arguments are taken as models write them: other names, numbers and lists as text. Fields that a tool does
-- not have are left out; other mistakes are answered.

local finish = require "sba.agent.finish"
local json = require "sba.util.json"
local phrases = require "sba.agent.words"
local schema_check = require "sba.util.schema_check"
local words = require "sba.util.words"

local calls = {}

local GATEWAY_STEP <const> = "call_tool"
local COMMAND <const> = "run_command"
local MOST_MISTAKES <const> = 5 -- that one answer names
local MOST_LEFT_OUT <const> = 8 -- fields, likewise

-- Arguments

-- Names that the tools of other agents have. Case, blanks, "_" and "-" do not count.
local others <const> = {
  cmd = "command", workdir = "working_dir", timeout = "timeout_seconds", filepath = "path", filename = "path", query = "pattern",
  glob = "include", oldstring = "old_text", oldstr = "old_text", newstring = "new_text", newstr = "new_text", patch = "diff",
  summary = "answer", result = "answer",
}

-- Of the members of an enumeration.
local synonyms <const> = {
  success = "done", succeeded = "done", completed = "done", complete = "done", finished = "done", ok = "done", ["true"] = "done",
  failure = "failed", error = "failed", blocked = "failed", impossible = "failed", ["false"] = "failed",
  todo = "pending", open = "pending", inprogress = "in_progress", started = "in_progress", active = "in_progress",
  cancelled = "dropped", skipped = "dropped",
}

local function meant_by(name, schema)
  local plain = words.plain(name)
  for own in pairs(schema.properties) do
    if words.plain(own) == plain then return own end
  end
  local other = (schema.aliases or {})[plain] or others[plain]
  return other and schema.properties[other] and other or name
end

--- By the tool's own names; null is as if left out.
local function renamed(given, schema)
  local result = {}
  for name, value in pairs(given) do
    local meant = meant_by(name, schema)
    if value ~= json.null then
      if (result[meant] or value) ~= value then return nil, ("there are two values for %s; give one"):format(meant) end
      result[meant] = value
    end
  end
  return result
end

local ids <const> = { id = true, parent = true, step = true, criterion = true } -- texts that may be given as a number

--- Text becomes the schema's type; integers become text where they name something, and in `env`.
local function convert(value, schema)
  local kind = schema.type
  if schema.enum then
    local word = words.plain(tostring(value))
    word = synonyms[word] or word
    return words.has(schema.enum, word) and word or value
  end
  if type(value) == "string" and type(kind) == "string" and kind ~= "string" then
    local found, failure = json.decode(kind == "boolean" and value:lower() or value)
    if not failure and json.kind(found) == (kind == "integer" and "number" or kind) then value = found end
  end
  if kind == "array" and json.kind(value) == "object" then value = json.array { value } end
  if kind == "array" and schema.items then
    for i, element in ipairs(json.table_of(value)) do value[i] = convert(element, schema.items) end
  elseif kind == "object" then
    local properties, more = schema.properties or {}, schema.additionalProperties
    for name, member in pairs(json.table_of(value)) do
      if math.type(member) == "integer" and (ids[name] or type(more) == "table") then
        value[name] = tostring(member)
      elseif properties[name] then
        value[name] = convert(member, properties[name])
      end
    end
  end
  return value
end

--- "read_file {path, start_line?, end_line?}"
local function form_of(tool)
  local schema, required, names = tool.parameters, {}, {}
  for _, name in ipairs(schema.required or {}) do required[name] = true end
  for i, name in ipairs(schema.order or {}) do names[i] = required[name] and name or name .. "?" end
  return ("%s {%s}"):format(tool.name, table.concat(names, ", "))
end

local function remove_unknown(given, tool)
  local names = {}
  for name in pairs(given) do
    if not tool.accepted.properties[name] then given[name], names[#names + 1] = nil, words.quoted(name) end
  end
  if #names == 0 then return nil end
  table.sort(names)
  return ("left out, because %s does not have it: %s; it has %s"):format(
    tool.name, words.list(table.move(names, 1, MOST_LEFT_OUT, 1, {}), "and"), form_of(tool))
end

--- The arguments and a note on what was left out; or nil and the mistake.
local function read_arguments(tool, written, step)
  if tool.kind == "gateway" then return json.copy(written) end
  local given, mistake = renamed(json.copy(written), tool.accepted)
  given = given and convert(given, tool.accepted)
  if given and tool.read then given, mistake = tool.read(given) end
  if not given then return nil, mistake end
  local note = remove_unknown(given, tool)
  local checked, errors = schema_check.check(given, tool.accepted, { total = 0, limit = MOST_MISTAKES })
  if errors.total > 0 then
    local lines = {}
    for i, one in ipairs(errors) do lines[i] = schema_check.line(one, "arguments"):gsub("^/", "") end
    lines[#lines + 1] = note or "it has " .. form_of(tool)
    return nil, table.concat(lines, "; ")
  end
  mistake = step and step.check and step.check(checked)
  return not mistake and checked or nil, mistake or note
end

-- Steps

-- On success; a command may change the workspace even if it fails.
local changes <const> = { write_file = true, replace_in_file = true, apply_unified_diff = true }

--- nil: the failure's own message is enough.
local function advice(step, entry)
  if step.type == GATEWAY_STEP then return nil end
  local code, path = entry.error_code, step.arguments.path
  if code == "step_failed" then code = (entry.result or {}).exit_code end
  local help = (step.type == COMMAND and phrases.advice_on_commands or phrases.advice)[code]
  local name = type(path) == "string" and ("/" .. path):match("/([%w._-]+)$")
  return help and name and help:gsub("NAME", name) or help
end

local function show(module, result, step, outputs)
  local text = module.show(result, step.arguments, outputs.limit)
  local fitting = #text <= outputs.limit and outputs:fitting(text) -- longer ones are cut later
  return fitting and module.show(result, step.arguments, fitting) or text
end

local function answer_of(entry, module, step, outputs)
  local result = entry.result
  local body = module.show and result and show(module, result, step, outputs) or entry.output
    or result and json.encode(result, module.result) or ""
  if entry.status == "success" then return body ~= "" and body or "done, no output" end
  local help = advice(step, entry)
  local head = ("failed (%s): %s%s"):format(entry.error_code, entry.error, help and "; " .. help or "")
  return body ~= "" and head .. "\n" .. body or head
end

local function run_step(state, name, arguments)
  local module = state.run.catalogue.get(name)
  local index = state.run.record.count + 1
  local step = { id = "step-" .. index, type = name, arguments = arguments }
  local entry, failure, ends_job = state.run:perform(step)
  if not entry or ends_job then return nil, failure end
  state.has_acted = true
  finish.note(state, entry)
  local recorded = state.run.recording and state.run.recording.entries[index]
  local answer = answer_of(entry, module, step, state.outputs)
  return {
    text = state.outputs:show(step.id, answer), answer = answer, step = step.id,
    duration_ms = recorded and recorded.entry.duration_ms or entry.duration_ms,
    changed = name == COMMAND or changes[name] and entry.status == "success",
  }
end

local kinds = { finish = finish.called }

function kinds.step(state, call, arguments) return run_step(state, call.name, arguments) end

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

local function mistaken(why) return { mistaken = true, text = "failed: " .. why } end

local function unknown_tool(state, name)
  local names = {}
  for i, tool in ipairs(state.offered) do names[i] = tool.name end
  return mistaken(phrases.unknown_tool:format(name, table.concat(names, ", ")))
end

---@param state agent.state
---@param call inference.call
---@return { text: string, answer?: string, step?: string, changed?: boolean, arguments?: table, mistaken?: boolean }? answer text: for
---the model; answer: a step's in full; arguments: as run
---@return failure? failure the job's
function calls.perform(state, call)
  local tool = state.tools[call.name]
  if not tool then return unknown_tool(state, call.name) end
  if call.mistake then
    local form = tool.kind ~= "gateway" and "; it has " .. form_of(tool) or ""
    return mistaken(phrases.unread_arguments:format(call.mistake, form))
  end
  local arguments, note = read_arguments(tool, call.arguments, state.run.catalogue.get(call.name))
  if not arguments then return mistaken(note) end
  local answer, failure = kinds[tool.kind](state, call, arguments)
  state.run.context.tick()
  if not answer then return nil, failure end
  local head = answer.step and ("[%s]\n"):format(answer.step) or ""
  answer.text = head .. (note and ("(%s)\n"):format(note) or "") .. answer.text
  answer.arguments = arguments
  return answer
end

return calls
