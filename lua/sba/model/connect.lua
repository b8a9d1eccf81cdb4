-- SPDX-License-Identifier: Apache-2.0
-- Connects to an allowed model: the addresses that the environment names are tried in their order,
-- at each its dialects, and of what is served the first model that the job allows.

local humanize = require "sba.util.humanize"
local interrupt = require "native.interrupt"
local ollama = require "sba.model.dialects.ollama"
local openai = require "sba.model.dialects.openai"
local printable = require "sba.util.printable"
local retry = require "sba.util.retry"
local secret = require "sba.util.secret"
local session = require "sba.model.session"
local text = require "native.text"
local wire = require "sba.model.wire"

local connect = {}

---@class model.options
---@field environment table<string, string>
---@field allowed_models string[] no other is ever named in a request
---@field source? "worker"|"api_egress"|"orchestrator" orchestrator and nil: both
---@field http native.http.client
---@field on_move? fun(move: model.move, failure: model.failure)
---@field on_wait? fun(failure: model.failure, seconds: number)
---@field on_text? fun(piece: string) as of model.session
---@field timeout? table<string, number> as of model.endpoint
---@field policy? table<string, any> as of retry.policy

-- Seconds. The first byte of a reply has no limit but the job's time: a small machine reads a long
-- prompt for minutes.
local TIMEOUT <const> = { connect = 10, first = 1e8, probe = 30 }
local CHAT <const> = "/chat/completions"
-- Of a node, in the job's pod: the only address that is built in.
local SIDECAR <const> = "http://localhost:11434"
local SIDECAR_PATIENCE <const> = 90 -- seconds for it, where no other is named
-- Models in a message, and bytes of a name.
local MOST_NAMED <const>, LONGEST_NAME <const> = 10, 100

---By source, in the order in which they are tried.
---@type table<string, model.dialect[]>
connect.dialects = { worker = { ollama, openai }, api_egress = { openai } }
local variables <const> = {
  { name = "INFERENCE_PROXY_URL", source = "worker" }, { name = "OLLAMA_BASE_URL", source = "worker" },
  { name = "SBA_API_EGRESS_URL", source = "api_egress" }, { name = "OPENAI_BASE_URL", source = "api_egress" },
}

-- The address may name the chat itself, and have a query.
local function endpoint_at(address, name, options)
  local mark = address:find("?", 1, true) or #address + 1
  local base = text.trim_end(address:sub(1, mark - 1), "/")
  local exact = base:sub(-#CHAT) == CHAT
  if exact then base = base:sub(1, -#CHAT - 1) end
  return wire.endpoint {
    name = name, base = base, exact = exact, query = address:sub(mark), http = options.http,
    timeout = setmetatable(options.timeout or {}, { __index = TIMEOUT }),
  }
end

---@class model.candidate
---@field endpoint model.endpoint
---@field source "worker"|"api_egress"
---@field failure? native.failure why its key cannot be read
---@field is_guess? boolean nobody named it, but others

---Lists endpoints in the order in which they are tried.
---@param options model.options
---@return model.candidate[]
---@return string[]? missing the source's variables if none is set
function connect.candidates(options)
  local list, names, there = {}, {}, {} -- there: sources, and URLs
  local wanted = options.source
  local function add(name, address, source)
    local one = { source = source, endpoint = endpoint_at(address, name, options) }
    if name == "OPENAI_BASE_URL" then one.endpoint.key, one.failure = secret.api_key() end
    list[#list + 1] = one
    there[source], there[one.endpoint.base] = true, true
    return one
  end
  for _, variable in ipairs(variables) do
    local address = options.environment[variable.name] or ""
    if not connect.dialects[wanted] or wanted == variable.source then
      names[#names + 1] = variable.name
      if address ~= "" then add(variable.name, address, variable.source) end
    end
  end
  local missing = #list == 0 and names or nil
  local only_egress = wanted == "api_egress" or there.api_egress and not there.worker
  if not only_egress and not there[SIDECAR] then add("the sidecar", SIDECAR, "worker").is_guess = not missing end
  return list, missing
end

-- What passes is waited for until the job's deadline.
local function patience(changes)
  local policy = retry.policy(changes)
  if interrupt.remaining() and not (changes and changes.tries) then policy.tries = math.huge end
  return policy
end

-- As Ollama has it: "qwen3" is "qwen3:latest". A host may have a port ("host:5000/qwen3").
local function tagged(name)
  local last = name:match("^.*/(.*)$") or name
  return last:find(":", 1, true) and name or name .. ":latest"
end

local function wanted_of(options)
  local list, preferred = {}, tagged(options.environment.INFERENCE_MODEL or "")
  for _, name in ipairs(options.allowed_models) do
    table.insert(list, tagged(name) == preferred and 1 or #list + 1, name)
  end
  return list
end

---@param served model.served[]
---@param wanted string[] the first that is served wins
---@return model.served? model as the job names it
function connect.choose(served, wanted)
  local by_name = {}
  for i = #served, 1, -1 do by_name[tagged(served[i].name)] = served[i] end
  for _, name in ipairs(wanted) do
    local one = by_name[tagged(name)]
    if one then return { name = name, entry = one.entry } end
  end
end

-- Whether the chat may work all the same: a key may not see the list, a gateway may have none.
local function may_chat(candidate, failure)
  local status, cause = failure.status, failure.cause
  if status == 404 or cause == "bad_answer" then return candidate.source == "api_egress" end
  if status == 500 or cause == "no_list" then return true end
  return status ~= nil and status >= 400 and not failure.transient
end

-- Tries the next dialect where there is no such path, or no JSON. Returns the dialect and the list;
-- or the dialect whose chat may work without one, nil and the first failure.
local function list_of(candidate)
  local first, chat
  for _, dialect in ipairs(connect.dialects[candidate.source]) do
    local served, failure = dialect.list(candidate.endpoint)
    if served then return dialect, served end
    first = first or failure
    if not chat and may_chat(candidate, failure) then chat = dialect end
    local status, cause = failure.status or 500, failure.cause
    local is_other = cause == "bad_answer" or cause == "no_list"
    if not is_other and (status >= 500 or status == 429) then break end
  end
  return chat, nil, first
end

local function names_of(served)
  local names, last = {}, math.min(#served, MOST_NAMED)
  for i = 1, last do names[i] = printable.line(served[i].name, LONGEST_NAME) end
  if last < #served then names[last + 1] = ("%d more"):format(#served - last) end
  return names
end

local function connected(options, candidate, dialect, model, others)
  local about, failure = dialect.describe(candidate.endpoint, model)
  if not about then return nil, failure end
  return session.new {
    dialect = dialect, endpoint = candidate.endpoint, model = model.name, others = others or {},
    context_length = about.context_length, temperature = about.temperature,
    supports_tools = about.supports_tools, policy = patience(options.policy),
    on_wait = options.on_wait, on_move = options.on_move, on_text = options.on_text,
  }
end

local NONE_OF <const> = "%s serves none of the allowed models (%s); it has %s"

-- without_list: candidates whose chat may work, for when no other lists an allowed model.
local function try(options, candidate, wanted, without_list)
  local endpoint = candidate.endpoint
  if candidate.failure then return nil, endpoint:failure(candidate.failure) end
  local dialect, served, failure = list_of(candidate)
  if dialect and (not served or #served == 0) then
    without_list[#without_list + 1] = { candidate = candidate, dialect = dialect }
  end
  if not served then return nil, failure end
  local model = connect.choose(served, wanted)
  if model then return connected(options, candidate, dialect, model) end
  local allowed, names = humanize.list(wanted, "and"), humanize.list(names_of(served), "and")
  return endpoint:failed("model_missing", NONE_OF:format(endpoint:display_url(), allowed, names))
end

local NO_ENDPOINT <const> = "the environment names no endpoint for models; set "

local function from_first(options, attempt)
  local candidates, missing = connect.candidates(options)
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
  if missing then parts[#parts + 1] = NO_ENDPOINT .. humanize.list(missing, "or") end
  local message = table.concat(parts, "; ")
  return nil, { code = "inference_unavailable", message = message, transient = transient }
end

-- The allowed models are asked in turn where nothing lists one.
local function find(options, wanted)
  local without_list = {}
  local found, failure = from_first(options, function(candidate)
    return try(options, candidate, wanted, without_list)
  end)
  local first = without_list[1]
  if found or not first then return found, failure end
  local model, others = { name = wanted[1], entry = {} }, table.move(wanted, 2, #wanted, 1, {})
  return connected(options, first.candidate, first.dialect, model, others)
end

---Lists the models of the first endpoint that has any.
---@param options model.options without allowed_models
---@return string[]? names, model.failure?
function connect.served(options)
  return from_first(options, function(candidate)
    local _, served, failure = list_of(candidate)
    if served and #served > 0 then return names_of(served) end
    return nil, failure or { code = "inference_unavailable", message = "it has no model" }
  end)
end

---Failures: inference_unavailable, whose message says what was tried; timeout; cancelled.
---@param options model.options
---@return model.session?, model.failure?
function connect.connect(options)
  local wanted, policy = wanted_of(options), patience(options.policy)
  local _, missing = connect.candidates(options)
  local patient = math.min(SIDECAR_PATIENCE, interrupt.remaining() or math.huge)
  if missing then policy.until_when = interrupt.now() + patient end
  local found, failure = retry.run(policy, function() return find(options, wanted) end, options.on_wait)
  if failure then failure.unanswered = failure.code ~= "cancelled" end
  return found, failure
end

return connect
