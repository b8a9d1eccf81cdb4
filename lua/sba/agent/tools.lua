-- SPDX-License-Identifier: Apache-2.0
-- The tools of the model: the step types by their own schemas, run_command first, the todo list, read_output, and finish. What the
-- gateway offers stands before finish. Not all that is taken is shown.

local acceptance = require "sba.agent.acceptance"
local finishing = require "sba.agent.finishing"
local json = require "sba.util.json"
local meter = require "sba.agent.meter"
local phrases = require "sba.agent.words"
local tools_of = require "sba.model.tools"
local words = require "sba.util.words"

local tools = {}

local FIRST <const> = "run_command" -- what models know best
local CHEAPER <const> = 4 / 5 -- schemas cost less than other code: they are prose, and names that come again and again

---@class agent.tool
---@field name string
---@field description string
---@field parameters table|string JSON Schema; of a gateway's tool as JSON, to be passed on as it is
---@field kind "step"|"todo"|"read_output"|"gateway"|"finish"
---@field accepted? table the schema of what it takes, where that is more than is shown
---@field called? string[] other names that models have for it
---@field read? fun(arguments: table): table?, string? makes what a model may write what the tool takes, or says the mistake
---@field exact? boolean not called by a name that is only near to its own
---@field tool? string of a gateway's: its own name of it

--- "completed" is done.
local statuses <const> = {
  completed = "done", complete = "done", finished = "done", todo = "pending", open = "pending", inprogress = "in_progress",
  started = "in_progress", active = "in_progress", cancelled = "dropped", canceled = "dropped", skipped = "dropped",
}

local function read_status(arguments)
  local status = arguments.status
  if type(status) == "string" then arguments.status = statuses[words.plain(status)] or status end
  return arguments
end

--- "3", "step 3" and "[step-3]" are step-3; "[check-3]" is check-3.
local function read_step(arguments)
  local step = type(arguments.step) == "string" and arguments.step or ""
  local number = step:match("%d+")
  if number then arguments.step = (step:find("check", 1, true) and "check-" or "step-") .. number end
  return arguments
end

local todo_add = {
  name = "todo_add", kind = "todo", called = { "add_todo", "create_todo", "add_task" },
  description = phrases.todo_add,
  accepted = {
    type = "object", order = { "title", "parent" }, required = json.array { "title" }, additionalProperties = false,
    properties = {
      title = { type = "string", minLength = 1 },
      parent = { type = "string", description = "Id of the item that this is part of." },
    },
  },
}

local todo_update = {
  name = "todo_update", kind = "todo", called = { "update_todo" }, read = read_status,
  description = phrases.todo_update, order = { "id", "status", "title", "position", "note" },
  accepted = {
    type = "object", order = { "id", "status", "title", "position", "note" }, required = json.array { "id" },
    additionalProperties = false,
    properties = {
      id = { type = "string" },
      status = { type = "string", enum = json.array { "pending", "in_progress", "done", "dropped" } },
      title = { type = "string", minLength = 1 },
      position = { type = "integer", minimum = 1, description = "New place in the list, from 1." },
      note = { type = "string" },
    },
  },
}

local read_output = {
  name = "read_output", kind = "read_output", read = read_step,
  description = phrases.read_output,
  order = { "step", "start_line", "end_line" }, descriptions = { step = "For example step-3" },
  accepted = {
    type = "object", order = { "step", "start_line", "end_line", "offset_bytes", "max_bytes" }, required = json.array { "step" },
    additionalProperties = false,
    properties = {
      step = { type = "string" },
      start_line = { type = "integer", minimum = 1 }, end_line = { type = "integer", minimum = 1 },
      offset_bytes = { type = "integer", minimum = 0 },
      max_bytes = { type = "integer", minimum = 1 },
    },
  },
}

local names_of_finish <const> = {
  "done", "complete", "completed", "submit", "end", "final_answer", "task_complete", "attempt_completion", "finished", "complete_task",
  "finish_task", "submit_answer",
}

local finish = {
  name = "finish", kind = "finish", called = names_of_finish, read = finishing.read,
  description = phrases.finish_with_criteria,
  accepted = {
    type = "object", order = { "answer", "status", "acceptance" }, required = json.array { "answer" }, additionalProperties = false,
    properties = {
      answer = { type = "string", description = phrases.answer },
      status = { type = "string", enum = json.array { "done", "failed" }, description = phrases.status },
      acceptance = {
        type = "array",
        description = "One entry for each criterion without a check.",
        items = {
          type = "object", order = { "criterion", "met", "evidence" }, required = json.array { "criterion", "met", "evidence" },
          additionalProperties = false,
          properties = {
            criterion = { type = "string", description = "The criterion's text or number." },
            met = { type = "boolean" },
            evidence = { type = "string", description = "The id of the step that shows it, and what it shows." },
          },
        },
      },
    },
  },
}

--- What a model is shown of a schema: the arguments in an order, each with its type and few words.
local function shown(schema, order, required, descriptions)
  local properties = {}
  for _, name in ipairs(order) do
    local full = schema.properties[name]
    properties[name] = { type = full.type, enum = full.enum, items = full.items, description = (descriptions or {})[name] }
  end
  return {
    type = "object", order = order, required = json.array(required), additionalProperties = false, properties = properties,
  }
end

---@param own table the name and kind of the tool, what it accepts, and what a model is shown of that
---@return agent.tool
local function tool_of(own)
  local schema = own.accepted
  return {
    name = own.name, kind = own.kind, description = own.description, read = own.read, called = own.called, accepted = schema,
    parameters = own.order and shown(schema, own.order, own.required or schema.required or {}, own.descriptions) or schema,
  }
end

local function step_tool(step)
  local own = step.for_model or {}
  return tool_of {
    name = step.name, kind = "step", accepted = step.arguments, description = own.summary or step.summary, order = own.order,
    required = own.required, descriptions = own.descriptions, called = own.called, read = own.read,
  }
end

--- finish as a job wants it: its answer may have to fit a schema, and without criteria to judge nothing is said of them.
local function finish_of(job)
  local schema, criteria = job and (job.inference or {}).answer_schema, job and job.context
  local own = { name = finish.name, kind = finish.kind, called = finish.called, read = finish.read, description = finish.description }
  own.accepted = finish.accepted
  if criteria and #acceptance.numbers(criteria) == #criteria.acceptance_criteria then
    own.description, own.order = phrases.finish, { "answer", "status" }
    own.descriptions = { answer = phrases.answer, status = phrases.status }
  end
  local tool = tool_of(own)
  if not schema then return tool end
  tool.accepted, tool.parameters = json.copy(tool.accepted), json.copy(tool.parameters)
  tool.accepted.properties.answer, tool.parameters.properties.answer = {}, schema
  return tool
end

---The tools that a job's model has.
---@param catalogue { all: fun(): sba.step[] }
---@param gateway? agent.tool[]
---@param job? sba.job nil: any
---@param has_todo? boolean whether the todo list's are shown; default: yes
---@return agent.tool[] shown in their order
---@return table<string, agent.tool> by_name of all that are accepted
---@return agent.tool[] accepted
function tools.list(catalogue, gateway, job, has_todo)
  local list, accepted, by_name = {}, {}, {}
  local function add(tool, is_hidden)
    accepted[#accepted + 1], by_name[tool.name] = tool, tool
    if not is_hidden then table.insert(list, tool.name == FIRST and 1 or #list + 1, tool) end
  end
  for _, step in ipairs(catalogue.all()) do
    if step.for_model ~= false then add(step_tool(step), (step.for_model or {}).hidden) end
  end
  for _, own in ipairs { todo_add, todo_update } do add(tool_of(own), has_todo == false) end
  add(tool_of(read_output))
  for _, tool in ipairs(gateway or {}) do add(tool) end
  add(finish_of(job))
  return list, by_name, accepted
end

---What tools cost in every request, until the server has counted them.
---@param list agent.tool[]
---@return integer tokens
function tools.cost(list)
  return math.ceil(meter.raw(tools_of.json(list)) * CHEAPER)
end

return tools
