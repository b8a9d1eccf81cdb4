-- SPDX-License-Identifier: Apache-2.0
-- The step ask_model: one question to a model of the job. An answer that does not fit the schema is
-- asked for once more.

local fail = require "sba.util.fail"
local is = require "sba.util.schema_check"
local json = require "sba.util.json"
local schema_document = require "sba.util.schema_document"
local text = require "native.text"

local check = fail.check

local function result_of(reply, value)
  return {
    content = value == nil and reply.content or nil, json = value, model = reply.model,
    prompt_tokens = reply.prompt_tokens, completion_tokens = reply.completion_tokens,
  }
end

local function unusable(reply, why)
  return fail.with("step_failed", "the model's answer " .. why, result_of(reply), reply.content)
end

--- The answer as the schema has it; or nil, why it cannot be used (nil: it is plain text), and
--- whether another answer may do.
local function value_of(reply, schema)
  if reply.done_reason == "length" then return nil, "was cut off because it was too long" end
  if reply.done_reason == "repetition" then return nil, "was stopped: " .. reply.unreadable end
  if not schema then return nil end
  local value, broken = json.decode(reply.content)
  if broken then return nil, "is not JSON: " .. broken.message, true end
  local misfit = schema_document.misfit(value, schema)
  if not misfit then return value end
  return nil, "does not fit json_schema: " .. misfit, true
end

--- The second reply, with the tokens of both.
local function ask_again(job_context, question, first, mistake)
  question.earlier = { answer = first.content, mistake = mistake }
  local reply, failure = job_context.ask(question)
  if not reply and failure.code == "inference_unavailable" then
    reply, failure = unusable(first, ("%s; asked again: %s"):format(mistake, failure.message))
  end
  check(reply, failure)
  for _, name in ipairs { "prompt_tokens", "completion_tokens" } do
    if first[name] then reply[name] = first[name] + (reply[name] or 0) end
  end
  return reply
end

local function run(arguments, job_context)
  local schema = arguments.json_schema
  local question = { prompt = arguments.prompt, system = arguments.system, json_schema = schema }
  question.model = arguments.model
  local reply = check(job_context.ask(question))
  local value, mistake, may_be_mended = value_of(reply, schema)
  if may_be_mended then
    reply = ask_again(job_context, question, reply, mistake)
    value, mistake = value_of(reply, schema)
  end
  if mistake then return unusable(reply, mistake) end
  local limit = job_context.max_output_bytes
  if #reply.content > limit then
    local cut = text.cut(reply.content, limit)
    local message = "the model's answer is longer than the job's max_output_bytes (%d)"
    return fail.with("constraint_violation", message:format(limit),
      result_of { content = cut, model = reply.model }, cut, true)
  end
  local path = arguments.save_to
  if path then check(job_context.workspace:write(path, reply.content)) end
  return result_of(reply, value), reply.content
end

return {
  name = "ask_model",
  summary = "Ask a model of the job one question.",
  -- It would be asking itself.
  for_model = false,
  arguments = is.object {
    "prompt!", is.text("What the model is asked.", { minLength = 1 }),
    "system", is.text "Instructions that follow the job's context.",
    "model", is.text("One of inference.allowed_models; default: the first that is served.",
      { minLength = 1 }),
    "json_schema", is.typed("object", "The answer must be JSON that fits this JSON Schema."),
    "save_to", is.text("File of the workspace that the answer is written to.",
      { minLength = 1, nul = false }),
  },
  result = is.object {
    "content", is.text "The answer; where json_schema was given, it is in json instead.",
    "json", { description = "The answer as a value." },
    "model!", is.text(),
    "prompt_tokens", is.count(),
    "completion_tokens", is.count(),
  },
  run = run,
}
