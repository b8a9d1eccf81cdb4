-- SPDX-License-Identifier: Apache-2.0
-- Connects to an allowed model at an endpoint that the environment names.

local ollama = require "sba.model.ollama"
local openai = require "sba.model.openai"
local printable = require "sba.util.printable"
local retry = require "sba.util.retry"
local secret = require "sba.util.secret"
local session = require "sba.model.session"
local text = require "native.text"
local wire = require "sba.model.wire"
local words = require "sba.util.words"

local inference = {}

local CONNECT_TRIES <const> = 3
local MOST_NAMED <const>, LONGEST_NAME <const> = 10, 100 -- models in a message; bytes
local TIMEOUT <const> = { connect = 10, first = 600, idle = 120, probe = 30 } -- seconds; a model may load for minutes
local CHAT <const> = "/chat/completions"
local SIDECAR <const> = "http://localhost:11434" -- of a node, in the job's pod: the only address that is built in

-- By source, in the order in which they are tried.
local dialects <const> = { worker = { ollama, openai }, api_egress = { openai } }
local variables <const> = {
  { name = "INFERENCE_PROXY_URL", source = "worker" }, { name = "OLLAMA_BASE_URL", source = "worker" },
  { name = "SBA_API_EGRESS_URL", source = "api_egress" }, { name = "OPENAI_BASE_URL", source = "api_egress" },
}

---@class inference.options
---@field environment table<string, string>
---@field allowed_models string[] no other is ever named in a request
---@field source? "worker"|"api_egress"|"orchestrator" orchestrator and nil: both
---@field http native.http.client
---@field on_wait? fun(failure: inference.failure, seconds: number)
---@field timeout? table<string, number> as of inference.endpoint
---@field policy? table<string, any> as of retry.policy

-- The address may name the chat itself, and have a query.
local function endpoint_at(address, name, options)
  local mark = address:find("?", 1, true) or #address + 1
  local base = text.trim_end(address:sub(1, mark - 1), "/")
  local exact = base:sub(-#CHAT) == CHAT
  return wire.endpoint {
    name = name, base = exact and base:sub(1, -#CHAT - 1) or base, exact = exact, query = address:sub(mark), http = options.http,
    timeout = setmetatable(options.timeout or {}, { __index = TIMEOUT }),
  }
end

---Lists endpoints in the order in which they are tried. is_guess: nobody named it, but others.
---@param options inference.options
---@return { endpoint: inference.endpoint, source: string, failure: native.failure?, is_guess: boolean? }[]
---@return string[]? missing the source's variables if none is set
function inference.candidates(options)
  local list, names, has, source = {}, {}, {}, options.source
  local function add(name, address, from)
    local one = { source = from, endpoint = endpoint_at(address, name, options) }
    if name == "OPENAI_BASE_URL" then one.endpoint.key, one.failure = secret.api_key() end
    list[#list + 1], has[from], has[one.endpoint.base] = one, true, true
    return one
  end
  for _, variable in ipairs(variables) do
    local address = options.environment[variable.name] or ""
    if not dialects[source] or source == variable.source then
      names[#names + 1] = variable.name
      if address ~= "" then add(variable.name, address, variable.source) end
    end
  end
  local missing = #list == 0 and names or nil
  local only_egress = source == "api_egress" or has.api_egress and not has.worker
  if not only_egress and not has[SIDECAR] then add("the sidecar", SIDECAR, "worker").is_guess = not missing end
  return list, missing
end

local function tagged(name)
  local last = name:match("^.*/(.*)$") or name
  return last:find(":", 1, true) and name or name .. ":latest"
end

local function wanted_of(options)
  local list, others, preferred = {}, {}, tagged(options.environment.INFERENCE_MODEL or "")
  for _, name in ipairs(options.allowed_models) do
    local into = tagged(name) == preferred and list or others
    into[#into + 1] = name
  end
  return table.move(others, 1, #others, #list + 1, list)
end

---@param served inference.served[]
---@param wanted string[] the first that is served wins
---@return inference.served? model as the job names it
function inference.choose(served, wanted)
  local by_name = {}
  for i = #served, 1, -1 do by_name[tagged(served[i].name)] = served[i] end
  for _, name in ipairs(wanted) do
    local one = by_name[tagged(name)]
    if one then return { name = name, entry = one.entry } end
  end
end

-- Tries the next dialect where there is no such path, or no JSON.
local function list_of(candidate)
  local first
  for _, dialect in ipairs(dialects[candidate.source]) do
    local served, failure = dialect.list(candidate.endpoint)
    if served then return dialect, served end
    first = first or failure
    local speaks_otherwise = failure.cause == "bad_answer" or failure.status and failure.status < 500 and failure.status ~= 429
    if not speaks_otherwise then break end
  end
  return nil, nil, first
end

local function names_of(served)
  local names = {}
  for i = 1, math.min(#served, MOST_NAMED) do names[i] = printable.line(served[i].name, LONGEST_NAME) end
  if #served > MOST_NAMED then names[#names + 1] = ("%d more"):format(#served - MOST_NAMED) end
  return names
end

local function connected(options, candidate, dialect, model, others)
  local description, failure = dialect.describe(candidate.endpoint, model)
  if not description then return nil, failure end
  return session.new {
    dialect = dialect, endpoint = candidate.endpoint, model = model.name, others = others, policy = retry.policy(options.policy),
    context_length = description.context_length, supports_tools = description.supports_tools, on_wait = options.on_wait,
  }
end

-- Statuses of an API Egress that lists no models: the wanted ones are tried in turn.
local lists_none <const> = { [404] = true, [405] = true, [501] = true }

local function try(options, candidate, wanted)
  local endpoint = candidate.endpoint
  if candidate.failure then return nil, endpoint:failure(candidate.failure) end
  local dialect, served, failure = list_of(candidate)
  if not dialect then
    if candidate.source ~= "api_egress" or not lists_none[failure.status] then return nil, failure end
    return connected(options, candidate, openai, { name = wanted[1], entry = {} }, table.move(wanted, 2, #wanted, 1, {}))
  end
  local model = inference.choose(served, wanted)
  if model then return connected(options, candidate, dialect, model) end
  return nil, endpoint:failure { code = "model_missing", message = ("%s serves none of the allowed models (%s); it has %s"):format(
    endpoint:place(), words.list(wanted, "and"), words.list(names_of(served), "and")) }
end

local function from_first(options, attempt)
  local candidates, missing = inference.candidates(options)
  local tried, transient = {}, false
  for i, candidate in ipairs(candidates) do
    local found, failure = attempt(candidate)
    if found then return found end
    if failure.code ~= "inference_unavailable" then return nil, failure end
    tried[i] = ("%s: %s"):format(candidate.endpoint.name, failure.message)
    transient = transient or failure.transient and not candidate.is_guess
  end
  local parts = {}
  if #tried > 0 then parts[1] = "no model can be reached: " .. table.concat(tried, "; ") end
  if missing then parts[#parts + 1] = "the environment names no endpoint for models; set " .. words.list(missing, "or") end
  return nil, {
    code = "inference_unavailable", cause = "no_endpoint", message = table.concat(parts, "; "), transient = transient,
  }
end

---Lists the models of the first endpoint that has any.
---@param options inference.options without allowed_models
---@return string[]? names, inference.failure?
function inference.served(options)
  return from_first(options, function(candidate)
    local _, served, failure = list_of(candidate)
    if served and #served > 0 then return names_of(served) end
    return nil, failure or { code = "inference_unavailable", message = "it has no model" }
  end)
end

---Failures: inference_unavailable, whose message says what was tried; timeout; cancelled.
---@param options inference.options
---@return inference.session?, inference.failure?
function inference.connect(options)
  local wanted, policy = wanted_of(options), retry.policy(options.policy)
  policy.tries = math.min(policy.tries, CONNECT_TRIES)
  return retry.run(policy, function()
    return from_first(options, function(candidate) return try(options, candidate, wanted) end)
  end, options.on_wait)
end

return inference
