-- SPDX-License-Identifier: Apache-2.0
-- A gateway that has no MCP, only POST /v1/mcp/tools/call with {"tool_name", "arguments"}. It lists nothing.

local failures = require "sba.orchestrator.mcp.failure"
local json = require "sba.util.json"
local place = require "sba.orchestrator.mcp.place"
local transport = require "sba.orchestrator.mcp.transport"

local post_form = {}

local PATH <const> = "/v1/mcp/tools/call"
local CONNECT <const>, PROBE <const>, ANSWER <const> = 10, 20, 600 -- seconds

---@class post_form.gateway
---@field peer mcp.peer
local gateway = {}
gateway.__index = gateway

---Whether a URL names the form itself.
---@param url string
---@return boolean
function post_form.is_named_by(url)
  return url:gsub("[?#].*$", ""):sub(-#PATH) == PATH
end

---The gateway at a URL, not asked whether it is one.
---@param options mcp.options
---@param url? string default: the URL with the form's path
---@return post_form.gateway
function post_form.at(options, url)
  local patience = options.patience or {}
  local base = options.url:gsub("/+$", "")
  local peer = {
    url = url or (post_form.is_named_by(options.url) and options.url or base .. PATH), http = options.http, token = options.token, ids = 0,
    patience = { connect = patience.connect or CONNECT, answer = patience.answer or ANSWER },
  }
  return setmetatable({ peer = peer }, gateway)
end

--- Posts a call. Returns status and exchange.
local function post(peer, name, arguments)
  local exchange, status = transport.send(peer, { tool_name = name, arguments = arguments })
  if not exchange then return nil, status end
  return status, exchange
end

--- The same with another patience for the answer, in seconds.
local function post_within(peer, answer, name, arguments)
  local patience = peer.patience
  peer.patience = { connect = patience.connect, answer = answer or patience.answer }
  local status, exchange = post(peer, name, arguments)
  peer.patience = patience
  return status, exchange
end

-- What a gateway of this form says to a call without a tool. 404 and 405 say that it is none.
local understood = { [200] = true, [400] = true, [403] = true, [422] = true, [501] = true }

---Whether the gateway is there: asks for a tool without a name, which does nothing.
---@return boolean|nil
---@return mcp.failure? where it could not be found out
function gateway:probe()
  local status, exchange = post_within(self.peer, math.min(PROBE, self.peer.patience.answer), "", {})
  if not status then return nil, exchange end
  if status == 401 or (status >= 500 and status ~= 501) then return nil, transport.refusal(self.peer, exchange, status) end
  local body = transport.body(exchange, 1 << 16)
  exchange:close()
  local value = body and json.decode(body)
  return understood[status] == true and json.is_object(value)
end

local codes = { [400] = "tool_refused", [404] = "tool_refused", [422] = "tool_refused" }

---Calls a tool.
---@param name string
---@param arguments table
---@param answer? number seconds for the answer, default: the connection's
---@return any value decoded, nil with a failure; a 2xx without a body is {}
---@return mcp.failure?
function gateway:call(name, arguments, answer)
  local status, exchange = post_within(self.peer, answer, name, arguments)
  if not status then return nil, exchange end
  if status >= 300 then
    local failure = transport.refusal(self.peer, exchange, status)
    failure.code = codes[status] or failure.code
    return nil, failure
  end
  local body, failure = transport.body(exchange)
  exchange:close()
  if not body then return nil, failure end
  if not body:find "%S" then return {} end
  local value, problem = json.decode(body)
  if value ~= nil then return value end
  return nil, failures.new("bad_answer", ("%s sent what is not JSON: %s"):format(place.shown(self.peer.url), problem.message))
end

function gateway:close() end -- luacheck: ignore 212

return post_form
