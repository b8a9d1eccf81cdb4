-- SPDX-License-Identifier: Apache-2.0
-- MCP without a handshake: revision 2026-07-28. Every request describes itself, in headers too;
-- arguments marked with `x-mcp-header` in a tool's schema become headers too.

local http = require "sba.util.http"
local humanize = require "sba.util.humanize"
local json = require "sba.util.json"
local text = require "native.text"
local transport = require "sba.gateway.mcp.transport"

local VERSION <const> = "2026-07-28"
local MOST_ROUNDS <const> = 8 -- of a tool that asks back
local KEY <const> = "io.modelcontextprotocol/"
local MARK <const> = "x-mcp-header"

local modern = { UNSUPPORTED_VERSION = -32022, HEADER_MISMATCH = -32020 }

local primitive <const> = { string = true, integer = true, boolean = true }

-- Why a mark makes its tool invalid.
local function problem_of(header, seen)
  local name, path = header.name, header.path
  if not path or #path == 0 then
    return ("its %s is not on an argument that is a string, integer or boolean"):format(MARK)
  end
  if type(name) ~= "string" or not name:find "^[%w!#$%%&'*+.^_`|~-]+$" or seen[name:lower()] then
    return ("its %s, %s, cannot be part of a header's name, or occurs twice"):format(MARK, humanize.value(name))
  end
end

---@param schema table inputSchema
---@return { name: string, path: string[] }[]? headers, each with its argument's path
---@return string? reason why the tool must not be used
function modern.wanted(schema)
  local found, seen = {}, {}

  -- path: of the argument that a part of the schema describes; nil where it describes none, as
  -- below `items`
  local function visit(part, path)
    if type(part) ~= "table" then return end
    local name = part[MARK]
    if name ~= nil then found[#found + 1] = { name = name, path = primitive[part.type] and path } end
    for keyword, value in pairs(part) do
      if keyword ~= "properties" then visit(value, nil) end
    end
    for argument, property in pairs(json.table_of(part.properties)) do
      visit(property, path and table.move(path, 1, #path, 1, { [#path + 1] = argument }))
    end
  end

  visit(schema, {})
  for _, header in ipairs(found) do
    local problem = problem_of(header, seen)
    if problem then return nil, problem end
    seen[header.name:lower()] = true
  end
  return found
end

---@param value string
---@return string header_value
function modern.encoded(value)
  local plain = not value:find("[^\x20-\x7E]") and not value:find("^ ") and not value:find(" $")
  if plain and not (value:find("^=%?base64%?") and value:find("%?=$")) then return value end
  return "=?base64?" .. text.base64_encode(value) .. "?="
end

-- A line of an empty value ends with a semicolon: curl leaves out one that ends with a colon.
local function line_of(name, value)
  if value == "" then return name .. ";" end
  return name .. ": " .. modern.encoded(value)
end

---@param wanted table[] as of modern.wanted
---@param arguments table
---@return string[]
function modern.lines(wanted, arguments)
  local lines = {}
  for _, header in ipairs(wanted) do
    local value = arguments
    for _, name in ipairs(header.path) do value = json.table_of(value)[name] end
    if type(value) == "number" then value = math.tointeger(value) end
    if value ~= nil and primitive[math.type(value) or type(value)] then
      lines[#lines + 1] = line_of("Mcp-Param-" .. header.name, tostring(value))
    end
  end
  return lines
end

-- Closing the exchange early is what cancels a request.
local function request_once(connection, method, params, limits, more)
  params._meta = { [KEY .. "protocolVersion"] = VERSION, [KEY .. "clientCapabilities"] = {} }
  params._meta[KEY .. "clientInfo"] = transport.CLIENT
  local lines = { "MCP-Protocol-Version: " .. VERSION, "Mcp-Method: " .. method, table.unpack(more or {}) }
  if method == transport.CALL then lines[#lines + 1] = line_of("Mcp-Name", params.name) end
  local result, failure = connection:request(connection:new_request(method, limits), params, lines)
  if result then return result end
  return nil, failure or connection:failure("request_lost", "broke off its answer")
end

---@param list any of versions
---@return boolean
function modern.speaks(list) return json.is_array(list) and json.contains(list, VERSION) end

-- Asks once more if the server refuses the version although it supports it.
local function request_again(connection, method, params, limits, headers)
  local result, failure = request_once(connection, method, params, limits, headers)
  local rpc = failure and failure.rpc or {}
  local is_of_versions = rpc.code == modern.UNSUPPORTED_VERSION and type(rpc.data) == "table"
  if not is_of_versions then return result, failure end
  failure.code = "unsupported_version"
  if not modern.speaks(rpc.data.supported) then return nil, failure end
  return request_once(connection, method, params, limits, headers)
end

local ASKS <const> = "asks for %s before it continues; a job cannot answer"

-- Returns the parameters that decline a tool's questions; nil and a failure if one cannot be
-- declined.
local function declined(connection, result)
  local responses = {}
  for key, question in pairs(json.table_of(result.inputRequests)) do
    local method = json.table_of(question).method
    if method ~= "elicitation/create" then
      local what = http.shown(type(method) == "string" and method or "a question")
      return connection:failed("input_required", ASKS, what)
    end
    responses[key] = { action = "decline" }
  end
  return { inputResponses = next(responses) and responses, requestState = json.given(result.requestState) }
end

---Sends a request, as legacy.request; headers: more of them.
function modern.request(connection, method, params, limits, headers)
  local sent = params
  for _ = 1, MOST_ROUNDS do
    local result, failure = request_again(connection, method, sent, limits, headers)
    if not result then return nil, failure end
    local kind = json.given(result.resultType) or "complete"
    if kind == "complete" then return result end
    if kind ~= "input_required" then
      local shown = http.shown(json.encode(kind))
      return connection:failed("bad_answer", "sent a result of the unknown type %s", shown)
    end
    sent, failure = declined(connection, result)
    if not sent then return nil, failure end
    for name, value in pairs(params) do sent[name] = value end
  end
  return connection:failed("input_required", "asked %d times for more input; a job cannot answer", MOST_ROUNDS)
end

return modern
