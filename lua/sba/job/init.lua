-- SPDX-License-Identifier: Apache-2.0
-- Bytes to a job: strict JSON, the schema, each step's arguments, every error at once.

local job_schema = require "sba.job.job_schema"
local json = require "sba.util.json"
local lazy = require "sba.util.lazy"
local schema_check = require "sba.util.schema_check"
local text = require "native.text"

local humanize = lazy "sba.util.humanize"
local json_place = lazy "sba.util.json_place"

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
local SHARED_ID <const> = "the id %s belongs to /steps/%d and /steps/%d; ids must be unique "
  .. "(a step without an id is step-N, N from 1)"
local switches <const> = {
  ["1"] = DIRECT, ["true"] = DIRECT, ["0"] = false, ["false"] = false, [""] = false,
}

---@class sba.job.secrets
---@field unknown fun(name: string): string? why there is no such secret
---@field notes? sba.schema.errors where that is no mistake: it is added to these

---@class sba.job.checker
---@field errors sba.schema.errors
---@field catalogue sba.job.catalogue
---@field secrets? sba.job.secrets
---@field mode? "direct_steps"|"agent_inference" nil: not known yet
local checker = {}
checker.__index = checker

function checker:refuse(pointer, message) schema_check.refuse(self.errors, pointer, message) end

local function is_given(value) return value ~= nil and value ~= json.null end

-- Returns the mode, if the environment asks for one; or nil and what is wrong with a variable.
local function mode_of_environment(environment)
  local mode = text.trim(environment.SBA_EXECUTION_MODE or "")
  local switch = text.trim(environment.SBA_DIRECT_STEPS or ""):lower()
  if mode == DIRECT or mode == AGENT then return mode end
  local mistake = "the environment variable %s must be %s, not %s"
  if mode ~= "" then
    local modes = DIRECT .. " or " .. AGENT
    return nil, mistake:format("SBA_EXECUTION_MODE", modes, humanize.quoted(mode))
  end
  if switches[switch] == nil then
    return nil, mistake:format("SBA_DIRECT_STEPS", "1 or 0", humanize.quoted(switch))
  end
  return switches[switch] or nil
end

local function mode_of_job(value)
  if value.execution_mode then return value.execution_mode end
  if #value.steps == 0 and value.inference then return AGENT end
  return DIRECT
end

function checker:check_version(version)
  local major = type(version) == "string" and version:match("^(%d+)%.%d+$")
  if major and major ~= MAJOR then
    local message = "protocol version %s is not supported; this runner speaks %s.x"
    self:refuse("/protocol_version", message:format(humanize.quoted(version), MAJOR))
  end
end

-- is_models: the step is a model's, which gets none.
function checker:check_secrets(wanted, pointer, is_models)
  for i, name in ipairs(wanted) do
    local place = ("%s/secrets/%d"):format(pointer, i - 1)
    local why = self.secrets and self.secrets.unknown(name)
    if is_models then
      self:refuse(place, "a model's commands get no secrets; only checks and direct jobs' steps do")
    elseif why then
      schema_check.refuse(self.secrets.notes or self.errors, place, why)
    end
  end
end

-- By the schema and the check of the step's type. The arguments get their final form.
function checker:check_arguments(step, pointer, is_models)
  local kind, before = self.catalogue.get(step.type), self.errors.total
  if not kind or not json.is_object(step.arguments) then return end
  step.arguments = schema_check.check(step.arguments, kind.arguments, self.errors, pointer)
  if self.errors.total > before then return end
  local wanted = step.arguments.secrets or {}
  if kind.takes_secrets then self:check_secrets(wanted, pointer, is_models) end
  if not kind.check then return end
  local mistake, argument = kind.check(step.arguments)
  if not mistake then return end
  if argument then pointer = pointer .. "/" .. schema_check.token(argument) end
  self:refuse(pointer, mistake)
end

-- A step without an id is step-N, N from 1.
function checker:settle_ids(steps)
  local owner = {}
  for i, step in ipairs(steps) do
    local is_object = json.is_object(step)
    local has_id = is_object and step.id ~= nil
    local id = has_id and step.id or "step-" .. i
    local other = owner[id]
    if other and type(id) == "string" then
      local message = SHARED_ID:format(humanize.quoted(id), other - 1, i - 1)
      self:refuse("/steps/" .. (has_id and i or other) - 1 .. "/id", message)
    end
    owner[id] = other or i
    if is_object then step.id = id end
  end
end

-- What only direct jobs have.
function checker:check_suggestion(step, pointer)
  local message = "is of direct jobs; in an agent's job the model sees each failure "
    .. "and decides what to do next"
  for _, name in ipairs { "on_failure", "always" } do
    if is_given(step[name]) then self:refuse(pointer .. "/" .. name, message) end
  end
end

-- names: what each step calls its arguments.
function checker:check_steps(steps, names)
  for i, step in ipairs(steps) do
    if schema_check.is_enough(self.errors) then return end
    local pointer = "/steps/" .. i - 1
    if json.is_object(step) then
      self:check_arguments(step, ("%s/%s"):format(pointer, names[i]), self.mode == AGENT)
      if self.mode == AGENT then self:check_suggestion(step, pointer) end
    end
  end
  self:settle_ids(steps)
end

function checker:check_criteria(criteria)
  for i, criterion in ipairs(criteria) do
    if json.is_object(criterion) and not schema_check.is_enough(self.errors) then
      local step = { type = "run_command", arguments = criterion.check }
      self:check_arguments(step, "/context/acceptance_criteria/" .. i - 1 .. "/check")
      criterion.check = step.arguments
    end
  end
end

-- Only if what names its files is well-formed.
function checker:load_context(value, load)
  if value.context ~= nil and not json.is_object(value.context) then return end
  for _, one in ipairs(self.errors) do
    if one.pointer:find("^/context") and not one.pointer:find("/check", 1, true) then return end
  end
  local loaded, mistakes = load(value.context)
  for _, one in ipairs(mistakes or {}) do self:refuse(one.pointer, one.message) end
  value.context = loaded
end

function checker:check(value, environment, load)
  local is_object, names = json.is_object(value), {}
  local has_steps = is_object and is_given(value.steps)
  for i, step in ipairs(has_steps and json.table_of(value.steps) or {}) do
    -- Before the check renames them.
    names[i] = is_given(json.table_of(step).args) and "args" or "arguments"
  end
  schema_check.check(value, job_schema(self.catalogue.names()), self.errors)
  local asked, mistake = mode_of_environment(environment)
  if mistake then self:refuse("", mistake) end
  if not is_object then return end
  self:check_version(value.protocol_version)
  if not has_steps and (asked or value.execution_mode) ~= AGENT then
    self:refuse("/steps", "is missing; expected an array (only a job of agent_inference may leave it out)")
  end
  -- Where none are given, the schema's default.
  local steps = json.is_array(value.steps) and value.steps
  self.mode = asked or steps and mode_of_job(value)
  if steps then self:check_steps(steps, names) end
  self:check_criteria(json.table_of(json.table_of(value.context).acceptance_criteria))
  if load then self:load_context(value, load) end
  if self.errors.total == 0 then value.execution_mode = self.mode end
end

-- Into the order of the file; errors at one place stay in theirs.
local function sort(errors, bytes)
  if #errors < 2 then return end
  local places, rank = json_place.of(bytes), {}
  for i, one in ipairs(errors) do rank[one] = places:offset(one.pointer) * #errors + i end
  table.sort(errors, function(a, b) return rank[a] < rank[b] end)
end

local function message_of(errors, lines)
  local message = "the job is not valid: " .. table.concat(lines, "; ")
  local more = errors.total - #lines
  return more > 0 and ("%s; and %d more"):format(message, more) or message
end

local function readable_id(value, name, otherwise)
  local id = json.table_of(value)[name]
  if type(id) == "string" then return id end
  return otherwise or ""
end

---@class sba.job.catalogue the step types
---@field names fun(): string[]
---@field get fun(name: string): sba.step?

---@param path string
---@return string? where what the job calls `/job/` is; nil: it came on stdin
function job.directory_of(path)
  if path == "-" then return nil end
  return path:match "^.*/" or "."
end

---@param bytes string
---@param catalogue sba.job.catalogue
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
    local self = { errors = errors, catalogue = catalogue, secrets = secrets }
    setmetatable(self, checker)
    self:check(value, environment, load)
    sort(errors, bytes)
  end
  if errors.total == 0 then return value end
  local lines = {}
  for i, one in ipairs(errors) do lines[i] = schema_check.line(one) end
  return nil, {
    code = "schema_validation", message = message_of(errors, lines),
    lines = lines, errors = errors, broken = broken,
    job_id = readable_id(value, "job_id", environment.CYNODE_JOB_ID),
    task_id = readable_id(value, "task_id", environment.CYNODE_TASK_ID),
  }
end

return job
