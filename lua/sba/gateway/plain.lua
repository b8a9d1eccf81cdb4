-- SPDX-License-Identifier: Apache-2.0
-- A gateway without MCP: POST /v1/mcp/tools/call with {"tool_name", "arguments"}; it lists no
-- tools. A node's proxy (mcp:call) takes the call in a JSON envelope whose body is base64.

local http = require "sba.util.http"
local json = require "sba.util.json"
local json_tolerant = require "sba.util.json_tolerant"
local text = require "native.text"
local tool_result = require "sba.gateway.tool_result"
local transport = require "sba.gateway.mcp.transport"

local plain = {}

local PATH <const> = "/v1/mcp/tools/call"
local PROXY <const> = "mcp:call" -- the end of the proxy's path
local VERSION <const> = 1 -- of its envelope
-- Bytes. A file is in base64 in the call, and the call in base64 in the envelope.
local LARGEST_ENVELOPE <const> = 10 * 1024 * 1024 -- a node takes
-- Leaves room for the envelope's other members.
local LARGEST_BODY <const> = (LARGEST_ENVELOPE - 1024) // 4 * 3
-- Leaves room for the call's other arguments.
local LARGEST_FILE <const> = (LARGEST_BODY - 65536) // 4 * 3

-- Returns the call in the proxy's envelope, or nil and a failure.
local function wrap(call)
  local body = json.encode(call)
  if #body > LARGEST_BODY then
    local message = "the call has %d bytes; the node's proxy accepts at most %d"
    return nil, http.failure("too_large", message:format(#body, LARGEST_BODY))
  end
  local headers = { ["Content-Type"] = json.array { "application/json" } }
  local encoded = text.base64_encode(body)
  return { version = VERSION, method = "POST", path = PATH, headers = headers, body_b64 = encoded }
end

local function string(description) return { type = "string", description = description } end

-- Every argument of the tools below that the runner does not fill in.
local properties_of <const> = {
  path = string "Path of the artifact, or into the help.",
  content_bytes_base64 = string "The file's bytes in base64.",
  skill_id = string "Identifier of the skill.",
  url = string "Address of the page.", query = string "What to search for.",
  limit = { type = "integer", minimum = 1, description = "Entries at most." },
  provider = string "Name of the provider.", operation = string "Name of the operation.",
  params = { type = "object", description = "What the operation takes." },
  scope_type = string "Scope of the preference: system, user, group, project or task.",
  scope_id = string "Identifier of the scope; not for system.",
  key = string "Name of the preference.", key_prefix = string "Beginning of the names.",
  cursor = string "Where the last list ended.",
  include_sources = { type = "boolean", description = "Say which scope each comes from." },
  topic = string "A tool's name or another topic.",
}

-- "!" marks required arguments.
local function tool(name, arguments, description)
  local properties, required = {}, json.array {}
  for argument, mark in arguments:gmatch "([%w_]+)(!?)" do
    properties[argument] = properties_of[argument] or {}
    if mark == "!" then required[#required + 1] = argument end
  end
  local schema = { type = "object", properties = properties, required = required }
  return { name = name, description = description, inputSchema = schema }
end

-- The tools that a sandbox may call: the orchestrator's catalogue.
local worker_tools <const> = {
  tool("artifact.put", "task_id! job_id path! content_bytes_base64!", "Upload a file as an artifact of the task."),
  tool("artifact.get", "task_id! path!", "Fetch an artifact of the task."),
  tool("artifact.list", "task_id!", "List the artifacts of the task."),
  tool("skills.list", "task_id!", "List the skills that can be fetched."),
  tool("skills.get", "task_id! skill_id!", "Fetch a skill."),
  tool("web.fetch", "task_id! url!", "Fetch a page of the web, made safe."),
  tool("web.search", "task_id! query! limit", "Search the web."),
  tool("api.call", "task_id! provider! operation! params!", "Call an API outside."),
  tool("preference.get", "task_id scope_type! scope_id key!", "Read one preference."),
  tool("preference.list", "task_id scope_type! scope_id key_prefix limit cursor", "List preferences of one scope."),
  tool("preference.effective", "task_id! include_sources", "Read the preferences that hold for the task."),
  tool("help.list", "task_id", "List the topics of the help."),
  tool("help.get", "task_id! topic path", "Read how to work with the orchestrator."),
}

---@class gateway.plain: gateway.client
---@field beside mcp.connection to a path next to the connection's, where nothing is
---@field enveloped boolean by a node's proxy
local gateway = { form = "plain", dropped = {} }
gateway.__index = gateway

local function ends_with(url, ending) return url:match("^[^?#]*"):sub(-#ending) == ending end

---@param url string
---@return boolean
function plain.is_named_by(url) return ends_with(url, PROXY) or ends_with(url, PATH) end

---Nothing is sent yet.
---@param options mcp.options
---@return gateway.client
function plain.at(options)
  local url = options.url
  if not plain.is_named_by(url) then url = text.trim_end(url, "/") .. PATH end
  local enveloped = ends_with(url, PROXY)
  return setmetatable({
    connection = transport.connection(options, url), beside = transport.connection(options, url .. "-none"),
    enveloped = enveloped, largest_file = enveloped and LARGEST_FILE or nil,
  }, gateway)
end

local codes <const> = { [400] = "tool_refused", [403] = "tool_denied", [404] = "tool_refused", [422] = "tool_refused" }
-- The proxy does not know this sandbox.
local codes_of_proxy <const> = { [403] = "unauthorized" }

-- Reads the gateway's answer out of the proxy's.
local function opened(connection, bytes)
  local function bad(what) return connection:failed("bad_answer", "sent an answer %s", http.shown(what)) end
  local value, problem = json_tolerant.decode(bytes)
  if problem then return bad("that is not JSON: " .. problem.message) end
  if not json.is_object(value) then return bad "that is not an object" end
  local status, encoded = value.status, json.given(value.body_b64) or ""
  local is_status = math.type(status) == "integer" and status >= 200 and status <= 599
  if not is_status then return bad "without the gateway's status" end
  local body = type(encoded) == "string" and text.base64_decode(encoded)
  if not body then return bad "with a body_b64 that cannot be decoded" end
  if status < 300 then return body end
  local failure = connection:refused(http.refused(connection:display_name(), status, body))
  failure.code = codes[status] or failure.code
  return nil, failure
end

-- Returns the body of a 2xx; or nil and a failure.
local function post(self, name, arguments, request)
  local connection = self.connection
  local message, unsent = { tool_name = name, arguments = arguments }, nil
  if self.enveloped then message, unsent = wrap(message) end
  if not message then return nil, unsent end
  local exchange <close>, status = connection:send(request, message, {})
  if not exchange then return nil, status end
  if status >= 300 then
    local failure, own = connection:refusal(exchange, status), self.enveloped and codes_of_proxy or codes
    failure.code = own[status] or failure.code
    return nil, failure
  end
  local body, failure = http.read(exchange)
  if not body or not self.enveloped then return body, failure end
  return opened(connection, body)
end

local function refuses_get(connection, limits, wanted_status)
  local request = connection:new_request("the probe", limits)
  local exchange <close>, status = connection:send(request, nil, {}, transport.POLLED)
  return exchange ~= nil and status == wanted_status
end

-- Statuses with which this form refuses a call without a tool. Something else answers 404 or 405.
local understood <const> = { [400] = true, [403] = true, [422] = true, [501] = true }

local function is_of_this_form(answer) return json.is_object(answer) and answer.jsonrpc == nil end

---Whether a server whose URL does not name the form has it.
---Asks with GET first, of which no orchestrator keeps a record: a route for POST answers 405, and a
---path beside it, where nothing is, 404. Where that does not tell, calls a tool without a name,
---which does nothing but may be a line of an audit.
---@param limits mcp.limits
---@return boolean? is_there nil: unknown
---@return mcp.failure?
function gateway:probe(limits)
  if refuses_get(self.connection, limits, 405) and refuses_get(self.beside, limits, 404) then return true end
  local body, failure = post(self, "", {}, self.connection:new_request("the probe", limits))
  if body then return is_of_this_form(json_tolerant.decode(body)) end
  local status = failure.status
  if not status or status == 401 or (status >= 500 and status ~= 501) then return nil, failure end
  return understood[status] == true and is_of_this_form(failure.value)
end

function gateway:call(name, arguments, limits)
  local body, failure = post(self, name, arguments, self.connection:new_request(transport.CALL, limits))
  if not body then return nil, failure end
  -- A 2xx may have nothing to say.
  if not body:find "%S" then return tool_result.of_plain {} end
  local value, problem = json_tolerant.decode(body)
  if value ~= nil then return tool_result.of_plain(value) end
  return self.connection:failed("bad_answer", "sent what is not JSON: %s", http.shown(problem.message))
end

function gateway:list() return worker_tools end -- luacheck: ignore 212

function gateway:has_changed() return false end -- luacheck: ignore 212

function gateway:close() end -- luacheck: ignore 212

return plain
