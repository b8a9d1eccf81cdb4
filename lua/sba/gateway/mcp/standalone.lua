-- SPDX-License-Identifier: Apache-2.0
-- What goes beside a legacy server's calls: messages without an answer, answers to what it asks, and its standalone
-- stream. Many servers ask there what a call needs, and wait; what they ask while it is not open is lost.

local http = require "sba.util.http"

local standalone = {}

local LINES_AT_A_TIME <const> = 256 -- of the standalone stream, then of the call

---@param peer mcp.peer
---@param first? string
---@return string[] lines of the header
function standalone.headers(peer, first)
  local lines = { first }
  if peer.session then lines[#lines + 1] = "Mcp-Session-Id: " .. peer.session end
  if peer.version then lines[#lines + 1] = "MCP-Protocol-Version: " .. peer.version end
  return lines
end

---Sends a message that has no answer, or only HTTP's method.
---@param peer mcp.peer
---@param message? table
---@param options? table as of peer.send
---@return true?, mcp.failure?
function standalone.notify(peer, message, options)
  if message then message.jsonrpc = "2.0" end
  local exchange <close>, status = peer:send(peer:request("a message", {}), message, standalone.headers(peer), options)
  if not exchange then return nil, status end
  http.read(exchange, 1)
  return true
end

---Answers a request of the server.
---@param peer mcp.peer
---@param message table
function standalone.respond(peer, message)
  if message.method == "ping" then return standalone.notify(peer, { id = message.id, result = {} }) end
  return standalone.notify(peer, { id = message.id, error = { code = -32601, message = "Method not found" } })
end

-- Yields where there is no line yet.
local function yielding(exchange)
  local count = 0
  local function line()
    local next_line, more = exchange:line()
    local is_quiet = not next_line and type(more) == "table" and more.code == "slow_answer"
    count = count + 1
    if is_quiet or count % LINES_AT_A_TIME == 0 then coroutine.yield() end
    if is_quiet then return line() end
    return next_line, more
  end
  return { header = function(_, name) return exchange:header(name) end, line = line }
end

---@param peer mcp.peer
function standalone.close(peer)
  if peer.standalone and peer.standalone.exchange then peer.standalone.exchange:close() end
  peer.standalone = nil
end

local function open(peer)
  standalone.close(peer)
  local request = { id = 0, method = "GET" }
  local exchange, status = peer:send(request, nil, standalone.headers(peer), { is_polled = true })
  peer.standalone = {}
  if not exchange then return nil end
  if status >= 300 or not http.is_stream(exchange) then return exchange:close() end
  peer.standalone.exchange, peer.standalone.thread = exchange, coroutine.create(function()
    peer:read(yielding(exchange), request, function(message) standalone.respond(peer, message) end)
  end)
  return peer.standalone.thread
end

---Answers the stream until the returned value is closed.
---@param peer mcp.peer
---@return table? to be closed
function standalone.attend(peer)
  local thread, before = peer.standalone and peer.standalone.thread, nil
  if not peer.standalone or thread and coroutine.status(thread) == "dead" then thread = open(peer) end
  if not thread then return nil end
  before = peer.http:tick(function()
    if before then before() end
    if coroutine.status(thread) == "suspended" then assert(coroutine.resume(thread)) end
  end)
  return setmetatable({}, { __close = function() peer.http:tick(before) end })
end

return standalone
