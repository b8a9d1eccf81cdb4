-- SPDX-License-Identifier: Apache-2.0
-- The step call_tool: calls a tool of the orchestrator's gateway. Failures have the codes of
-- gateway/init.lua; a tool that ran and failed is step_failed.

local excerpt = require "sba.util.excerpt"
local fail = require "sba.util.fail"
local is = require "sba.util.schema_check"
local json = require "sba.util.json"
local printable = require "sba.util.printable"
local redact = require "native.secret".redact

-- Bytes of the tool's words in a failure's message.
local LONGEST_MESSAGE <const> = 500
-- Seconds without progress of a call by a model, which cannot choose a timeout.
local AGENT_IDLE <const> = 120

--- Base64 in the text is left out; where there is no value, the text is kept as one.
local function for_model(answer)
  local content, structured = excerpt.without_base64(answer.content), answer.structured
  if structured == nil and content ~= answer.content then structured = answer.content end
  return { content = content, structured = structured, is_error = answer.is_error }
end

--- The result, whether all of the answer is within the limit, and whether the text is cut.
local function result_of(answer, limit)
  local content, is_cut = excerpt.of(redact(answer.content), limit)
  local result = { content = content, is_error = answer.is_error }
  local size = #answer.content
  if answer.structured ~= nil then size = size + #json.encode(answer.structured) end
  if size > limit then return result, false, is_cut end
  result.structured = answer.structured
  return result, true, is_cut
end

local slow = { slow_first_byte = true, slow_answer = true, slow_connect = true }

--- Code and message of a failure; nil: there is none.
local function mistake_of(tool, result, is_whole, limit)
  if not is_whole then
    local message = "the answer of the tool %s is longer than the job's max_output_bytes (%d)"
    return "constraint_violation", message:format(tool, limit)
  elseif result.is_error then
    local words = printable.line(result.content, LONGEST_MESSAGE)
    if words == "" then words = "it gives no reason" end
    return "step_failed", ("the tool %s failed: %s"):format(tool, words)
  end
end

local function run(arguments, job_context)
  local tool, timeout = arguments.tool, arguments.timeout_seconds
  local limit = job_context.max_output_bytes
  local limits = { whole = timeout, idle = job_context.agent and AGENT_IDLE or nil }
  local answer, failure = job_context.call_tool(tool, arguments.arguments or {}, limits)
  if not answer and timeout and slow[failure.code] then
    fail.raise("timeout", "the tool %s did not answer within its timeout of %s s; it may still run", tool, timeout)
  end
  fail.check(answer, failure)
  if job_context.agent then answer = for_model(answer) end
  local result, is_whole, is_cut = result_of(answer, limit)
  local code, message = mistake_of(tool, result, is_whole or job_context.agent, limit)
  if not code then return result, result.content, is_cut end
  return fail.with(code, message, result, result.content, is_cut)
end

--- Where the tool failed in few words, they are in the failure's message already.
local function show(result)
  if result.is_error and #result.content <= LONGEST_MESSAGE then return "" end
  return result.content
end

return {
  name = "call_tool",
  summary = "Call a tool of the orchestrator's gateway.",
  -- It is shown the gateway's tools themselves.
  for_model = false,
  arguments = is.object {
    "tool!", is.text("The tool's name, as the gateway lists it.", { minLength = 1 }),
    "arguments", is.typed("object", "What the tool takes; task_id and job_id are filled in."),
    "timeout_seconds", is.typed("number",
      "Seconds, more than 0, after which the step fails; default: no limit but the job's.",
      { exclusiveMinimum = 0 }),
  },
  result = is.object {
    "content!", is.text "The answer as text; other content is described in a line each.",
    "structured", {
      description = "The answer as a value, if the tool gave one that says more than the text, "
        .. "and there is room for it.",
    },
    "is_error!", is.flag "The tool ran and failed; then the step has failed.",
  },
  show = show,
  run = run,
}
