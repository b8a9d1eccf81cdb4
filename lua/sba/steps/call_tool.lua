-- SPDX-License-Identifier: Apache-2.0
-- The step call_tool: a tool of the orchestrator's gateway is called, its answer kept.
--
-- Failures have the gateway's codes (orchestrator/gateway.lua): among them "tool_forbidden", a tool that no job may call;
-- "ext_net_required", one that reaches the outside where the job may not; "tool_denied", which the gateway refused with
-- status 403. A tool that ran and failed is a "step_failed" with its own words.

local excerpt = require "sba.util.excerpt"
local json = require "sba.util.json"
local printable = require "sba.util.printable"
local text = require "native.text"

local LONGEST_MESSAGE <const> = 500 -- bytes of the tool's words in a failure's message

--- The answer as a result; what is longer than the limit is left out of it, and told by the second value.
local function result_of(answer, limit)
  local result = { content = excerpt(answer.content, limit), is_error = answer.is_error }
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
  local words = printable.line(result.content)
  if #words > LONGEST_MESSAGE then words = text.cut(words, LONGEST_MESSAGE) .. "..." end
  local message = ("the tool %s failed: %s"):format(tool, words ~= "" and words or "it does not say why")
  return nil, { code = "step_failed", message = message, result = result, text = result.content }
end

---@param arguments { tool: string, arguments?: table }
---@param job_context { max_output_bytes: integer, agent: boolean, call_tool: fun(tool: string, arguments: table): table?, table? }
---@return table? result
---@return string|native.failure text or failure
local function run(arguments, job_context)
  local limit = job_context.max_output_bytes
  local answer, failure = job_context.call_tool(arguments.tool, arguments.arguments or {})
  if not answer then return nil, failure end
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
    order = { "tool", "arguments" },
    additionalProperties = false,
    properties = {
      tool = { type = "string", minLength = 1, description = "The tool's name, as the gateway lists it." },
      arguments = { type = "object", description = "What the tool takes; task_id and job_id are filled in." },
    },
  },
  result = {
    type = "object",
    required = { "content", "is_error" },
    order = { "content", "structured", "is_error" },
    additionalProperties = false,
    properties = {
      content = { type = "string", description = "The answer as text; what is no text as a line that says what there was." },
      structured = { description = "The answer as a value, where the tool gave one and there is room for it." },
      is_error = { type = "boolean", description = "The tool ran and failed; then the step has failed." },
    },
  },
  show = show,
  run = run,
}
