-- SPDX-License-Identifier: Apache-2.0
-- The step ask_model: one question to a model of the job.

local is = require "sba.util.schema_check"
local json = require "sba.util.json"
local schema_document = require "sba.util.schema_document"
local text = require "native.text"

local function result_of(reply, value)
  return {
    content = value == nil and reply.content or nil, json = value, model = reply.model,
    prompt_tokens = reply.prompt_tokens, completion_tokens = reply.completion_tokens,
  }
end

local function unusable(reply, why)
  return nil, { code = "step_failed", message = "the model's answer " .. why, result = result_of(reply), text = reply.content }
end

--- The answer as the schema has it, if there is one; or why it cannot be used, and whether another may do.
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

local function ask_again(job_context, question, first, mistake)
  question.earlier = { answer = first.content, mistake = mistake }
  local reply, failure = job_context.ask(question)
  if not reply and failure.code == "inference_unavailable" then
    return unusable(first, ("%s; asked again: %s"):format(mistake, failure.message))
  end
  if not reply then return nil, failure end
  for _, name in ipairs { "prompt_tokens", "completion_tokens" } do
    reply[name] = first[name] and (reply[name] or 0) + first[name] or reply[name]
  end
  return reply
end

local function run(arguments, job_context)
  local schema = arguments.json_schema
  local question = { prompt = arguments.prompt, system = arguments.system, model = arguments.model, json_schema = schema }
  local reply, failure = job_context.ask(question)
  if not reply then return nil, failure end
  local value, mistake, may_be_mended = value_of(reply, schema)
  if may_be_mended then
    reply, failure = ask_again(job_context, question, reply, mistake)
    if not reply then return nil, failure end
    value, mistake = value_of(reply, schema)
  end
  if mistake then return unusable(reply, mistake) end
  if #reply.content > job_context.max_output_bytes then
    local cut = text.cut(reply.content, job_context.max_output_bytes)
    return nil, {
      code = "constraint_violation", result = result_of { content = cut, model = reply.model }, text = cut, is_cut = true,
      message = ("the model's answer is longer than the job's max_output_bytes (%d)"):format(job_context.max_output_bytes),
    }
  end
  if arguments.save_to then
    local written
    written, failure = job_context.workspace:write(arguments.save_to, reply.content)
    if not written then return nil, failure end
  end
  return result_of(reply, value), reply.content
end

return {
  name = "ask_model",
  summary = "Ask a model of the job one question.",
  for_model = false, -- it would be asking itself
  arguments = is.object {
    "prompt!", is.text("What the model is asked.", { minLength = 1 }),
    "system", is.text "Instructions that follow the job's context.",
    "model", is.text("One of inference.allowed_models; default: the first that is served.", { minLength = 1 }),
    "json_schema", { type = "object", description = "The answer must be JSON that fits this JSON Schema." },
    "save_to", is.text("File of the workspace that the answer is written to.", { minLength = 1, nul = false }),
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
