-- SPDX-License-Identifier: Apache-2.0
-- cynode-sba --lua client.lua URL: plays a client scenario of the MCP conformance suite, which names it in the
-- environment.

local http = require "sba.util.http"
local json = require "sba.util.json"
local mcp = require "sba.gateway.mcp"

local scenario = os.getenv "MCP_CONFORMANCE_SCENARIO"
local context = json.decode(os.getenv "MCP_CONFORMANCE_CONTEXT" or "{}") or {}

local function show(result, failure)
  print(result and "ok" or "failed: " .. failure.code .. ": " .. failure.message)
  return result
end

--- Arguments that a schema's required properties take: numbers and words.
local function arguments_for(schema)
  local values = { number = 2, integer = 2, boolean = true, string = "word", object = {}, array = json.array {} }
  local arguments = {}
  for name, property in pairs(schema.properties or {}) do
    if name ~= "schema" then arguments[name] = values[property.type] end
  end
  return arguments
end

local function call_all(server, tools)
  for _, tool in ipairs(tools) do show(server:call(tool.name, arguments_for(tool.inputSchema), {})) end
end

local plays = { initialize = function() end, ["json-schema-ref-no-deref"] = function() end }

plays["json-schema-2020-12-preservation"] = function(server, tools)
  for _, tool in ipairs(tools) do
    local arguments = { schema = tool.inputSchema }
    if tool.name == "json_schema_2020_12_tool" then show(server:call("json_schema_echo", arguments, {})) end
  end
end

plays["http-custom-headers"] = function(server)
  for _, call in ipairs(context.toolCalls) do show(server:call(call.name, call.arguments, {})) end
end

local server, failure = mcp.connect({ url = arg[1], http = assert(http.client {}), answer_timeout = 3 }, {})
if not show(server, failure) then os.exit(1) end
local tools, unlisted = server:list {}
if not show(tools, unlisted) then os.exit(1) end
for _, left_out in ipairs(server.dropped) do print("left out", left_out.name, left_out.reason) end
local play = plays[scenario] or call_all
play(server, tools)
server:close()
