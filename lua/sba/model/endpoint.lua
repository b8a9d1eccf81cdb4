-- SPDX-License-Identifier: Apache-2.0
-- Which endpoints there are, by the environment alone, and which of the allowed models one serves.

local secret = require "sba.util.secret"
local text = require "native.text"
local url = require "sba.util.url"

local endpoint = {}

-- What an endpoint of each source may speak, the first that answers.
local dialects = { worker = { "ollama", "chat_completions" }, api_egress = { "chat_completions" } }
-- The variables that name endpoints, in the order in which these are tried.
local variables = {
  { name = "INFERENCE_PROXY_URL", source = "worker" }, { name = "OLLAMA_BASE_URL", source = "worker" },
  { name = "SBA_API_EGRESS_URL", source = "api_egress" }, { name = "OPENAI_BASE_URL", source = "api_egress" },
}
-- Where a node's sidecar listens in the job's pod. It is the only address that is built in, and is tried last.
local SIDECAR <const> = "http://localhost:11434"

local TIMEOUT <const> = { connect = 10, first = 600, idle = 120, probe = 30 } -- seconds; a model may load for minutes

---@class inference.candidate
---@field endpoint inference.endpoint
---@field dialects string[] names of modules
---@field source "worker"|"api_egress"
---@field failure? native.failure why it cannot be used
---@field is_guess? boolean an address that nobody named, beside those that somebody did

local CHAT <const> = "/chat/completions"

--- The address without a slash at its end, whether it names the chat itself (its base is not completed then), and its query
--- with the question mark.
local function base_of(address)
  local mark = address:find("?", 1, true) or #address + 1
  local base, query = text.trim_end(address:sub(1, mark - 1), "/"), address:sub(mark)
  local exact = base:sub(-#CHAT) == CHAT
  return exact and base:sub(1, -#CHAT - 1) or base, exact, query
end

---The endpoints of a job, in the order in which they are tried.
---@param environment table<string, string>
---@param source? "worker"|"api_egress"|"orchestrator" orchestrator or nil: both
---@param http native.http.client
---@param timeout? table<string, number> other timeouts, in seconds
---@return inference.candidate[] candidates
---@return string[]? missing the source's variables if none of them is set
function endpoint.candidates(environment, source, http, timeout)
  local list, names, has = {}, {}, {}
  local function add(name, address, from)
    local base, exact, query = base_of(address)
    list[#list + 1] = {
      endpoint = {
        name = name, base = base, exact = exact, query = query, http = http,
        timeout = setmetatable(timeout or {}, { __index = TIMEOUT }),
      },
      dialects = dialects[from], source = from,
    }
    has[from], has[base] = true, true
    if name == "OPENAI_BASE_URL" then list[#list].endpoint.key, list[#list].failure = secret.api_key() end
  end
  for _, variable in ipairs(variables) do
    local address = environment[variable.name] or ""
    if not dialects[source] or source == variable.source then
      names[#names + 1] = variable.name
      if address ~= "" then add(variable.name, address, variable.source) end
    end
  end
  local missing = #list == 0 and names or nil
  local only_egress = source == "api_egress" or has.api_egress and not has.worker
  if not only_egress and not has[SIDECAR] then
    add("the sidecar", SIDECAR, "worker")
    list[#list].is_guess = not missing
  end
  return list, missing
end

--- A model without a tag is its ":latest".
local function tagged(name)
  local last = name:match("^.*/(.*)$") or name
  return last:find(":", 1, true) and name or name .. ":latest"
end

---The allowed models in the order in which they are wanted.
---@param allowed string[]
---@param preferred? string INFERENCE_MODEL
---@return string[]
function endpoint.wanted(allowed, preferred)
  local list, others, first = {}, {}, preferred and tagged(preferred)
  for _, name in ipairs(allowed) do
    local into = tagged(name) == first and list or others
    into[#into + 1] = name
  end
  return table.move(others, 1, #others, #list + 1, list)
end

---The first wanted model that is served.
---@param served inference.served[]
---@param wanted string[]
---@return inference.served? as the job names it
function endpoint.choose(served, wanted)
  local by_name = {}
  for i = #served, 1, -1 do by_name[tagged(served[i].name)] = served[i] end
  for _, name in ipairs(wanted) do
    local one = by_name[tagged(name)]
    if one then return { name = name, entry = one.entry } end
  end
end

---An endpoint for people: what names it and where it is.
---@param given inference.endpoint
---@return string
function endpoint.place(given)
  return ("%s (%s)"):format(given.name, url.shown(given.base))
end

return endpoint
