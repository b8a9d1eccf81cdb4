-- SPDX-License-Identifier: Apache-2.0
-- An MCP client over Streamable HTTP, for tools only: revisions 2024-11-05 to 2025-11-25 (legacy)
-- and 2026-07-28 (modern). Failures are those of transport.lua.

local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local table_of = json.table_of
local legacy = require "sba.gateway.mcp.legacy"
local modern = require "sba.gateway.mcp.modern"
local printable = require "sba.util.printable"
local standalone = require "sba.gateway.mcp.standalone"
local tool_result = require "sba.gateway.tool_result"
local transport = require "sba.gateway.mcp.transport"

local mcp = {}

-- Seconds until initialize is tried: the first SDKs never answer what they do not know.
local SILENCE <const> = 5
local NO_METHOD <const> = -32601 -- of JSON-RPC
local MOST_PAGES <const>, MOST_TOOLS <const> = 100, 1000 -- of a list
local DEEPEST <const> = 60 -- levels of a tool, whose schema the journal holds
local LONGEST_INSTRUCTIONS <const> = 4096 -- bytes

---@class mcp.options
---@field url string
---@field http native.http.client
---@field token? string for the URL's origin only
---@field answer_timeout? number seconds; not of calls

---@class mcp.tool
---@field name string
---@field description? string
---@field inputSchema table

---@class mcp.server: gateway.client
---@field wanted table<string, table[]> by tool of a modern server: arguments that are headers too, as of modern.wanted
---@field protocol { request: function } modern or legacy
---@field has_tools boolean
local server = { form = "mcp" }
server.__index = server

local NONE_SPOKEN <const> = "speaks no revision of MCP that is spoken here, but %s"

local function by_versions(connection, list)
  if modern.speaks(list) then return "modern" end
  for _, version in ipairs(list) do
    if legacy.speaks(version) then return "legacy" end
  end
  local shown = http.shown(json.encode(list))
  return connection:failed("unsupported_version", NONE_SPOKEN, shown)
end

-- JSON-RPC errors of modern servers only.
local of_modern <const> = { [-32020] = true, [-32021] = true }
local NO_ANSWER <const> = { "bad_answer", "request_lost", "slow_first_byte", "slow_answer" }

-- What a refusal of server/discover means. Returns as discover does.
local function by_refusal(connection, failure)
  local status, rpc = failure.status, failure.rpc
  local is_its_word = status == 401 or status == 403 or failure.code == "redirected"
  if is_its_word or rpc and of_modern[rpc.code] then return nil, failure end
  local supported = rpc and rpc.code == modern.UNSUPPORTED_VERSION and table_of(rpc.data).supported
  if json.is_array(supported) then return by_versions(connection, supported) end
  if rpc or json.contains(NO_ANSWER, failure.code) then return "legacy" end
  -- Some answer so to a method that they do not know. Those that only failed do so again, and then
  -- this is said.
  if status == 500 then return "legacy", failure end
  if status and (status < 500 or status == 501) then return "legacy" end
  return nil, failure
end

-- Asks in the modern way. Any answer but a modern server's counts as legacy: initialize then tells.
-- Returns the era and, if it is modern, the result; of a legacy one perhaps the failure; nil and a
-- failure.
local function discover(connection, limits)
  local until_when = math.min(limits.until_when or math.huge, interrupt.now() + SILENCE)
  local result, failure = modern.request(connection, "server/discover", {}, { until_when = until_when })
  if not result then return by_refusal(connection, failure) end
  if not json.is_array(result.supportedVersions) then return "legacy" end
  local era, unsupported = by_versions(connection, result.supportedVersions)
  return era, era == "modern" and result or unsupported
end

-- Answers to initialize of what is no MCP server.
local FOREIGN_STATUSES <const> = { 400, 404, 405, 415, 501 }
local FOREIGN_CODES <const> = { "bad_answer", "request_lost" }

-- Returns the era, and the result of server/discover or initialize.
local function open(connection, limits)
  local era, answer = discover(connection, limits)
  if era == "modern" then return era, answer end
  -- A legacy server may have opened a session for the question.
  connection.session = connection.offered
  legacy.close(connection)
  if not era then return nil, answer end
  local result, failure = legacy.open(connection, limits)
  if result then return era, result end
  if answer and answer.transient and not failure.transient then return nil, answer end
  local is_no_path = not failure.rpc and json.contains(FOREIGN_STATUSES, failure.status)
  if not is_no_path and not json.contains(FOREIGN_CODES, failure.code) then return nil, failure end
  local problem = connection:failure("not_mcp", "does not speak MCP over Streamable HTTP: %s", failure.message)
  problem.status = failure.status
  return nil, problem
end

---@param options mcp.options
---@param limits mcp.limits
---@return gateway.client?, mcp.failure?
function mcp.connect(options, limits)
  local connection = transport.connection(options)
  local era, described = open(connection, limits)
  if not era then return nil, described end
  local self = setmetatable({ connection = connection, era = era, wanted = {}, dropped = {} }, server)
  self.protocol = era == "modern" and modern or legacy
  local capabilities, instructions = described.capabilities, described.instructions
  -- A server that names none may have tools all the same.
  local named = table_of(capabilities)
  self.has_tools = next(named) == nil or json.given(named.tools) ~= nil
  if type(instructions) == "string" and instructions:find "%S" then
    self.instructions = printable.cut(instructions, LONGEST_INSTRUCTIONS)
  end
  return self
end

-- Returns the tools of all pages, as they came.
local function read_pages(self, limits)
  local found, seen, cursor = {}, {}, nil
  local connection, request = self.connection, self.protocol.request
  for _ = 1, MOST_PAGES do
    local result, failure = request(connection, transport.LIST, { cursor = cursor }, limits)
    if not result then return nil, failure end
    local list = result.tools
    if not json.is_array(list) then return connection:failed("bad_answer", "sent no list of tools") end
    table.move(list, 1, #list, #found + 1, found)
    cursor = json.given(result.nextCursor)
    if cursor == nil or seen[cursor] or #found >= MOST_TOOLS then break end
    seen[cursor] = true
  end
  return found
end

local function is_deep(value, depth)
  if depth > DEEPEST then return true end
  for _, part in pairs(table_of(value)) do
    if is_deep(part, depth + 1) then return true end
  end
  return false
end

-- Makes a tool of the list as an mcp.tool should be. Returns why it cannot be used.
local function prepare(self, tool, seen)
  local name = table_of(tool).name
  if type(name) ~= "string" or name == "" then return "it has no name" end
  if seen[name] then return "its name is there twice" end
  -- Some name it as other APIs do.
  if tool.inputSchema == nil then tool.inputSchema = tool.input_schema or tool.parameters end
  if not json.is_object(tool.inputSchema) then return "it has no inputSchema" end
  if is_deep(tool, 0) then return ("it is nested more deeply than %d levels"):format(DEEPEST) end
  if self.era == "legacy" then
    return table_of(tool.execution).taskSupport == "required" and "it can only be run as a task" or nil
  end
  local wanted, reason = modern.wanted(tool.inputSchema)
  self.wanted[name] = wanted
  return reason
end

function server:list(limits)
  self.wanted, self.dropped = {}, {}
  if not self.has_tools then return {} end
  local found, failure = read_pages(self, limits)
  if not found and table_of(failure.rpc).code == NO_METHOD then return {} end
  if not found then return nil, failure end
  local tools, seen = {}, {}
  for _, tool in ipairs(found) do
    local reason = #tools >= MOST_TOOLS and "there are too many" or prepare(self, tool, seen)
    if reason then
      local name = table_of(tool).name
      local shown = type(name) == "string" and http.shown(name) or "(none)"
      table.insert(self.dropped, { name = shown, reason = reason })
    else
      tools[#tools + 1], seen[tool.name] = tool, true
    end
  end
  return tools
end

function server:call(name, arguments, limits, is_again)
  local wanted = self.wanted[name]
  local headers = wanted and modern.lines(wanted, arguments)
  local params, request = { name = name, arguments = arguments }, self.protocol.request
  local result, failure = request(self.connection, transport.CALL, params, limits, headers)
  if result then return tool_result.of_mcp(result) end
  if failure.status == 403 then failure.code = "tool_denied" end
  -- The list may have changed.
  local is_mismatch = failure.rpc ~= nil and failure.rpc.code == modern.HEADER_MISMATCH
  if is_mismatch and self.era == "modern" and not is_again and self:list(limits) then
    return self:call(name, arguments, limits, true)
  end
  return nil, failure
end

---@return boolean? changed its tools are others: it has said so since it was asked last
function server:has_changed()
  local connection = self.connection
  standalone.poll(connection)
  local changed = connection.list_changed
  connection.list_changed = nil
  return changed
end

function server:close()
  if self.era == "legacy" then legacy.close(self.connection) end
end

return mcp
