-- SPDX-License-Identifier: Apache-2.0
-- The tools of the gateway that the environment names: lists those that a job may call, and calls
-- them with the job's identifiers. Failures are those of mcp/transport.lua and rules.lua,
-- "no_gateway", "invalid_token" and "unknown_tool".

local http = require "sba.util.http"
local json = require "sba.util.json"
local mcp = require "sba.gateway.mcp"
local plain = require "sba.gateway.plain"
local retry = require "sba.util.retry"
local rules = require "sba.gateway.rules"
local secret = require "sba.util.secret"
local transport = require "sba.gateway.mcp.transport"

local gateway = {}

local TRIES <const> = 4 -- of each request
local FIRST_WAIT <const> = 0.25 -- seconds before the second try

---@class gateway.options
---@field environment table<string, string>
---@field http native.http.client
---@field job_id string
---@field task_id string
---@field ext_net_allowed boolean
---@field token? string
---@field renew_token? fun(): string? another token, if there is one now
---@field answer_timeout? number as in mcp.options

---@class gateway.tool
---@field tool string its name
---@field description string
---@field parameters table JSON Schema without task_id and job_id

---@class gateway.client an MCP server, or a gateway of the plain form
---@field form "mcp"|"plain"
---@field era? "legacy"|"modern" of MCP
---@field connection mcp.connection
---@field largest_file? integer bytes of a file in a call; nil: files are streamed
---@field dropped { name: string, reason: string }[] unusable tools of the last list
---@field instructions? string
---@field list fun(self: gateway.client, limits: mcp.limits): mcp.tool[]?, mcp.failure?
---@field call fun(self, name: string, arguments: table, limits: mcp.limits): gateway.answer?, mcp.failure?
---@field has_changed fun(self: gateway.client): boolean?
---@field close fun(self: gateway.client)

---@class gateway
---@field client gateway.client
---@field instructions? string without secrets
---@field variable string of the environment that has the address
---@field renew_token? fun(): string?
---@field ext_net_allowed boolean
---@field ids table<string, string> task_id and job_id
---@field listed? gateway.tool[] nil: the gateway is not asked yet
---@field filled table<string, table<string, true>> by tool: which of the ids it takes
local methods = {}
methods.__index = methods

-- For requests without effects. After a timeout the next would most likely time out too.
local slow <const> = { slow_connect = true, slow_first_byte = true, slow_answer = true }
local function is_quick(failure) return not slow[failure.code] end

-- For calls: only those that were surely not carried out.
local unsent <const> = {
  connection_refused = true, network_unreachable = true, name_not_resolved = true, proxy_failed = true,
}
local function is_unsent(failure)
  return unsent[failure.code] or failure.status == 429 and failure.retry_after ~= nil
end

-- Tries until it succeeds, may not be tried again, or the time is up. The token may be replaced
-- while the job runs: an attempt that was refused for it is made once more with the new one.
-- holder: its token is the one that is sent.
local function try(attempt, holder, renew_token, may_repeat, limits)
  local policy = retry.policy { tries = TRIES, first = FIRST_WAIT, until_when = limits.until_when }
  policy.may_repeat = may_repeat
  return retry.run(policy, function()
    local result, failure = attempt()
    if result ~= nil or failure.status ~= 401 then return result, failure end
    local token = renew_token and renew_token()
    if not token or not transport.fits_a_header(token) then return nil, failure end
    holder.token = token
    return attempt()
  end)
end

-- The plain form where the address names it, or no MCP server is there.
local function reach(options, limits)
  local form = plain.at(options)
  if plain.is_named_by(options.url) then return form end
  local server, failure = mcp.connect(options, limits)
  if server or failure.code ~= "not_mcp" then return server, failure end
  local is_there, unknown = form:probe(limits)
  if is_there then return form end
  failure.message = failure.message .. "; it does not accept POST /v1/mcp/tools/call either"
  return nil, unknown or failure
end

local function name_variable(variable, failure)
  if failure.code == "invalid_url" then failure.message = variable .. ": " .. failure.message end
  return failure
end

---@param options gateway.options
---@param limits? mcp.limits
---@return gateway?, mcp.failure?
function gateway.connect(options, limits)
  local address, variable = rules.address(options.environment)
  if not address then
    return nil, http.failure("no_gateway", "the environment names no MCP gateway (SBA_MCP_GATEWAY_URL)")
  end
  local token = options.token
  if token and not transport.fits_a_header(token) then
    return nil, http.failure("invalid_token", "the agent's token has characters that a header cannot carry")
  end
  limits = limits or {}
  local server = { url = address, http = options.http, token = token }
  server.answer_timeout = options.answer_timeout
  local function attempt() return reach(server, limits) end
  local client, failure = try(attempt, server, options.renew_token, is_quick, limits)
  if not client then return nil, name_variable(variable, failure) end
  return setmetatable({
    client = client, variable = variable, renew_token = options.renew_token, filled = {},
    ids = { task_id = options.task_id, job_id = options.job_id },
    ext_net_allowed = options.ext_net_allowed == true, instructions = secret.clean(client.instructions),
  }, methods)
end

-- Returns the schema without the properties that the runner fills in, and their names.
local function without_ids(schema, ids)
  local result, filled = json.copy(schema), {}
  local properties, required = json.table_of(result.properties), json.table_of(result.required)
  for name in pairs(ids) do
    if properties[name] ~= nil then filled[name], properties[name] = true, nil end
  end
  for i = #required, 1, -1 do
    if filled[required[i]] then table.remove(required, i) end
  end
  return result, filled
end

local function description_of(tool)
  local words = tool.description
  if type(words) ~= "string" or words == "" then words = tool.title end
  return type(words) == "string" and secret.redact(words) or ""
end

local function read_list(self, limits)
  local client = self.client
  local function attempt() return client:list(limits) end
  local listed, failure = try(attempt, client.connection, self.renew_token, is_quick, limits)
  if not listed then return nil, failure end
  self.listed, self.filled = {}, {}
  for _, tool in ipairs(listed) do
    local name = tool.name
    if not rules.refusal(name, self.ext_net_allowed) then
      local one = { tool = name, description = description_of(tool) }
      one.parameters, self.filled[name] = without_ids(tool.inputSchema, self.ids)
      -- Defaults and enumerations, too, may hold a secret.
      secret.clean(one.parameters)
      table.insert(self.listed, one)
    end
  end
  return self.listed
end

---Asks the gateway once.
---@return gateway.tool[]?, mcp.failure?
function methods:tools()
  if self.listed then return self.listed end
  return read_list(self, {})
end

---Asks the gateway again where it has said that its tools are others.
---@return gateway.tool[]?, mcp.failure? both nil: they are as they were
function methods:changed_tools()
  if not self.client:has_changed() then return nil end
  return read_list(self, {})
end

-- The list is read once more for a tool that is not in it; in the plain form the gateway decides.
local function filled_for(self, name, limits)
  local refusal = rules.refusal(name, self.ext_net_allowed)
  if refusal then return nil, refusal end
  if not self.filled[name] then
    local tools, failure = read_list(self, limits)
    if not tools then return nil, failure end
  end
  local filled = self.filled[name] or self.client.form == "plain" and self.ids
  if filled then return filled end
  return self.client.connection:failed("unknown_tool", "has no tool %s for this job", http.shown(name))
end

-- Failures of a call that may have been carried out.
local unknown_ends <const> = { cut_off = true, slow_first_byte = true, slow_answer = true }
-- A block's type is one of the protocol's names, never a secret.
local answer_schema <const> = { properties = { parts = { items = { properties = { type = {} } } } } }

---@class gateway.limits: mcp.limits of all tries
---@field repeatable? boolean tried again even if it may have been carried out

---Adds the job's identifiers where the tool takes them. The answer is without secrets.
---@param name string
---@param arguments table one value may be an opened file, sent as base64
---@param limits? gateway.limits
---@return gateway.answer?, mcp.failure?
function methods:call(name, arguments, limits)
  limits = limits or {}
  local filled, failure = filled_for(self, name, limits)
  if not filled then return nil, failure end
  arguments = json.copy(arguments)
  for id in pairs(filled) do arguments[id] = self.ids[id] end
  local client, may_repeat = self.client, limits.repeatable and is_quick or is_unsent
  local function attempt() return client:call(name, arguments, limits) end
  local answer, problem = try(attempt, client.connection, self.renew_token, may_repeat, limits)
  if answer then return secret.clean(answer, answer_schema) end
  if unknown_ends[problem.code] then problem.message = problem.message .. "; the call may still have run" end
  return nil, name_variable(self.variable, problem)
end

function methods:close() self.client:close() end

return gateway
