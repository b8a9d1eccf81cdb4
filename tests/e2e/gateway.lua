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
local opened, failure = gateway.connect(options)
if not opened then return say { failure = failure } end
local tools, problem = opened:tools()
say { form = opened.client.form, era = opened.client.era, tools = tools and json.array(tools), failure = problem,
  dropped = opened.client.dropped, instructions = opened.instructions, version = opened.client.connection.version }
for _, call in ipairs(calls) do
  local until_when = limits.whole and interrupt.now() + limits.whole
  local answer, refused = opened:call(call.name, call.arguments, { until_when = until_when, idle = limits.idle })
  say { answer = answer, failure = refused }
end
opened:close()
