-- SPDX-License-Identifier: Apache-2.0
-- The step call_tool: a tool of the orchestrator's gateway is called, its answer kept.
--
-- Failures have the gateway's codes (orchestrator/gateway.lua): among them "tool_forbidden", a tool that no job may call;
-- "ext_net_required", one that reaches the outside where the job may not; "tool_denied", which the gateway refused with
-- status 403. A tool that ran and failed is a "step_failed" with its own words.

local excerpt = require "sba.util.excerpt"
local json = require "sba.util.json"
local printable = require "sba.util.printable"

local LONGEST_MESSAGE <const> = 500 -- bytes of the tool's words in a failure's message
local AGENT_IDLE <const> = 120 -- seconds without progress that a model's call may take; a model cannot choose

--- The answer as a result; what is longer than the limit is left out of it, and told by the second value.
local function result_of(answer, limit)
  local result = { content = excerpt.of(answer.content, limit), is_error = answer.is_error }
  local size = #answer.content + (answer.structured ~= nil and #json.encode(answer.structured) or 0)
  if size > limit then return result, false end
  result.structured = answer.structured
  return result, true
end

local function too_long(tool, result, limit)
  local message = ("the answer of the tool %s is longer than the job's max_output_bytes (%d)"):format(tool, limit)
  return nil, { code = "constraint_violation", message = message, result = result, text = result.content }
end

local function said_error(tool, result)
  local words = printable.line(result.content, LONGEST_MESSAGE)
  local message = ("the tool %s failed: %s"):format(tool, words ~= "" and words or "it gives no reason")
  return nil, { code = "step_failed", message = message, result = result, text = result.content }
end

--- What is wrong with the arguments beyond their schema.
local function check(arguments)
  if (arguments.timeout_seconds or 1) <= 0 then return "must be more than 0", "timeout_seconds" end
end

local slow = { slow_first_byte = true, slow_answer = true, slow_connect = true }

local function call_failed(arguments, failure)
  if not arguments.timeout_seconds or not slow[failure.code] then return failure end
  local message = ("the tool %s did not answer within its timeout of %s s; it may still run")
    :format(arguments.tool, arguments.timeout_seconds)
  return { code = "timeout", message = message }
end

---@param arguments { tool: string, arguments?: table, timeout_seconds?: number }
---@param job_context sba.job_context
---@return table? result
---@return string|native.failure text or failure
local function run(arguments, job_context)
  local limit = job_context.max_output_bytes
  local answer, failure = job_context.call_tool(arguments.tool, arguments.arguments or {},
    { whole = arguments.timeout_seconds, idle = job_context.agent and AGENT_IDLE or nil })
  if not answer then return nil, call_failed(arguments, failure) end
  local result, whole = result_of(answer, limit)
  if not whole and not job_context.agent then return too_long(arguments.tool, result, limit) end
  if result.is_error then return said_error(arguments.tool, result) end
  return result, result.content
end

--- What a model sees: where the tool failed in few words, they are in the failure's message already.
local function show(result)
  return result.is_error and #result.content <= LONGEST_MESSAGE and "" or result.content
end

return {
  name = "call_tool",
  summary = "Call a tool of the orchestrator's gateway.",
  for_model = false, -- it is shown the gateway's tools themselves
  arguments = {
    type = "object",
    required = { "tool" },
    order = { "tool", "arguments", "timeout_seconds" },
    additionalProperties = false,
    properties = {
      tool = { type = "string", minLength = 1, description = "The tool's name, as the gateway lists it." },
      arguments = { type = "object", description = "What the tool takes; task_id and job_id are filled in." },
      timeout_seconds = {
        type = "number", minimum = 0,
        description = "Seconds, more than 0, after which the step fails; default: no limit but the job's.",
      },
    },
  },
  result = {
    type = "object",
    required = { "content", "is_error" },
    order = { "content", "structured", "is_error" },
    additionalProperties = false,
    properties = {
      content = { type = "string", description = "The answer as text; other content is described in a line each." },
      structured = { description = "The answer as a value, if the tool gave one that says more than the text, and there is room for it." },
      is_error = { type = "boolean", description = "The tool ran and failed; then the step has failed." },
    },
  },
  check = check,
  show = show,
  run = run,
}
