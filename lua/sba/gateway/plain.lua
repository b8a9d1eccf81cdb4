-- SPDX-License-Identifier: Apache-2.0
-- A gateway without MCP: POST /v1/mcp/tools/call with {"tool_name", "arguments"}. It cannot list its tools. Behind a node's proxy
-- (mcp:call) the same call is sent in an envelope.

local envelope = require "sba.gateway.envelope"
local http = require "sba.util.http"
local json = require "sba.util.json"
local text = require "native.text"
local transport = require "sba.gateway.mcp.transport"
local worker_tools = require "sba.gateway.worker_tools"

local post_form = {}

local PATH <const> = "/v1/mcp/tools/call"
local LARGEST_PROBE <const> = 64 * 1024 -- bytes of the answer to a probe that are read

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
  return envelope.is_named_by(url) or url:match("^[^?#]*"):sub(-#PATH) == PATH
end

---A gateway at a URL. Nothing is sent yet.
---@param options mcp.options
---@param url? string default: the URL with the form's path
---@return post_form.gateway
function post_form.at(options, url)
  local base = text.trim_end(options.url, "/")
  local peer = transport.peer(options, url or (post_form.is_named_by(options.url) and options.url or base .. PATH))
  local enveloped = envelope.is_named_by(peer.url)
  return setmetatable({ peer = peer, enveloped = enveloped, largest_file = enveloped and envelope.LARGEST_FILE or nil }, gateway)
end

local function bad_answer(peer, words)
  return http.failure("bad_answer", ("%s sent %s"):format(transport.place(peer), http.shown(words)))
end

--- The gateway's status and body in a node's answer. The node's own 403 says that it does not know this sandbox.
local function unwrap(peer, status, answer)
  if status >= 300 then
    if status == 403 then answer.code = "unauthorized" end
    return nil, answer
  end
  local inner, body = envelope.unwrap(answer)
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
  if self.enveloped then message, failure = envelope.wrap(PATH, json.encode(message)) end
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
  if self.enveloped then return unwrap(self.peer, status, answer) end
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
