-- SPDX-License-Identifier: Apache-2.0
-- Which endpoints there are, by the environment alone, and which of the allowed models one serves.

local first_set = require "sba.util.first_set"
local text = require "native.text"
local url = require "sba.util.url"

local endpoint = {}

-- Where a source's endpoint is named, and what it may speak, the first that answers.
local sources = {
  worker = { variables = { "INFERENCE_PROXY_URL", "OLLAMA_BASE_URL" }, dialects = { "ollama", "chat_completions" } },
  api_egress = { variables = { "SBA_API_EGRESS_URL", "OPENAI_BASE_URL" }, dialects = { "chat_completions" } },
}

local TIMEOUT <const> = { connect = 10, first = 600, idle = 120, probe = 30 } -- seconds; a model may load for minutes

---@class inference.candidate
---@field endpoint inference.endpoint
---@field dialects string[] names of modules
---@field source "worker"|"api_egress"

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
---@param source? "worker"|"api_egress"|"orchestrator" orchestrator or nil: first the worker's, then API Egress
---@param http native.http.client
---@param timeout? table<string, number> other timeouts, in seconds
---@return inference.candidate[] candidates, string[] missing names of variables of which one would help
function endpoint.candidates(environment, source, http, timeout)
  local list, missing = {}, {}
  for _, name in ipairs(sources[source] and { source } or { "worker", "api_egress" }) do
    local base, variable = first_set(environment, sources[name].variables)
    if base then
      local address, exact, query = base_of(base)
      list[#list + 1] = {
        endpoint = {
          variable = variable, base = address, exact = exact, query = query, http = http,
          timeout = setmetatable(timeout or {}, { __index = TIMEOUT }),
        },
        dialects = sources[name].dialects, source = name,
      }
    else
      table.move(sources[name].variables, 1, 2, #missing + 1, missing)
    end
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

---An endpoint for people: the variable and where it points to.
---@param given inference.endpoint
---@return string
function endpoint.place(given)
  return ("%s (%s)"):format(given.variable, url.shown(given.base))
end

return endpoint
