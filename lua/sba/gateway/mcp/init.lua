-- SPDX-License-Identifier: Apache-2.0
-- An MCP client over Streamable HTTP, for tools only: revisions 2024-11-05 to 2025-11-25 and 2026-07-28.
--
-- Failures are those of mcp/transport.lua.

local http = require "sba.util.http"
local json = require "sba.util.json"
local legacy = require "sba.gateway.mcp.legacy"
local modern = require "sba.gateway.mcp.modern"
local text = require "native.text"
local transport = require "sba.gateway.mcp.transport"

local mcp = {}

local SILENCE <const> = 5 -- seconds after which initialize is tried: the first SDKs never answer what they do not know
local MOST_PAGES <const> = 100
local MOST_TOOLS <const> = 1000
local LONGEST_INSTRUCTIONS <const> = 4096 -- bytes

---@class mcp.options
---@field url string
---@field http native.http.client
---@field token? string goes to the URL's origin only
---@field answer_timeout? number seconds for an answer to anything but a call
---@field until_when? number as the peer has it

---@class mcp.tool as the server lists it
---@field name string
---@field description? string
---@field inputSchema table

---@class mcp.server
---@field peer mcp.peer
---@field era "legacy"|"modern"
---@field instructions? string the server's, on how to use its tools
---@field cut? boolean the last list of tools was not read to its end
---@field dropped { name: string, reason: string }[] tools that cannot be used, of the last list
local server = { form = "mcp" }
server.__index = server

-- Answers that cannot be read, or never come.
local no_answer = { bad_answer = true, request_lost = true, slow_first_byte = true, slow_answer = true }

local function speaks_legacy(list)
  for _, version in ipairs(list) do
    if legacy.versions[version] then return true end
  end
  return false
end

--- The era of a server that names its versions.
local function by_versions(peer, list)
  if modern.speaks(list) then return "modern" end
  if speaks_legacy(list) then return "legacy" end
  return nil, http.failure("unsupported_version",
    ("%s speaks no revision of MCP that is spoken here, but %s"):format(transport.place(peer), http.shown(json.encode(list))))
end

local not_evidence = { [-32020] = true, [-32021] = true }

--- The era of a server that answers with a JSON-RPC error.
local function by_error(peer, failure)
  local rpc = failure.rpc
  if not_evidence[rpc.code] then return nil, failure end
  local supported = rpc.code == modern.UNSUPPORTED_VERSION and type(rpc.data) == "table" and rpc.data.supported
  if json.is_array(supported) then return by_versions(peer, supported) end
  return "legacy"
end

--- Asks for the era. Any answer that is not the one of revision 2026-07-28 counts as an earlier revision: initialize then tells.
local function discover(peer)
  local limits = { whole = math.min(SILENCE, peer.limits.whole) }
  local result, failure = modern.request(peer, "server/discover", {}, { limits = limits })
  if result then
    if not json.is_array(result.supportedVersions) then return "legacy" end
    local era, problem = by_versions(peer, result.supportedVersions)
    return era, problem or result
  end
  if failure.status == 401 or failure.status == 403 or failure.code == "redirected" then return nil, failure end
  if failure.rpc then return by_error(peer, failure) end
  if failure.status and (failure.status < 500 or failure.status == 501) then return "legacy" end
  if no_answer[failure.code] then return "legacy" end
  return nil, failure
end

--- Finds out the era, and what server/discover says. A session that a server of an earlier revision opened for the question is ended.
local function find_era(peer)
  local era, found = discover(peer)
  local offered = peer.offered
  if offered and legacy.is_session(offered) and era ~= "modern" then
    peer.session = offered
    legacy.close(peer)
  end
  return era, found
end

--- Whether the server says that it has tools.
local function has_tools(described)
  local capabilities = described and described.capabilities
  return type(capabilities) ~= "table" or (capabilities.tools ~= nil and capabilities.tools ~= json.null)
end

local function instructions_of(described)
  local words = described and described.instructions
  if type(words) ~= "string" or not words:find "%S" then return nil end
  return #words > LONGEST_INSTRUCTIONS and text.cut(words, LONGEST_INSTRUCTIONS) .. "..." or words
end

--- Whether initialize failed in a way that shows something other than an MCP server of these revisions.
local function is_foreign(failure)
  if failure.code == "bad_answer" or failure.code == "request_lost" then return true end
  local status = failure.status
  return status ~= nil and not failure.rpc and (status == 400 or status == 404 or status == 405 or status == 415 or status == 501)
end

--- Opens a session.
local function open_legacy(peer)
  local result, failure = legacy.open(peer)
  if result then return result end
  if not is_foreign(failure) then return nil, failure end
  return nil, http.failure("not_mcp", ("%s does not speak MCP over Streamable HTTP: %s")
    :format(transport.place(peer), failure.message), { status = failure.status, plain = failure.plain })
end

--- The era, and what the server says about itself.
local function describe(peer)
  local era, found = find_era(peer)
  if era ~= "legacy" then return era, found end
  local result, failure = open_legacy(peer)
  return result and "legacy", result or failure
end

---Connects to a server. A failure with code not_mcp: something else is there; with plain, it looks like the POST form.
---@param options mcp.options
---@return mcp.server?, mcp.failure?
function mcp.connect(options)
  local peer = transport.peer(options)
  local era, described = describe(peer)
  if not era then return nil, described end
  return setmetatable({
    peer = peer, era = era, has_tools = has_tools(described), instructions = instructions_of(described), by_name = {}, dropped = {},
  }, server)
end

function server:request(method, params, options)
  if self.era == "modern" then return modern.request(self.peer, method, params, options) end
  return legacy.request(self.peer, method, params, options and options.limits)
end

local INVALID_PARAMS <const> = -32602

--- All pages of tools/list in one list; nil, failure and the cursor that was asked for.
local function pages(self)
  local found, seen, cursor = {}, {}, nil
  self.cut = false
  for number = 1, MOST_PAGES do
    local result, failure = self:request("tools/list", { cursor = cursor })
    if not result then return nil, failure, cursor end
    if not json.is_array(result.tools) then
      return nil, http.failure("bad_answer", transport.place(self.peer) .. " sent no list of tools")
    end
    table.move(result.tools, 1, #result.tools, #found + 1, found)
    cursor = result.nextCursor
    if cursor == nil or cursor == json.null or seen[cursor] then break end
    seen[cursor] = true
    self.cut = number == MOST_PAGES or #found >= MOST_TOOLS
    if self.cut then break end
  end
  return found
end

--- Why a tool cannot be used; nil if it can.
local function unusable(self, tool)
  if type(tool) ~= "table" or type(tool.name) ~= "string" or tool.name == "" then return "it has no name" end
  if self.by_name[tool.name] then return "its name is there twice" end
  if type(tool.inputSchema) ~= "table" or json.is_array(tool.inputSchema) then return "it has no inputSchema" end
  local execution = tool.execution
  if self.era == "legacy" then
    return type(execution) == "table" and execution.taskSupport == "required" and "it can only be run as a task" or nil
  end
  local wanted, reason = modern.wanted(tool.inputSchema)
  if wanted then self.wanted[tool.name] = wanted end
  return reason
end

---Asks for the server's tools. Tools that cannot be used are left out: self.dropped says which and why.
---@return mcp.tool[]?, mcp.failure?
function server:list()
  self.by_name, self.wanted, self.dropped = {}, {}, {}
  if not self.has_tools then return {} end
  local found, failure, cursor = pages(self)
  if not found and cursor ~= nil and failure.rpc and failure.rpc.code == INVALID_PARAMS then found, failure = pages(self) end
  if not found then return nil, failure end
  local tools, dropped = {}, self.dropped
  for _, tool in ipairs(found) do
    local reason = #tools >= MOST_TOOLS and "there are too many" or unusable(self, tool)
    self.cut = self.cut or #tools >= MOST_TOOLS
    if reason then
      local name = type(tool) == "table" and tool.name
      dropped[#dropped + 1] = { name = type(name) == "string" and http.shown(name) or "(none)", reason = reason }
    else
      tools[#tools + 1], self.by_name[tool.name] = tool, tool
    end
  end
  return tools
end

local function call(self, name, arguments, limits)
  local wanted = self.wanted and self.wanted[name]
  local result, failure = self:request("tools/call", { name = name, arguments = arguments },
    { headers = wanted and modern.lines(wanted, arguments), limits = limits or {} })
  if failure and failure.status == 403 then failure.code = "tool_denied" end
  return result, failure
end

---Calls a tool.
---@param name string
---@param arguments table an object
---@param limits? mcp.limits default: none but the job's deadline
---@return table? result as the server sent it: content, structuredContent, isError
---@return mcp.failure?
function server:call(name, arguments, limits)
  local result, failure = call(self, name, arguments, limits)
  local mismatch = failure and failure.rpc and failure.rpc.code == modern.HEADER_MISMATCH
  if mismatch and self.era == "modern" and self:list() then result, failure = call(self, name, arguments, limits) end
  return result, failure
end

---Ends the session, if there is one.
function server:close()
  if self.era == "legacy" then legacy.close(self.peer) end
end

return mcp
