-- SPDX-License-Identifier: Apache-2.0
-- What goes beside a legacy server's calls: messages without an answer, answers to what it asks,
-- and its standalone stream. Many servers ask there what a call needs, and wait; what they ask
-- while it is not open is lost.

local http = require "sba.util.http"
local transport = require "sba.gateway.mcp.transport"

local standalone = {}

-- An error of JSON-RPC.
local NO_METHOD <const> = { code = -32601, message = "Method not found" }
-- Of the standalone stream, then of the call.
local LINES_AT_A_TIME <const> = 256

---@param connection mcp.connection
---@param first? string
---@return string[] lines of the header
function standalone.headers(connection, first)
  local lines = { first }
  if connection.session then lines[#lines + 1] = "Mcp-Session-Id: " .. connection.session end
  if connection.version then lines[#lines + 1] = "MCP-Protocol-Version: " .. connection.version end
  return lines
end

---Sends a message that has no answer, or only HTTP's method.
---@param connection mcp.connection
---@param message? table
---@param sending? mcp.sending
---@return true?, mcp.failure?
function standalone.notify(connection, message, sending)
  if message then message.jsonrpc = "2.0" end
  local request, headers = connection:new_request("a message", {}), standalone.headers(connection)
  local exchange <close>, status = connection:send(request, message, headers, sending)
  if not exchange then return nil, status end
  http.read(exchange, 1)
  return true
end

---Answers a request of the server.
---@param connection mcp.connection
---@param message table
function standalone.answer(connection, message)
  local answer = { id = message.id, result = {} }
  if message.method ~= "ping" then answer = { id = message.id, error = NO_METHOD } end
  standalone.notify(connection, answer)
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

---@param connection mcp.connection
function standalone.close(connection)
  local stream = connection.standalone
  if stream and stream.exchange then stream.exchange:close() end
  connection.standalone = nil
end

local function open(connection)
  standalone.close(connection)
  local stream, request = {}, { id = 0, method = "GET" }
  connection.standalone = stream
  local exchange, status = connection:send(request, nil, standalone.headers(connection), transport.POLLED)
  if exchange and status < 300 and http.is_stream(exchange) then
    stream.exchange = exchange
    stream.thread = coroutine.create(function() connection:read(yielding(exchange), request) end)
  elseif exchange then
    exchange:close()
  end
  return stream
end

---Reads what has come on the stream.
---@param connection mcp.connection
function standalone.poll(connection)
  local thread = connection.standalone and connection.standalone.thread
  if thread and coroutine.status(thread) == "suspended" then assert(coroutine.resume(thread)) end
end

---Answers what comes on the stream until the returned value is closed. Opens the stream where it
---has ended, but asks a server that has none only once.
---@param connection mcp.connection
---@return table? to be closed
function standalone.attend(connection)
  local thread = (connection.standalone or open(connection)).thread
  if thread and coroutine.status(thread) == "dead" then thread = open(connection).thread end
  if not thread then return nil end
  local before
  before = connection.http:tick(function()
    if before then before() end
    standalone.poll(connection)
  end)
  return setmetatable({}, { __close = function() connection.http:tick(before) end })
end

return standalone
