-- SPDX-License-Identifier: Apache-2.0
-- The model's tools. Not all that is accepted is shown.

local commands = require "sba.agent.commands"
local json = require "sba.util.json"
local object = require "sba.util.schema_check".object
local prompts = require "sba.agent.prompts"
local rules = require "sba.gateway.rules"
local text = require "native.text"
local tools_of = require "sba.model.tools"

local tools = {}

local FIRST <const> = "run_command" -- what models know best
-- Than other code: schemas are prose and repeated names.
local CHEAPER <const> = 4 / 5
local MOST_TOOLS <const> = 128 -- that servers of models take
-- The part of what our own tools leave that is for the gateway's.
local SHARE <const> = 1 / 3
-- Characters; OpenAI refuses more than 1,024.
local LONGEST_DESCRIPTION <const> = 1000
local MOST_REASONS <const> = 5 -- in the log

---@class agent.tool: model.tool
---@field kind "step"|"todo"|"read_output"|"gateway"|"finish"
---@field accepted? table schema, where it takes more than is shown
---@field hidden? boolean taken, but not shown
---@field read? fun(arguments: table): table?, string? converts what a model may write, and a note;
---or says the mistake
---@field tool? string the gateway's name of it

--- "3", "step 3" and "[step-3]" are step-3; "[check-3]" is check-3.
local function read_step(arguments)
  local step = arguments.step
  local number = type(step) == "string" and step:match "%d+"
  if number then arguments.step = (step:find "check" and "check-" or "step-") .. number end
  return arguments
end

-- A command is another thing to a model than in a job.
local readers <const> = { run_command = commands.read }

local function string(description) return { type = "string", description = description } end

local line <const> = { type = "string", minLength = 1 }
local integer <const>, number <const> = { type = "integer" }, { type = "integer", minimum = 1 }
local offset <const> = { type = "integer", minimum = 0 }
local a_step <const> = string "For example step-3"

local todo_add = {
  name = "todo_add", kind = "todo", description = prompts.todo_add,
  called = { "add_todo", "create_todo", "add_task" },
  parameters = object { "title!", line, "parent", string "Id of the item that this is part of." },
}

local todo_update = {
  name = "todo_update", kind = "todo", called = { "update_todo" }, description = prompts.todo_update,
  parameters = object {
    "id!", { type = "string" },
    "status", { type = "string", enum = json.array { "pending", "in_progress", "done", "dropped" } },
    "title", line, "position", number, "note", { type = "string", takes_empty = true },
  },
}

local read_output = {
  name = "read_output", kind = "read_output", read = read_step, description = prompts.read_output,
  accepted = object {
    "step!", a_step, "start_line", number, "end_line", number, "offset_bytes", offset, "max_bytes", number,
  },
  parameters = object { "step!", a_step, "start_line", integer, "offset_bytes", integer },
}

--- The arguments of a step type that a model is shown: those that it names for models. What the
--- model writes is checked against the step type's own schema (`accepted`).
local function parameters_of(step, own, names)
  local schema, descriptions, properties = step.arguments, own.descriptions or {}, {}
  for _, name in ipairs(names) do
    local full, told = schema.properties[name], descriptions[name]
    properties[name] = { type = full.type, enum = full.enum, items = full.items, description = told }
  end
  local required = own.required or schema.required
  return { type = "object", order = names, required = required, properties = properties }
end

--- Where the model's window is small, only those that are needed: a small model gives each
--- argument that it sees, with what comes to its mind.
local function step_tool(step, own, is_roomy)
  local schema = step.arguments
  local tool = {
    name = step.name, kind = "step", description = own.summary or step.summary, called = own.called,
    read = own.read or readers[step.name], accepted = schema, parameters = schema,
  }
  if not own.order then return tool end
  tool.parameters = parameters_of(step, own, own.order)
  local needed = own.needed or own.required or schema.required
  if needed and not is_roomy then
    tool.whole, tool.parameters = tool.parameters, parameters_of(step, own, needed)
  end
  return tool
end

local answer <const> = string(prompts.answer)
local status <const> = string(prompts.status)
status.enum = json.array { "done", "failed" }
local acceptance <const> = {
  type = "array", description = "One entry for each criterion without a check.",
  items = object {
    "criterion!", string "The criterion's text or number.",
    "met!", { type = "boolean" },
    "evidence!", string "The id of the step that shows it, and what it shows.",
  },
}

local FINISH_CALLED <const> = {
  "done", "complete", "completed", "submit", "end", "final_answer", "task_complete",
  "attempt_completion", "finished",
}

--- Criteria are shown only where the model judges one.
local function finish_for(job)
  local schema, context, judges = (job.inference or {}).answer_schema, job.context, false
  for i in ipairs(context.acceptance_criteria) do judges = judges or not context.checks[i] end
  local shown = { "answer!", schema or answer, "status", status }
  if judges then shown[5], shown[6] = "acceptance", acceptance end
  return {
    name = "finish", kind = "finish", called = FINISH_CALLED,
    description = judges and prompts.finish_with_criteria or prompts.finish,
    accepted = object { "answer!", schema and {} or answer, "status", status, "acceptance", acceptance },
    parameters = object(shown),
  }
end

local JUDGED <const> = { context = { acceptance_criteria = { "any" }, checks = {} } }

---@param catalogue { all: fun(): sba.step[] }
---@param gateway? agent.tool[]
---@param job? sba.job default: one whose model judges
---@param extras? { has_todo: boolean, is_roomy: boolean } default: both
---@return agent.tool[] shown, table<string, agent.tool> by_name all that are accepted
---@return agent.tool[] accepted
function tools.list(catalogue, gateway, job, extras)
  local shown, accepted, by_name = {}, {}, {}
  extras = extras or { has_todo = true, is_roomy = true }
  local is_roomy = extras.is_roomy
  local function add(tool, is_hidden)
    tool.hidden, tool.accepted = is_hidden, tool.accepted or tool.parameters
    accepted[#accepted + 1], by_name[tool.name] = tool, tool
    if not is_hidden then table.insert(shown, tool.name == FIRST and 1 or #shown + 1, tool) end
  end
  for _, step in ipairs(catalogue.all()) do
    local own = step.for_model or {}
    local lacks_room = own.wants_room and not is_roomy
    if step.for_model ~= false then add(step_tool(step, own, is_roomy), own.hidden or lacks_room) end
  end
  add(todo_add, not extras.has_todo)
  add(todo_update, not extras.has_todo)
  add(read_output, not is_roomy)
  for _, tool in ipairs(gateway or {}) do add(tool) end
  add(finish_for(job or JUDGED))
  return shown, by_name, accepted
end

---Shows a tool that was hidden until there is something for it: a small model calls what it is
---shown.
---@param state agent.state
---@param name string
function tools.offer(state, name)
  local tool = state.tools[name]
  if not tool.hidden then return end
  tool.hidden = false
  state.offered = table.move(state.offered, 1, #state.offered, 1, {})
  table.insert(state.offered, #state.offered, tool) -- finish stays the last
  state.conversation.tools = state.conversation.tools + tools.cost { tool }
end

---@param list agent.tool[]
---@return integer tokens estimated
function tools.cost(list) return math.ceil(text.tokens(tools_of.json(list)) * CHEAPER) end

local function log_choice(run, chosen, left_out)
  local count, level, why = #left_out, "info", nil
  if count > 0 then
    level, why = "warning", table.concat(left_out, "; ", 1, math.min(count, MOST_REASONS))
  end
  run.log:event(level, "gateway.tools", { tools = #chosen, left_out = count, error = why })
end

--- The gateway's tools that have room, named apart from all others so far. One that was there
--- before keeps its name. The log says which have no room.
---@param run run
---@param listed gateway.tool[]
---@param own agent.tool[] shown beside them
---@param accepted table<string, agent.tool> so far, by name
---@param space integer tokens for tools and conversation
---@return agent.tool[]
local function choose(run, listed, own, accepted, space)
  local chosen, left_out = {}, {}
  local free, room = MOST_TOOLS - #own, (space - tools.cost(own)) * SHARE
  for i, tool in ipairs(run.gateway.client.dropped) do
    left_out[i] = tool.name .. ": " .. tool.reason
  end
  local taken, names = {}, {}
  for name, tool in pairs(accepted) do
    taken[name] = tool
    if tool.kind == "gateway" then names[tool.tool] = name end
  end
  for _, tool in ipairs(listed) do
    local one = {
      kind = "gateway", name = names[tool.tool] or rules.mapped(tool.tool, taken), tool = tool.tool,
      description = tool.description, parameters = json.encode(tool.parameters),
      -- What it does is done on another machine: no misspelled name may mean it.
      exact = true,
    }
    local tokens = tools.cost { one }
    if #chosen < free and tokens <= room then
      local last = utf8.offset(one.description, LONGEST_DESCRIPTION + 1)
      if last then one.description = one.description:sub(1, last - 1) .. "..." end
      chosen[#chosen + 1], taken[one.name], room = one, one, room - tokens
    else
      left_out[#left_out + 1] = one.name .. ": there is no room for it"
    end
  end
  log_choice(run, chosen, left_out)
  return chosen
end

---The gateway's tools as the journal has them, so that the same replies mean the same calls; else
---as many of those listed now as have room. A job can do without; the log says so.
---@param run run
---@param space integer tokens for tools and conversation
---@param extras table as of tools.list
---@return agent.tool[], string? instructions
function tools.of_gateway(run, space, extras)
  local earlier = (run.recording or run.history).session
  if earlier then return earlier.tools, earlier.instructions end
  if run.recording or not run:has_gateway() then return {} end
  local gateway, failure = run:connect()
  local listed
  if gateway then listed, failure = gateway:tools() end
  if not listed then
    local why = failure.message .. "; the job goes on without its tools"
    run:warn("gateway.failed", why, { code = failure.code })
    return {}
  end
  local own, accepted = tools.list(run.catalogue, nil, run.job, extras)
  return choose(run, listed, own, accepted, space), gateway.instructions
end

--- A list of tools with others of the gateway. finish stays the last.
local function with_gateway(list, others)
  local result = {}
  for _, tool in ipairs(list) do
    if tool.kind == "finish" then table.move(others, 1, #others, #result + 1, result) end
    if tool.kind ~= "gateway" then result[#result + 1] = tool end
  end
  return result
end

---The tools of the gateway, which there is, where it has said that they have changed. The list is
---read at most once before each reply.
---@param state agent.state
---@param space integer as of tools.of_gateway
---@return agent.tool[]? nil: they are as they were
function tools.changed(state, space)
  local run, offered = state.run, state.offered
  local listed, failure = run.gateway:changed_tools()
  if failure then run:warn("gateway.failed", failure.message, { code = failure.code }) end
  if not listed then return nil end
  local own = with_gateway(offered, {})
  local chosen = choose(run, listed, own, state.tools, space)
  local is_same = tools_of.json(with_gateway(own, chosen)) == tools_of.json(offered)
  return not is_same and chosen or nil
end

---Offers other tools of the gateway. One that is gone is still accepted: a model may call it, and
---the gateway then says that it has none of that name.
---@param state agent.state
---@param chosen agent.tool[]
function tools.renew(state, chosen)
  local by_name, accepted = state.tools, { table.unpack(chosen) }
  for _, tool in ipairs(chosen) do
    tool.accepted = tool.parameters
    by_name[tool.name] = tool
  end
  for _, tool in ipairs(state.accepted) do
    local is_gone = tool.kind == "gateway" and by_name[tool.name] == tool
    if is_gone then
      tool.hidden = true
      accepted[#accepted + 1] = tool
    end
  end
  local offered, talk = with_gateway(state.offered, chosen), state.conversation
  talk.tools = math.max(0, talk.tools + tools.cost(offered) - tools.cost(state.offered))
  state.offered = offered
  state.accepted = with_gateway(state.accepted, accepted)
end

return tools
