-- SPDX-License-Identifier: Apache-2.0
-- Bytes to a job: strict JSON, the schema, each step's arguments, every error at once.

local humanize = require "sba.util.humanize"
local job_schema = require "sba.job.job_schema"
local json = require "sba.util.json"
local json_place = require "sba.util.json_place"
local schema_check = require "sba.util.schema_check"
local text = require "native.text"

local job = { LARGEST = 64 * 1024 * 1024 } -- bytes

local MAJOR = "1"

---@class sba.job as job_schema.lua describes it: valid, in its final form, the mode decided
---@field job_id string
---@field task_id string
---@field constraints { max_runtime_seconds: integer, max_output_bytes: integer, ext_net_allowed: boolean }
---@field steps { id: string, type: string, arguments: table, what?: string }[] what: once the todo list has it
---@field execution_mode "direct_steps"|"agent_inference"

---@class sba.job.failure
---@field code "schema_validation"
---@field message string one line
---@field errors sba.schema.errors
---@field lines string[] the same as texts
---@field broken? sba.json.failure why it is not JSON
---@field job_id string what could be read, else CYNODE_JOB_ID, else ""
---@field task_id string likewise

local DIRECT <const>, AGENT <const> = "direct_steps", "agent_inference"
local switches <const> = { ["1"] = DIRECT, ["true"] = DIRECT, ["0"] = false, ["false"] = false, [""] = false }

-- Returns the mode; or nil and what is wrong with a variable.
local function mode_of_environment(environment)
  local mistake = "the environment variable %s must be %s, not %s"
  local named, switch = text.trim(environment.SBA_EXECUTION_MODE or ""), text.trim(environment.SBA_DIRECT_STEPS or ""):lower()
  if named == DIRECT or named == AGENT then return named end
  if named ~= "" then return nil, mistake:format("SBA_EXECUTION_MODE", DIRECT .. " or " .. AGENT, humanize.quoted(named)) end
  if switches[switch] == nil then return nil, mistake:format("SBA_DIRECT_STEPS", "1 or 0", humanize.quoted(switch)) end
  return switches[switch] or nil
end

local function mode_of_job(value)
  if value.execution_mode then return value.execution_mode end
  return #value.steps == 0 and value.inference and AGENT or DIRECT
end

local function check_version(value, errors)
  local version = value.protocol_version
  local major = type(version) == "string" and version:match("^(%d+)%.%d+$")
  if major and major ~= MAJOR then
    schema_check.refuse(errors, "/protocol_version",
      ("protocol version %s is not supported; this runner speaks %s.x"):format(humanize.quoted(version), MAJOR))
  end
end

local function is_given(value) return value ~= nil and value ~= json.null end

---@class sba.job.secrets
---@field unknown fun(name: string): string? why there is no such secret
---@field notes? sba.schema.errors where that is no mistake: it is added to these

-- is_models: the step is an agent's, which gets none.
local function check_secrets(wanted, pointer, errors, secrets, is_models)
  for i, name in ipairs(wanted) do
    local place, why = ("%s/secrets/%d"):format(pointer, i - 1), secrets and secrets.unknown(name)
    if is_models then
      schema_check.refuse(errors, place, "a model's commands get no secrets; only checks and direct jobs' steps do")
    elseif why then
      schema_check.refuse(secrets.notes or errors, place, why)
    end
  end
end

local function check_arguments(step, pointer, catalogue, errors, secrets, is_models)
  local kind, before = catalogue.get(step.type), errors.total
  if not kind or not json.is_object(step.arguments) then return end
  step.arguments = schema_check.check(step.arguments, kind.arguments, errors, pointer)
  if errors.total > before then return end
  if kind.takes_secrets then check_secrets(step.arguments.secrets or {}, pointer, errors, secrets, is_models) end
  if not kind.check then return end
  local mistake, argument = kind.check(step.arguments)
  if not mistake then return end
  if argument then pointer = pointer .. "/" .. schema_check.token(argument) end
  schema_check.refuse(errors, pointer, mistake)
end

local function settle_ids(steps, errors)
  local owner = {}
  for i, step in ipairs(steps) do
    local is_object = json.is_object(step)
    local has_id = is_object and step.id ~= nil
    local id = has_id and step.id or "step-" .. i
    local other = owner[id]
    if other and type(id) == "string" then
      schema_check.refuse(errors, ("/steps/%d/id"):format(has_id and i - 1 or other - 1),
        ("the id %s belongs to /steps/%d and /steps/%d; ids must be unique (a step without an id is step-N, N from 1)")
          :format(humanize.quoted(id), other - 1, i - 1))
    end
    owner[id] = other or i
    if is_object then step.id = id end
  end
end

-- What each step calls its arguments, before the check renames them.
local function names_of_arguments(steps)
  local names = {}
  for i, step in ipairs(json.is_array(steps) and steps or {}) do
    names[i] = json.is_object(step) and is_given(step.args) and "args" or "arguments"
  end
  return names
end

local function check_steps(steps, names, catalogue, errors, secrets, is_models)
  if not json.is_array(steps) then return end
  for i, step in ipairs(steps) do
    if schema_check.is_enough(errors) then return end
    if json.is_object(step) and type(step.type) == "string" then
      check_arguments(step, ("/steps/%d/%s"):format(i - 1, names[i]), catalogue, errors, secrets, is_models)
    end
  end
  settle_ids(steps, errors)
end

local function check_mode(steps, errors)
  for i, step in ipairs(steps) do
    for _, name in ipairs { "on_failure", "always" } do
      if json.is_object(step) and is_given(step[name]) then
        schema_check.refuse(errors, ("/steps/%d/%s"):format(i - 1, name),
          "is of direct jobs; in an agent's job the model sees each failure and decides what to do next")
      end
    end
  end
end

local function check_criteria(context, catalogue, errors, secrets)
  local criteria = json.is_object(context) and context.acceptance_criteria
  for i, criterion in ipairs(json.is_array(criteria) and criteria or {}) do
    if json.is_object(criterion) and not schema_check.is_enough(errors) then
      local step = { type = "run_command", arguments = criterion.check }
      check_arguments(step, ("/context/acceptance_criteria/%d/check"):format(i - 1), catalogue, errors, secrets)
      criterion.check = step.arguments
    end
  end
end

-- Only if what names its files is well-formed.
local function load_context(value, errors, load)
  if value.context ~= nil and not json.is_object(value.context) then return end
  for _, one in ipairs(errors) do
    if one.pointer:find("^/context") and not one.pointer:find("/check", 1, true) then return end
  end
  local loaded, mistakes = load(value.context)
  for _, one in ipairs(mistakes or {}) do schema_check.refuse(errors, one.pointer, one.message) end
  value.context = loaded
end

local function check_job(value, errors, catalogue, environment, load, secrets)
  local is_object = json.is_object(value)
  local has_steps, names = is_object and is_given(value.steps), names_of_arguments(is_object and value.steps)
  schema_check.check(value, job_schema(catalogue.names()), errors)
  local asked, mistake = mode_of_environment(environment)
  if mistake then schema_check.refuse(errors, "", mistake) end
  if not is_object then return end
  check_version(value, errors)
  if not has_steps and (asked or value.execution_mode) ~= AGENT then
    schema_check.refuse(errors, "/steps", "is missing; expected an array (only a job of agent_inference may leave it out)")
  end
  local mode = asked or json.is_array(value.steps) and mode_of_job(value)
  check_steps(value.steps, names, catalogue, errors, secrets, mode == AGENT)
  check_criteria(value.context, catalogue, errors, secrets)
  if load then load_context(value, errors, load) end
  if mode == AGENT and json.is_array(value.steps) then check_mode(value.steps, errors) end
  if errors.total == 0 then value.execution_mode = mode end
end

-- Into the order of the file; errors at one place stay in theirs.
local function sort(errors, bytes)
  if #errors < 2 then return end
  local places, offsets, number = json_place.of(bytes), {}, {}
  for i, one in ipairs(errors) do offsets[one], number[one] = places:offset(one.pointer), i end
  table.sort(errors, function(a, b)
    if offsets[a] ~= offsets[b] then return offsets[a] < offsets[b] end
    return number[a] < number[b]
  end)
end

local function message_of(errors, lines)
  local more = errors.total - #lines
  return "the job is not valid: " .. table.concat(lines, "; ") .. (more > 0 and ("; and %d more"):format(more) or "")
end

local function readable_id(value, name, otherwise)
  local id = json.is_object(value) and value[name]
  return type(id) == "string" and id or otherwise or ""
end

---@param bytes string
---@param catalogue { names: (fun(): string[]), get: (fun(name: string): sba.step?) } the step types
---@param environment table<string, string>
---@param load? fun(context?: table): sba.context?, sba.schema.errors? gives the job's context
---@param secrets? sba.job.secrets of the operator; nil: which there are is not looked at
---@return sba.job?, sba.job.failure?
function job.parse(bytes, catalogue, environment, load, secrets)
  local value, broken = json.decode(bytes)
  local errors = { total = 0 }
  if broken then
    schema_check.refuse(errors, "", broken.message)
  else
    check_job(value, errors, catalogue, environment, load, secrets)
    sort(errors, bytes)
  end
  if errors.total == 0 then return value end
  local lines = {}
  for i, one in ipairs(errors) do lines[i] = schema_check.line(one) end
  return nil, {
    code = "schema_validation", message = message_of(errors, lines), lines = lines, errors = errors, broken = broken,
    job_id = readable_id(value, "job_id", environment.CYNODE_JOB_ID),
    task_id = readable_id(value, "task_id", environment.CYNODE_TASK_ID),
  }
end

return job
