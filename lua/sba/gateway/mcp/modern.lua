-- SPDX-License-Identifier: Apache-2.0
-- MCP without a handshake: revision 2026-07-28, in which every request describes itself.

local headers = require "sba.gateway.mcp.headers"
local http = require "sba.util.http"
local json = require "sba.util.json"
local transport = require "sba.gateway.mcp.transport"
local words = require "sba.util.words"

local modern = { version = "2026-07-28" }

local MOST_ROUNDS <const> = 8 -- of a tool that asks back
local KEY <const> = "io.modelcontextprotocol/"

modern.UNSUPPORTED_VERSION = -32022
modern.HEADER_MISMATCH = -32020

local function meta()
  return {
    [KEY .. "protocolVersion"] = modern.version, [KEY .. "clientCapabilities"] = {}, [KEY .. "clientInfo"] = transport.CLIENT,
  }
end

local function header_lines(method, params, more)
  local lines = { "MCP-Protocol-Version: " .. modern.version, "Mcp-Method: " .. method }
  if method == "tools/call" then lines[3] = headers.line("Mcp-Name", headers.encoded(params.name)) end
  return table.move(more or {}, 1, #(more or {}), #lines + 1, lines)
end

--- Sends a request once. Closing the exchange early is what cancels it.
local function ask(peer, method, params, options)
  local request = transport.request(peer, method, options.limits)
  params._meta = meta()
  if method == "tools/call" then params._meta.progressToken = request.id end
  local body = { jsonrpc = "2.0", id = request.id, method = method, params = params }
  local headers_sent = header_lines(method, params, options.headers)
  local exchange <close>, status = transport.send(peer, body, { headers = headers_sent, request = request })
  if not exchange then return nil, status end
  if status >= 300 then return nil, transport.refusal(peer, exchange, status) end
  local message, failure = transport.read(transport.stream(peer, exchange, request), request)
  if message then return transport.outcome(peer, message, status) end
  return nil, failure or http.failure("request_lost", transport.place(peer) .. " broke off its answer")
end

---Whether the server's list of versions holds ours.
---@param list any
---@return boolean
function modern.speaks(list)
  return json.is_array(list) and words.has(list, modern.version)
end

--- Sends a request; once more if the server refused the version although it supports it.
local function ask_again(peer, method, params, options)
  local result, failure = ask(peer, method, params, options)
  local rpc = failure and failure.rpc
  if not rpc or rpc.code ~= modern.UNSUPPORTED_VERSION or type(rpc.data) ~= "table" then return result, failure end
  if modern.speaks(rpc.data.supported) then return ask(peer, method, params, options) end
  failure.code = "unsupported_version"
  return nil, failure
end

--- The answers to the questions of a tool; nil and a failure if one cannot be declined.
local function declined(peer, asked)
  if type(asked) ~= "table" then return nil end
  local responses = {}
  for key, request in pairs(asked) do
    local method = type(request) == "table" and request.method or nil
    if method ~= "elicitation/create" then
      return nil, http.failure("input_required", ("%s asks for %s before it continues; a job cannot answer")
        :format(transport.place(peer), http.shown(type(method) == "string" and method or "a question")))
    end
    responses[key] = { action = "decline" }
  end
  return responses
end

--- Checks a result's type. Returns a complete result; or nil and the parameters to add if the tool asks for more.
local function judged(peer, result)
  local kind = result.resultType
  if kind == nil or kind == json.null or kind == "complete" then return result end
  if kind ~= "input_required" then
    return nil, nil, http.failure("bad_answer", ("%s sent a result of the unknown type %s")
      :format(transport.place(peer), http.shown(json.encode(kind))))
  end
  local responses, failure = declined(peer, result.inputRequests)
  if failure then return nil, nil, failure end
  return nil, { inputResponses = responses, requestState = result.requestState ~= json.null and result.requestState or nil }
end

---@param peer mcp.peer
---@param method string
---@param params table
---@param options? { headers?: string[], limits?: mcp.limits }
---@return table? result, mcp.failure?
function modern.request(peer, method, params, options)
  local sent = params
  for _ = 1, MOST_ROUNDS do
    local result, failure = ask_again(peer, method, sent, options or {})
    if not result then return nil, failure end
    local complete, answers, problem = judged(peer, result)
    if complete or problem then return complete, problem end
    sent = answers
    for name, value in pairs(params) do sent[name] = value end
  end
  return nil, http.failure("input_required", ("%s asked %d times for more input; a job cannot answer")
    :format(transport.place(peer), MOST_ROUNDS))
end

return modern
