-- SPDX-License-Identifier: Apache-2.0
-- A gateway without MCP: POST /v1/mcp/tools/call with {"tool_name", "arguments"}. It cannot list its tools. Behind a node's proxy
-- (mcp:call) the same call is sent in an envelope: a JSON object whose body is base64.

local http = require "sba.util.http"
local json = require "sba.util.json"
local text = require "native.text"
local transport = require "sba.gateway.mcp.transport"

local post_form = {}

local PATH <const> = "/v1/mcp/tools/call"
local VERSION <const> = 1
local PROXY <const> = "mcp:call" -- the end of the proxy's path
local LARGEST_ENVELOPE <const> = 10 * 1024 * 1024 -- bytes of a request that a node takes
local OVERHEAD <const> = 1024 -- bytes of an envelope around its body, at most
local LARGEST_BODY <const> = (LARGEST_ENVELOPE - OVERHEAD) // 4 * 3 -- bytes before base64
local LARGEST_PROBE <const> = 64 * 1024 -- bytes of the answer to a probe that are read

local LARGEST_FILE <const> = (LARGEST_BODY - 65536) // 4 * 3 -- bytes of a file that fits into a call as base64, with its other arguments

--- Whether a URL is that of a node's proxy.
local function is_proxy(url)
  local path = url:match "^[^?#]*"
  return path:sub(-#PROXY) == PROXY
end

--- A request as the proxy takes it: an object whose body is base64. Nil and too_large where it has no room.
local function wrap(path, body)
  if #body > LARGEST_BODY then
    return nil, http.failure("too_large", ("the call has %d bytes; the node's proxy accepts at most %d"):format(#body, LARGEST_BODY))
  end
  return {
    version = VERSION, method = "POST", path = path, headers = { ["Content-Type"] = json.array { "application/json" } },
    body_b64 = text.base64_encode(body),
  }
end

--- The gateway's status and body in the proxy's answer; nil and what is wrong with the answer.
local function unwrap(bytes)
  local value, problem = json.decode(bytes)
  if not json.is_object(value) then return nil, problem and "that is not JSON: " .. problem.message or "that is not an object" end
  local status = math.type(value.status) == "integer" and value.status or 0
  if status < 200 or status > 599 then return nil, "without the gateway's status" end
  local encoded = value.body_b64
  if encoded == nil or encoded == json.null then return status, "" end
  local body, undecodable = nil, nil
  if type(encoded) == "string" then body, undecodable = text.base64_decode(encoded) end
  if body then return status, body end
  return nil, "with a body_b64 that cannot be decoded" .. (undecodable and ": " .. undecodable.message or "")
end

local function tool(name, description, properties, required)
  return {
    name = name, description = description,
    inputSchema = { type = "object", properties = properties, required = json.array(required) },
  }
end

local function string(description)
  return { type = "string", description = description }
end

local task, job = string "Identifier of the task.", string "Identifier of the job."
local path = string "Path of the artifact."
local scope_type = string "Scope of the preference: system, user, group, project or task."
local scope_id = string "Identifier of the scope; not for system."

-- The tools that a sandbox may call, with the arguments of the orchestrator's catalogue.
local worker_tools <const> = {
  tool("artifact.put", "Upload a file as an artifact of the task.",
    { task_id = task, job_id = job, path = path, content_bytes_base64 = string "The file's bytes in base64." },
    { "task_id", "path", "content_bytes_base64" }),
  tool("artifact.get", "Fetch an artifact of the task.", { task_id = task, path = path }, { "task_id", "path" }),
  tool("artifact.list", "List the artifacts of the task.", { task_id = task }, { "task_id" }),
  tool("skills.list", "List the skills that can be fetched.", { task_id = task }, { "task_id" }),
  tool("skills.get", "Fetch a skill.", { task_id = task, skill_id = string "Identifier of the skill." }, { "task_id", "skill_id" }),
  tool("web.fetch", "Fetch a page of the web, made safe.", { task_id = task, url = string "Address of the page." }, { "task_id", "url" }),
  tool("web.search", "Search the web.",
    { task_id = task, query = string "What to search for.", limit = { type = "integer", minimum = 1, description = "Results at most." } },
    { "task_id", "query" }),
  tool("api.call", "Call an API outside.", {
    task_id = task, provider = string "Name of the provider.", operation = string "Name of the operation.",
    params = { type = "object", description = "What the operation takes." },
  }, { "task_id", "provider", "operation", "params" }),
  tool("preference.get", "Read one preference.",
    { task_id = task, scope_type = scope_type, scope_id = scope_id, key = string "Name of the preference." }, { "scope_type", "key" }),
  tool("preference.list", "List preferences of one scope.", {
    task_id = task, scope_type = scope_type, scope_id = scope_id, key_prefix = string "Beginning of the names.",
    limit = { type = "integer", minimum = 1, description = "Preferences at most." }, cursor = string "Where the last list ended.",
  }, { "scope_type" }),
  tool("preference.effective", "Read the preferences that hold for the task.", {
    task_id = task, include_sources = { type = "boolean", description = "Say which scope each comes from." },
  }, { "task_id" }),
  tool("help.list", "List the topics of the help.", { task_id = task }, {}),
  tool("help.get", "Read how to work with the orchestrator.",
    { task_id = task, topic = string "A tool's name or another topic.", path = string "A path into the help." }, { "task_id" }),
}

---@class post_form.gateway
---@field peer mcp.peer
---@field enveloped boolean it is behind a node's proxy
---@field largest_file? integer bytes of a file that a call can hold; nil: files are streamed
local gateway = { form = "plain", dropped = {} }
gateway.__index = gateway

---Whether a URL names the form itself.
---@param url string
---@return boolean
function post_form.is_named_by(url)
  return is_proxy(url) or url:match("^[^?#]*"):sub(-#PATH) == PATH
end

---A gateway at a URL. Nothing is sent yet.
---@param options mcp.options
---@param url? string default: the URL with the form's path
---@return post_form.gateway
function post_form.at(options, url)
  local base = text.trim_end(options.url, "/")
  local peer = transport.peer(options, url or (post_form.is_named_by(options.url) and options.url or base .. PATH))
  local enveloped = is_proxy(peer.url)
  return setmetatable({ peer = peer, enveloped = enveloped, largest_file = enveloped and LARGEST_FILE or nil }, gateway)
end

local function bad_answer(peer, words)
  return http.failure("bad_answer", ("%s sent %s"):format(transport.place(peer), http.shown(words)))
end

--- The gateway's status and body in a node's answer. The node's own 403 says that it does not know this sandbox.
local function answered(peer, status, answer)
  if status >= 300 then
    if status == 403 then answer.code = "unauthorized" end
    return nil, answer
  end
  local inner, body = unwrap(answer)
  if not inner then return nil, bad_answer(peer, "an answer " .. body) end
  if inner >= 300 then return inner, transport.refused(peer, http.refused(transport.place(peer), inner, body)) end
  return inner, body
end

--- Posts a call.
---@param limits mcp.limits
---@param limit? integer bytes of the body of a 2xx to read
---@return integer? status
---@return string|mcp.failure answer the body of a 2xx
local function post(self, name, arguments, limits, limit)
  local message, failure = { tool_name = name, arguments = arguments }, nil
  if self.enveloped then message, failure = wrap(PATH, json.encode(message)) end
  if not message then return nil, failure end
  local exchange <close>, status = transport.send(self.peer, message, { request = transport.request(self.peer, "the call", limits) })
  if not exchange then return nil, status end
  local answer
  if status >= 300 then
    answer = transport.refusal(self.peer, exchange, status)
  else
    answer, failure = http.read(exchange, limit)
    if not answer then return nil, failure end
  end
  if self.enveloped then return answered(self.peer, status, answer) end
  return status, answer
end

-- Statuses of a gateway of this form for a call without a tool. Something else answers 404 or 405.
local understood = { [200] = true, [400] = true, [403] = true, [422] = true, [501] = true }

---Whether the gateway is there. Calls a tool without a name, which does nothing.
---@return boolean|nil
---@return mcp.failure? failure where it could not be found out
function gateway:probe()
  local status, answer = post(self, "", {}, self.peer.limits, LARGEST_PROBE)
  if not status or status == 401 or (status >= 500 and status ~= 501) then return nil, answer end
  local value = status >= 300 and answer.value or status < 300 and json.decode(answer)
  return understood[status] == true and json.is_object(value) and value.jsonrpc == nil
end

local codes = { [400] = "tool_refused", [403] = "tool_denied", [404] = "tool_refused", [422] = "tool_refused" }

---Calls a tool.
---@param name string
---@param arguments table
---@param limits? mcp.limits default: none but the job's deadline
---@return any value decoded, nil with a failure; a 2xx without a body is {}
---@return mcp.failure?
function gateway:call(name, arguments, limits)
  local status, body = post(self, name, arguments, limits or {})
  if not status then return nil, body end
  if status >= 300 then
    body.code = codes[status] or body.code
    return nil, body
  end
  if not body:find "%S" then return {} end
  local value, problem = json.decode(body)
  if value ~= nil then return value end
  return nil, bad_answer(self.peer, "what is not JSON: " .. problem.message)
end

---It cannot list its tools; these are what it should have.
---@return mcp.tool[]
function gateway:list() return worker_tools end -- luacheck: ignore 212

function gateway:close() end -- luacheck: ignore 212

return post_form
