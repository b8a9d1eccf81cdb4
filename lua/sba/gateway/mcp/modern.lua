-- SPDX-License-Identifier: Apache-2.0
-- MCP without a handshake: revision 2026-07-28, in which every request describes itself, also in headers: arguments that a tool's
-- schema marks with `x-mcp-header` are sent as headers too.

local http = require "sba.util.http"
local json = require "sba.util.json"
local text = require "native.text"
local transport = require "sba.gateway.mcp.transport"
local words = require "sba.util.words"

local modern = { version = "2026-07-28" }

local MOST_ROUNDS <const> = 8 -- of a tool that asks back
local KEY <const> = "io.modelcontextprotocol/"

modern.UNSUPPORTED_VERSION = -32022
modern.HEADER_MISMATCH = -32020

---@class mcp.header
---@field name string
---@field path string[] names of properties, from the arguments down

local MARK <const> = "x-mcp-header"
local primitive = { string = true, integer = true, boolean = true }

-- Keywords that hold values instead of schemas, and keywords that hold named schemas.
local values = { const = true, enum = true, default = true, examples = true, required = true }
local named = { properties = true, patternProperties = true, ["$defs"] = true, definitions = true, dependentSchemas = true }

local function refuse(...)
  error({ invalid = (...):format(select(2, ...)) }, 0)
end

local function check_name(name, seen)
  if type(name) ~= "string" or not name:find("^[%w!#$%%&'*+.^_`|~-]+$") then
    refuse("its %s %s cannot be part of a header's name", MARK, json.encode(name))
  end
  if seen[name:lower()] then refuse("its %s %q occurs twice", MARK, name) end
  seen[name:lower()] = true
end

local visit

--- Visits the schemas below a keyword. path is nil where a header is not allowed.
local function visit_below(keyword, value, path, found, seen)
  if named[keyword] then
    for name, schema in pairs(value) do
      local below
      if path and keyword == "properties" then
        below = table.move(path, 1, #path, 1, {})
        below[#below + 1] = name
      end
      visit(schema, below, found, seen)
    end
  elseif json.is_array(value) then
    for _, schema in ipairs(value) do visit(schema, nil, found, seen) end
  else
    visit(value, nil, found, seen)
  end
end

function visit(schema, path, found, seen)
  if type(schema) ~= "table" then return end
  local name = schema[MARK]
  if name ~= nil then
    if not path or #path == 0 then refuse("%s is not on an argument", MARK) end
    if not primitive[schema.type] then refuse("its %s is on an argument that is not a string, integer or boolean", MARK) end
    check_name(name, seen)
    found[#found + 1] = { name = name, path = path }
  end
  for keyword, value in pairs(schema) do
    if type(value) == "table" and not values[keyword] then visit_below(keyword, value, path, found, seen) end
  end
end

---The headers that a tool's schema names, or why the tool must not be used.
---@param schema table inputSchema
---@return mcp.header[]?, string? reason
function modern.wanted(schema)
  local found = {}
  local ok, problem = pcall(visit, schema, {}, found, {})
  if ok then return found end
  if type(problem) ~= "table" then error(problem, 0) end
  return nil, problem.invalid
end

---Encodes a value for a header.
---@param value string
---@return string
function modern.encoded(value)
  local plain = not value:find("[^\x20-\x7E]") and not value:find("^ ") and not value:find(" $")
  if plain and not (value:find("^=%?base64%?") and value:find("%?=$")) then return value end
  return "=?base64?" .. text.base64_encode(value) .. "?="
end

--- A header line. An empty value is sent too: curl leaves out a line that ends with a colon, so it ends with a semicolon.
local function line_of(name, value)
  if value == "" then return name .. ";" end
  return name .. ": " .. value
end

local function plain(value)
  if type(value) == "string" then return value end
  if type(value) == "boolean" then return tostring(value) end
  local integer = type(value) == "number" and math.tointeger(value)
  return integer and ("%d"):format(integer) or nil
end

--- The argument at a path; nil if there is none.
local function at(value, path)
  for _, name in ipairs(path) do
    if type(value) ~= "table" then return nil end
    value = value[name]
  end
  return value
end

---The header lines of a call.
---@param wanted mcp.header[]
---@param arguments table
---@return string[]
function modern.lines(wanted, arguments)
  local lines = {}
  for _, header in ipairs(wanted) do
    local value = plain(at(arguments, header.path))
    if value then lines[#lines + 1] = line_of("Mcp-Param-" .. header.name, modern.encoded(value)) end
  end
  return lines
end

local function meta()
  return {
    [KEY .. "protocolVersion"] = modern.version, [KEY .. "clientCapabilities"] = {}, [KEY .. "clientInfo"] = transport.CLIENT,
  }
end

local function header_lines(method, params, more)
  local lines = { "MCP-Protocol-Version: " .. modern.version, "Mcp-Method: " .. method }
  if method == "tools/call" then lines[3] = line_of("Mcp-Name", modern.encoded(params.name)) end
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
