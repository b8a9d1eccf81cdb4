-- SPDX-License-Identifier: Apache-2.0
-- cynode-sba --lua everything.lua URL: uses the tools of the reference server as a job would.

local http = require "sba.util.http"
local json = require "sba.util.json"
local gateway = require "sba.orchestrator.gateway"

local remote = assert(gateway.connect {
  environment = { SBA_MCP_GATEWAY_URL = arg[1] }, http = assert(http.client {}), job_id = "job-1", task_id = "task-1",
  ext_net_allowed = false,
})

local function call(name, arguments)
  local answer, failure = remote:call(name, arguments)
  return assert(answer, failure and failure.message)
end

local tools = assert(remote:tools())
print(("%d tools, left out %d"):format(#tools, #remote:dropped()))
assert(#tools > 5)

local echoed = call("echo", { message = "grüße" })
assert(echoed.content == "Echo: grüße" and not echoed.is_error, echoed.content)
assert(call("get-sum", { a = 2, b = 40 }).content:find("42", 1, true))

local image = call("get-tiny-image", {})
assert(image.content:find("%[image, image/png, %d+ bytes%]"), image.content)

local structured = call("get-structured-content", { location = "Chicago" })
assert(structured.structured == nil and json.decode(structured.content).temperature, structured.content)

local long = call("trigger-long-running-operation", { duration = 1, steps = 4 })
assert(long.content:find("completed", 1, true), long.content)

local wrong = remote:call("get-sum", { a = "two" })
assert(not wrong or wrong.is_error)

for number = 1, 100 do assert(call("echo", { message = tostring(number) }).content == "Echo: " .. number) end
remote:close()
