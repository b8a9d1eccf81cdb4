-- SPDX-License-Identifier: Apache-2.0
-- Where models may be asked: the addresses that the environment names, in the order in which they are tried.

local ollama = require "sba.model.ollama"
local openai = require "sba.model.openai"
local secret = require "sba.util.secret"
local text = require "native.text"
local wire = require "sba.model.wire"

local connect = {}

-- Seconds. The first byte of a reply has no limit but the job's time: a small machine reads a long prompt for minutes.
local TIMEOUT <const> = { connect = 10, first = 1e8, probe = 30 }
local CHAT <const> = "/chat/completions"
local SIDECAR <const> = "http://localhost:11434" -- of a node, in the job's pod: the only address that is built in

---By source, in the order in which they are tried.
---@type table<string, inference.dialect[]>
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
  return wire.endpoint {
    name = name, base = exact and base:sub(1, -#CHAT - 1) or base, exact = exact, query = address:sub(mark),
    http = options.http, timeout = setmetatable(options.timeout or {}, { __index = TIMEOUT }),
  }
end

---Lists endpoints in the order in which they are tried. is_guess: nobody named it, but others.
---@param options inference.options
---@return { endpoint: inference.endpoint, source: string, failure: native.failure?, is_guess: boolean? }[]
---@return string[]? missing the source's variables if none is set
function connect.candidates(options)
  local list, names, has = {}, {}, {}
  local source = options.source
  local function add(name, address, from)
    local one = { source = from, endpoint = endpoint_at(address, name, options) }
    if name == "OPENAI_BASE_URL" then one.endpoint.key, one.failure = secret.api_key() end
    list[#list + 1] = one
    has[from], has[one.endpoint.base] = true, true
    return one
  end
  for _, variable in ipairs(variables) do
    local address = options.environment[variable.name] or ""
    if not connect.dialects[source] or source == variable.source then
      names[#names + 1] = variable.name
      if address ~= "" then add(variable.name, address, variable.source) end
    end
  end
  local missing = #list == 0 and names or nil
  local only_egress = source == "api_egress" or has.api_egress and not has.worker
  if not only_egress and not has[SIDECAR] then add("the sidecar", SIDECAR, "worker").is_guess = not missing end
  return list, missing
end

return connect
