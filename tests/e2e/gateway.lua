-- SPDX-License-Identifier: Apache-2.0
-- cynode-sba --lua gateway.lua OPTIONS CALLS: goes to the gateway as a job would; prints a JSON line for each thing it
-- learns.
local gateway = require "sba.gateway"
local rules = require "sba.gateway.rules"
local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"

local options, calls = assert(json.decode(arg[1])), assert(json.decode(arg[2]))
local limits = options.limits or {}
options.limits = nil
if options.deadline then interrupt.set_deadline(options.deadline) end
options.deadline = nil

local function say(value)
  print(json.encode(value))
end

if rules.address(options.environment) then options.http = http.client(options.environment) end
local remote, failure = gateway.connect(options)
if not remote then return say { failure = failure } end
local tools, problem = remote:tools()
say { form = remote.client.form, era = remote.client.era, tools = tools and json.array(tools), failure = problem,
  dropped = remote.client.dropped, instructions = remote.instructions, version = remote.client.connection.version }
for _, call in ipairs(calls) do
  local until_when = limits.whole and interrupt.now() + limits.whole
  local answer, refused = remote:call(call.name, call.arguments, { until_when = until_when, idle = limits.idle })
  say { answer = answer, failure = refused }
end
remote:close()
