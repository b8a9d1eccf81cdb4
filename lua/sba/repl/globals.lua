-- SPDX-License-Identifier: Apache-2.0
-- The globals of --lua besides Lua's own: job, prompt, step, result, help, and the modules as
-- native and sba. They raise failures.

local agent = require "sba.agent"
local bundle = require "native.bundle"
local catalogue = require "sba.catalogue"
local context = require "sba.job.context"
local documentation = require "sba.repl.documentation"
local entries = require "sba.result.entry"
local failures = require "sba.result.failure"
local file = require "native.file"
local humanize = require "sba.util.humanize"
local job = require "sba.job"
local json = require "sba.util.json"
local printable = require "sba.util.printable"
local process = require "native.process"
local prompt = require "sba.agent.prompt"
local real_path = require "native.confine".real_path
local record = require "sba.result.record"
local state = require "sba.run.state"
local step_context = require "sba.run.step_context"
local steps = require "sba.run.step"
local todo = require "sba.run.todo"
local workspace = require "native.workspace"

local globals = {}

local GRACE <const> = 2 -- seconds
local MOST_OUTPUT <const> = 1024 * 1024 -- bytes
local CONTEXT_LENGTH <const> = 32768 -- tokens
local LARGEST_RESULT <const> = 1024 * 1024 * 1024 -- bytes

-- A log or journal.
local silent <const> = { event = function() end }

local environment
local has_run_a_step = false

local function must(value, failure)
  if value ~= nil then return value end
  local lines = failure.lines
  if lines then failure.message = "not valid:\n  " .. table.concat(lines, "\n  ") end
  error(failure)
end

---@param path string
---@return sba.job
function globals.job(path)
  return must(job.parse(must(file.read(path, job.LARGEST)), catalogue, {}, function(given)
    return context.load(given, job.directory_of(path))
  end))
end

---System text, task, and the end of every request, of a job whose workspace is the current
---directory.
---@param path string
---@return string
function globals.prompt(path)
  local read, root, list = globals.job(path), must(workspace.open(must(real_path "."))), todo.new()
  local run = { job = read, workspace = root, artifacts = root, environment = environment,
    history = {}, log = silent, todo = list }
  local extras = agent.extras(run, { context_length = CONTEXT_LENGTH })
  list:fill(read, catalogue.what)
  return table.concat({
    prompt.system(read, extras), prompt.opening(read, extras),
    prompt.status(read.constraints.max_runtime_seconds, list.items),
  }, "\n")
end

-- Checked, aliases resolved, defaults filled.
local function job_of_step(type, arguments)
  local model = json.table_of(arguments).model
  return must(job.parse(json.encode {
    protocol_version = "1.0", job_id = "prompt", task_id = "prompt", execution_mode = "direct_steps",
    constraints = { max_runtime_seconds = 86400, max_output_bytes = MOST_OUTPUT },
    inference = model and { allowed_models = json.array { model } } or nil,
    steps = json.array { { type = type, arguments = arguments } },
  }, catalogue, {}))
end

---Reads a result.
---@param path? string default: result.json
---@return table
function globals.result(path)
  return must(json.decode_own(must(file.read(path or "result.json", LARGEST_RESULT))))
end

---Runs one step: step("write_file", { path = "a", content = "b" }).
---@param type string
---@param arguments? table as in a job; wrong ones are raised
---@param places? { workspace: string?, artifacts: string? } directories; default: the current one, and no artifacts
---@return table? result, table? entry nil and the whole entry of a step that failed
function globals.step(type, arguments, places)
  has_run_a_step = true
  places = places or {}
  local read = job_of_step(type, arguments)
  local step, module = read.steps[1], catalogue.get(type)
  local run = state.of {
    job = read, steps = read.steps, environment = environment, reserved_seconds = 0,
    record = record.new("prompt", "prompt"), history = { count = 0 },
    log = silent, journal = silent, todo = todo.new(),
    workspace = must(workspace.open(places.workspace or ".")),
    artifacts = places.artifacts and must(workspace.open(places.artifacts)) or nil,
  }
  run.context = step_context(run)
  run.context.tick = function() end
  local limit, call = entries.limit(step, run.context), module.run
  local entry = entries.make(module, limit,
    xpcall(call, failures.traced, step.arguments, run.context))
  if entry.status ~= "success" then steps.revert(run) end
  -- Removes the originals.
  if run.pending_undo then run.pending_undo:close() end
  run:disconnect()
  entry = json.decode_own(entries.joined(entries.encode(entry, module)))
  if entry.status == "success" then return entry.result end
  return nil, entry
end

---@type table<table, table<string, true>> names of fields
globals.namespaces = setmetatable({}, { __mode = "k" })

-- The modules below a prefix, each loaded when first asked for, and what the module of that name
-- offers.
local function namespace(prefix)
  local modules, own = bundle.list "", {}
  -- By what follows the prefix; is_directory: there are modules below it.
  local fields, is_directory = {}, {}
  for name in pairs(package.preload) do modules[#modules + 1] = name end
  for _, name in ipairs(modules) do
    if name == prefix then own = json.table_of(require(name)) end
    if name:sub(1, #prefix + 1) == prefix .. "." then
      local key, more = name:match("^([^.]+)(.*)", #prefix + 2)
      fields[key], is_directory[key] = true, is_directory[key] or more ~= ""
    end
  end
  for key in pairs(own) do fields[key] = true end
  local function load_field(space, key)
    local name, value = prefix .. "." .. tostring(key), own[key]
    local is_space = is_directory[key]
    if is_space then value = namespace(name) elseif is_space == false then value = require(name) end
    rawset(space, key, value)
    return value
  end
  local space = setmetatable({}, { __index = load_field })
  globals.namespaces[space] = fields
  return space
end

local OVERVIEW <const> = [[
An expression shows its values; _ is the first of the last ones. Tab completes,
Ctrl-R finds what was typed before, Ctrl-C stops what runs or drops the line.

%s  native.NAME, sba.NAME  modules, which need no `require`

Step types:
]]

-- What is at hand: how it is called, and what it does.
local FUNCTIONS <const> = {
  { "job(file)", "a job file, checked, with its context" },
  { "prompt(file)", "what a model is told at the beginning of it" },
  { "step(type, arguments, places)", [[runs one step here: step("list_tree", {path="."});
    with places = {workspace = DIR, artifacts = DIR}, there]] },
  { "result(file)", "a result, as a table: result().failure_message" },
  { "help(name)", "what a step type takes, what a module offers, or one of these" },
}

local function help_on_function(entry) return ("  %s\n    %s\n"):format(entry[1], entry[2]) end

local function help_on_step(step)
  local lines = {}
  for argument, schema in pairs(step.arguments.properties or {}) do
    local words = humanize.schema(schema) .. ". " .. (schema.description or "")
    lines[#lines + 1] = "  " .. argument .. "  " .. words .. "\n"
  end
  table.sort(lines)
  io.write(step.name, ": ", step.summary, "\n", table.concat(lines))
end

local function help_on_all()
  local functions = {}
  for i, entry in ipairs(FUNCTIONS) do functions[i] = help_on_function(entry) end
  io.write(OVERVIEW:format(table.concat(functions)))
  for _, step in ipairs(catalogue.all()) do io.write("  ", step.name, "  ", step.summary, "\n") end
  local modules = {}
  for _, prefix in ipairs { "native", "sba" } do
    for field in pairs(globals.namespaces[_G[prefix]]) do modules[#modules + 1] = prefix .. "." .. field end
  end
  table.sort(modules)
  io.write("\nModules: ", table.concat(modules, ", "), "\n")
end

-- Of a function that is at hand, or of one of a module: "native.file.read".
local function words_on(name)
  for _, entry in ipairs(FUNCTIONS) do
    if entry[1]:match("^%a+") == name then return help_on_function(entry) end
  end
  if documentation[name] then return documentation[name] .. "\n" end
end

---Prints what there is; or what a step type takes, a module, native type or function offers.
---@param name? string "list_tree", "native.file", "sba.util.retry", "job"
function globals.help(name)
  if name == nil then return help_on_all() end
  local step, said = catalogue.get(name), words_on(name)
  if step then return help_on_step(step) end
  local unknown = "nothing is called %s here; help() says what there is\n"
  io.write(said or unknown:format(printable.line(tostring(name))))
end

---Ends what steps have left running, as the end of a job does.
function globals.finish()
  if has_run_a_step then process.finish(GRACE) end
end

---@param variables_of_steps table<string, string>
function globals.install(variables_of_steps)
  environment = variables_of_steps
  for _, name in ipairs { "job", "prompt", "step", "result", "help" } do _G[name] = globals[name] end
  _G.native, _G.sba = namespace "native", namespace "sba"
end

return globals
