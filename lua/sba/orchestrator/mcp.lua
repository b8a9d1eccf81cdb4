-- SPDX-License-Identifier: Apache-2.0
-- An MCP client over Streamable HTTP, for tools alone: revisions 2025-03-26 to 2025-11-25 and 2026-07-28.
--
-- Failures are those of mcp/transport.lua.

local about = require "native.bundle"
local headers = require "sba.orchestrator.mcp.headers"
local http = require "sba.util.http"
local json = require "sba.util.json"
local legacy = require "sba.orchestrator.mcp.legacy"
local modern = require "sba.orchestrator.mcp.modern"
local probe = require "sba.orchestrator.mcp.probe"
local transport = require "sba.orchestrator.mcp.transport"

local mcp = {}

local MOST_PAGES <const> = 100
local MOST_TOOLS <const> = 1000
local CONNECT <const> = 10 -- seconds to be reached
local GREETING <const> = 20 -- seconds for an answer to anything but a call
local ANSWER <const> = 600 -- seconds for a tool, unless the job ends earlier

---@class mcp.options
---@field url string
---@field http native.http.client
---@field token? string goes to the URL's origin only
---@field protocol? string "auto" (default), "legacy", a legacy revision to offer, or "2026-07-28"
---@field timeout? { connect: number?, answer: number? } seconds

---@class mcp.tool as the server lists it
---@field name string
---@field description? string
---@field inputSchema table

---@class mcp.server
---@field peer mcp.peer
---@field era "legacy"|"modern"
---@field answer number seconds for a tool
local server = {}
server.__index = server

local function new_peer(options)
  local timeout = options.timeout or {}
  return {
    url = options.url, http = options.http, token = options.token, ids = 0,
    timeout = { connect = timeout.connect or CONNECT, answer = math.min(GREETING, timeout.answer or GREETING) },
    client = { name = "cynode-sba", version = about.version },
  }
end

--- What the server can do, as it says itself: whether it has tools.
local function has_tools(greeting)
  local capabilities = greeting and greeting.capabilities
  return type(capabilities) ~= "table" or (capabilities.tools ~= nil and capabilities.tools ~= json.null)
end

--- Whether an initialize that failed so was said to something that is no MCP server of our revisions.
local function is_foreign(failure)
  if failure.code == "bad_answer" or failure.code == "request_lost" then return true end
  local status = failure.status
  return status ~= nil and not failure.rpc and (status == 400 or status == 404 or status == 405 or status == 415 or status == 501)
end

local function open_legacy(peer, offer)
  local greeting, failure = legacy.open(peer, offer)
  if greeting then return greeting end
  if not is_foreign(failure) then return nil, failure end
  return nil, http.failure("not_mcp", ("%s speaks no MCP over Streamable HTTP of a revision from 2025-03-26 on: %s")
    :format(transport.place(peer), failure.message), { status = failure.status })
end

--- Era, and what the server said of itself.
local function greet(peer, protocol)
  if protocol == modern.version then return "modern" end
  if protocol == "auto" then
    local era, found = probe.era(peer)
    if era == "plain" then
      return nil, http.failure("not_mcp", transport.place(peer) .. " is no MCP server, but a plain POST gateway", { plain = true })
    end
    if era ~= "legacy" then return era, found end
  end
  local greeting, failure = open_legacy(peer, legacy.versions[protocol] and protocol or nil)
  return greeting and "legacy", greeting or failure
end

---Gets to know a server. A failure with code not_mcp: something else is there (plain: it looks like the POST form).
---@param options mcp.options
---@return mcp.server?, mcp.failure?
function mcp.connect(options)
  local peer = new_peer(options)
  local era, greeting = greet(peer, options.protocol or "auto")
  if not era then return nil, greeting end
  local answer = options.timeout and options.timeout.answer or ANSWER
  return setmetatable({ peer = peer, era = era, answer = answer, has_tools = has_tools(greeting), by_name = {} }, server)
end

function server:request(method, params, more)
  if self.era == "modern" then return modern.request(self.peer, method, params, more) end
  return legacy.request(self.peer, method, params)
end

local INVALID_PARAMS <const> = -32602

--- All pages of tools/list, in one list. seen: the cursors that were there.
local function pages(self)
  local found, seen, cursor = {}, {}, nil
  for _ = 1, MOST_PAGES do
    local result, failure = self:request("tools/list", { cursor = cursor })
    if not result then return nil, failure, cursor end
    if not json.is_array(result.tools) then
      return nil, http.failure("bad_answer", transport.place(self.peer) .. " sent a list of tools that is none")
    end
    table.move(result.tools, 1, #result.tools, #found + 1, found)
    cursor = result.nextCursor
    if cursor == nil or cursor == json.null or seen[cursor] or #found >= MOST_TOOLS then break end
    seen[cursor] = true
  end
  return found
end

--- Why a tool cannot be used, nil where it can.
local function unusable(self, tool)
  if type(tool) ~= "table" or type(tool.name) ~= "string" or tool.name == "" then return "it has no name" end
  if self.by_name[tool.name] then return "its name is there twice" end
  if type(tool.inputSchema) ~= "table" or json.is_array(tool.inputSchema) then return "it has no inputSchema" end
  local execution = tool.execution
  if self.era == "legacy" then
    return type(execution) == "table" and execution.taskSupport == "required" and "it can only be run as a task" or nil
  end
  local wanted, reason = headers.wanted(tool.inputSchema)
  if wanted then self.wanted[tool.name] = wanted end
  return reason
end

---The server's tools, asked for anew. Those that cannot be used are left out: dropped says which and why.
---@return mcp.tool[]|nil
---@return { name: string, reason: string }[]|mcp.failure dropped
function server:list()
  self.peer.stale, self.by_name, self.wanted = false, {}, {}
  if not self.has_tools then return {}, {} end
  local found, failure, cursor = pages(self)
  if not found and cursor ~= nil and failure.rpc and failure.rpc.code == INVALID_PARAMS then found, failure = pages(self) end
  if not found then return nil, failure end
  local tools, dropped = {}, {}
  for _, tool in ipairs(found) do
    local reason = #tools >= MOST_TOOLS and "there are too many" or unusable(self, tool)
    if reason then
      local name = type(tool) == "table" and tool.name
      dropped[#dropped + 1] = { name = type(name) == "string" and http.shown(name) or "(none)", reason = reason }
    else
      tools[#tools + 1], self.by_name[tool.name] = tool, tool
    end
  end
  return tools, dropped
end

local function call(self, name, arguments, answer)
  local wanted, peer = self.wanted and self.wanted[name], self.peer
  local timeout = peer.timeout
  peer.timeout = { connect = timeout.connect, answer = answer or self.answer }
  local result, failure = self:request("tools/call", { name = name, arguments = arguments }, wanted and headers.lines(wanted, arguments))
  peer.timeout = timeout
  return result, failure
end

---Calls a tool.
---@param name string
---@param arguments table an object
---@param answer? number seconds for the answer, default: the connection's
---@return table? result as the server sent it: content, structuredContent, isError
---@return mcp.failure?
function server:call(name, arguments, answer)
  local result, failure = call(self, name, arguments, answer)
  local mismatch = failure and failure.rpc and failure.rpc.code == modern.HEADER_MISMATCH
  if mismatch and self.era == "modern" and self:list() then result, failure = call(self, name, arguments, answer) end
  return result, failure
end

---Ends the session, if there is one.
function server:close()
  if self.era == "legacy" then legacy.close(self.peer) end
end

return mcp
