-- SPDX-License-Identifier: Apache-2.0
-- The tools that the model is shown: the step types by their own schemas, the todo list, read_output, and finish. What the
-- gateway offers stands before finish.

local json = require "sba.util.json"
local meter = require "sba.run.agent.meter"
local schema_check = require "sba.util.schema_check"
local schemas = require "sba.inference.schemas"

local tools = {}

local CHEAPER <const> = 4 / 5 -- schemas cost less than other code: they are prose, and names that come again and again

---@class agent.tool
---@field name string
---@field description string
---@field parameters table|string JSON Schema; of a gateway's tool as JSON, to be passed on as it is
---@field kind "step"|"todo"|"read_output"|"gateway"|"finish"
---@field exact? boolean not called by a name that is only near to its own
---@field tool? string of a gateway's: its own name of it

local todo_add = {
  name = "todo_add", kind = "todo",
  description = "Add an item to the todo list. Answers with its id.",
  parameters = {
    type = "object", order = { "title", "parent" }, required = json.array { "title" }, additionalProperties = false,
    properties = {
      title = { type = "string", minLength = 1, description = "What is to be done, in a few words." },
      parent = { type = "string", description = "Id of the item that this is a part of." },
    },
  },
}

local todo_update = {
  name = "todo_update", kind = "todo",
  description = "Change an item of the todo list.",
  parameters = {
    type = "object", order = { "id", "status", "title", "position", "note" }, required = json.array { "id" },
    additionalProperties = false,
    properties = {
      id = { type = "string", description = "Which item." },
      status = { type = "string", enum = json.array { "pending", "in_progress", "done", "dropped" } },
      title = { type = "string", minLength = 1 },
      position = { type = "integer", minimum = 1, description = "New place in the list, from 1." },
      note = { type = "string", description = "A remark, for example why it was dropped." },
    },
  },
}

local read_output = {
  name = "read_output", kind = "read_output",
  description = "Read what was left out of an earlier step's output.",
  parameters = {
    type = "object", order = { "step", "offset_bytes", "max_bytes" }, required = json.array { "step" },
    additionalProperties = false,
    properties = {
      step = { type = "string", description = "Id of the step, for example step-3." },
      offset_bytes = { type = "integer", minimum = 0, description = "Where to begin; default 0." },
      max_bytes = { type = "integer", minimum = 1, description = "How much to read." },
    },
  },
}

local finish = {
  name = "finish", kind = "finish",
  description = "End the job. With acceptance criteria, each needs an entry whose evidence names a step of this job that "
    .. "succeeded and shows it, for example \"step-7: all tests pass\".",
  parameters = {
    type = "object", order = { "answer", "acceptance" }, required = json.array { "answer" }, additionalProperties = false,
    properties = {
      answer = { type = "string", description = "What was done, in a few sentences." },
      acceptance = {
        type = "array",
        description = "One entry for each acceptance criterion.",
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

local function step_tool(step)
  return { name = step.name, kind = "step", description = step.summary, parameters = step.arguments }
end

---The tools in the order in which they are shown.
---@param catalogue { all: fun(): sba.step[] }
---@param gateway? agent.tool[]
---@return agent.tool[] list, table<string, agent.tool> by_name
function tools.list(catalogue, gateway)
  local list, by_name = {}, {}
  for _, step in ipairs(catalogue.all()) do
    if step.for_model ~= false then list[#list + 1] = step_tool(step) end
  end
  for _, tool in ipairs { todo_add, todo_update, read_output } do list[#list + 1] = tool end
  for _, tool in ipairs(gateway or {}) do list[#list + 1] = tool end
  list[#list + 1] = finish
  for _, tool in ipairs(list) do by_name[tool.name] = tool end
  return list, by_name
end

---What tools cost in every request, until the server has counted them.
---@param list agent.tool[]
---@return integer tokens
function tools.cost(list)
  return math.ceil(meter.raw(schemas.tools(list)) * CHEAPER)
end

---Checks a call's arguments.
---@param tool agent.tool
---@param arguments table
---@param step? sba.step of a step tool
---@return table? arguments resolved, string? mistake one line for the model
function tools.check(tool, arguments, step)
  if tool.kind == "gateway" then return arguments end
  local checked, errors = schema_check.check(arguments, tool.parameters)
  if errors.total > 0 then
    local lines = {}
    for i = 1, math.min(#errors, 5) do lines[i] = schema_check.line(errors[i], "arguments") end
    return nil, table.concat(lines, "; ")
  end
  local mistake = step and step.check and step.check(checked)
  if mistake then return nil, mistake end
  return checked
end

return tools
