-- SPDX-License-Identifier: Apache-2.0
-- The globals of scripts and of the prompt of --lua, in addition to Lua's own: a look at what the runner would make of a job file, one
-- step alone, the modules, and help. Failures are raised, their messages with each mistake on a line.

local catalogue = require "sba.catalogue"
local context = require "sba.job.context"
local documentation = require "sba.repl.documentation"
local entries = require "sba.result.entry"
local facts = require "sba.agent.facts"
local failures = require "sba.result.failure"
local file = require "native.file"
local job = require "sba.job"
local json = require "sba.util.json"
local modules = require "sba.repl.modules"
local process = require "native.process"
local prompt = require "sba.agent.prompt"
local real_path = require "native.confine".real_path
local schema_check = require "sba.util.schema_check"
local state = require "sba.run.state"
local todo = require "sba.run.todo"
local words = require "sba.util.words"
local workspace = require "native.workspace"

local globals = {}

local GRACE <const> = 2 -- seconds
local LARGEST_JOB <const> = 64 * 1024 * 1024 -- bytes
local MOST_OUTPUT <const> = 1024 * 1024 -- bytes, of a step that is tried
local CONTEXT_LENGTH <const> = 32768 -- tokens, of a model that the prompt is for
local DEPTH <const> = 200 -- levels of its result

local environment
local tried = false -- whether a step was run

--- The value; else the failure is raised, with each mistake on a line of its own.
local function must(value, failure)
  if value ~= nil then return value end
  if failure.errors then
    local lines = { "not valid:" }
    for i, mistake in ipairs(failure.errors) do lines[i + 1] = "  " .. schema_check.line(mistake) end
    failure = { code = failure.code, message = table.concat(lines, "\n") }
  end
  error(failure)
end

---A job file, checked, with its context. Its mistakes are raised, each on a line.
---@param path string
---@return sba.job
function globals.job(path)
  local read = must(job.parse(must(file.read(path, LARGEST_JOB)), catalogue, {}))
  local loaded, errors = context.load(read.context, path:match("^.*/") or ".")
  read.context = must(loaded, errors and { code = "schema_validation", errors = errors })
  return read
end

---What a model is told at the beginning of a job whose workspace is the current directory: the system text, the task, and what comes
---last in every request.
---@param path string of the job
---@return string
function globals.prompt(path)
  local read, root = globals.job(path), must(workspace.open(must(real_path ".")))
  local wanted = prompt.wants_agents_md(read)
  local told = {
    facts = facts.of {
      workspace = root, artifacts = true, constraints = read.constraints, environment = environment, agents_md = wanted,
      context_length = CONTEXT_LENGTH,
    },
    has_todo = true, answer_schema = (read.inference or {}).answer_schema,
    agents_md = wanted and prompt.agents_md(root, CONTEXT_LENGTH) or nil,
  }
  local list = todo.new()
  list:fill(read, words.step)
  return table.concat({
    prompt.system(read, read.context, told), prompt.opening(read.context, told),
    prompt.status(read.constraints.max_runtime_seconds, list.items),
  }, "\n")
end

--- The step as a job would have it: checked, aliases resolved, defaults filled; in a job of its own.
local function job_of_step(type, arguments)
  local given = {
    protocol_version = "1.0", job_id = "prompt", task_id = "prompt", execution_mode = "direct_steps",
    constraints = { max_runtime_seconds = 86400, max_output_bytes = MOST_OUTPUT },
    steps = json.array { { type = type, arguments = arguments } },
  }
  local model = _G.type(arguments) == "table" and arguments.model
  if model then given.inference = { allowed_models = json.array { model } } end
  return must(job.parse(json.encode(given), catalogue, {}))
end

---Runs one step in the current directory: step("write_file", { path = "a", content = "b" }).
---@param type string
---@param arguments? table as in a job
---@return table? result, table? entry nil and the whole entry of a step that failed; wrong arguments are raised
function globals.step(type, arguments)
  tried = true
  local read = job_of_step(type, arguments)
  local step, module = read.steps[1], catalogue.get(type)
  local run = state.of {
    job = read, steps = read.steps, environment = environment, record = { count = 0 }, past = { entries = {} },
    log = { event = function() end }, journal = { event = function() end }, todo = todo.new(), workspace = must(workspace.open(".")),
  }
  run.context = run:step_context()
  run.context.tick = function() end
  local entry = entries.make(module, entries.limit(step, run.context), xpcall(module.run, failures.traced, step.arguments, run.context))
  run:disconnect()
  entry = json.decode(entries.encode(entry, module), { depth = DEPTH, values = math.maxinteger })
  if entry.status == "success" then return entry.result end
  return nil, entry
end

local OVERVIEW <const> = [[
An expression shows its values; _ is the first of the last ones. Tab completes,
Ctrl-R finds what was typed before, Ctrl-C stops what runs or drops the line.

  job(file)              a job file, checked, with its context
  prompt(file)           what a model is told at the beginning of it
  step(type, arguments)  runs one step here: step("list_tree", {path="."})
  native.NAME, sba.NAME  modules, which need no `require`
  help "NAME"            what a step type takes, what a module offers

Step types:
]]

---Prints what there is, what a step type takes, or the words of a module or native type.
---@param name? string "list_tree", "native.file", "sba.util.retry"
function globals.help(name)
  local step, lines = name and catalogue.get(name), {}
  if step then
    for argument, schema in pairs(step.arguments.properties or {}) do
      lines[#lines + 1] = ("  %s  %s. %s\n"):format(argument, words.schema(schema), schema.description or "")
    end
    table.sort(lines)
    io.write(step.name, ": ", step.summary, "\n", table.concat(lines))
  elseif documentation[name] then
    io.write(documentation[name], "\n")
  else
    io.write(OVERVIEW)
    for _, one in ipairs(catalogue.all()) do io.write("  ", one.name, "  ", one.summary, "\n") end
    for _, prefix in ipairs { "native", "sba" } do
      for field in pairs(modules.fields[_G[prefix]]) do lines[#lines + 1] = prefix .. "." .. field end
    end
    table.sort(lines)
    io.write("\nModules: ", table.concat(lines, ", "), "\n")
  end
end

---Ends what steps have left running, as the end of a job does.
function globals.finish()
  if tried then process.finish(GRACE) end
end

---Sets job, prompt, step, help, native and sba.
---@param variables_of_steps table<string, string>
function globals.install(variables_of_steps)
  environment = variables_of_steps
  for _, name in ipairs { "job", "prompt", "step", "help" } do _G[name] = globals[name] end
  _G.native, _G.sba = modules.below "native", modules.below "sba"
end

return globals
