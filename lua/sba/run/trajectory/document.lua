-- SPDX-License-Identifier: Apache-2.0
-- An ATIF document (Agent Trajectory Interchange Format 1.8), written step by step, so that it is never in memory as a whole.
-- Each step is a line.

local array = require "sba.util.json".array
local encode = require "sba.util.json".encode
local secret = require "sba.util.secret"

local document = {}
document.__index = document

local VERSION <const> = "ATIF-v1.8"

local own <const> = { enum = {} } -- a field that holds no text from outside

-- The order of keys, and which values are the runner's own: the others are redacted.
local result_extra <const> = {
  order = { "step", "status", "exit_code", "duration_ms", "error_code" },
  properties = { step = own, status = own, error_code = own },
}
local step_schema <const> = {
  order = {
    "step_id", "timestamp", "source", "model_name", "message", "reasoning_content", "tool_calls", "observation", "metrics",
    "llm_call_count", "extra",
  },
  properties = {
    timestamp = own, source = own,
    tool_calls = { items = { order = { "tool_call_id", "function_name", "arguments" }, properties = { function_name = own } } },
    observation = { properties = { results = { items = {
      order = { "source_call_id", "content", "extra" }, properties = { extra = result_extra },
    } } } },
    metrics = { order = { "prompt_tokens", "completion_tokens", "extra" }, properties = {} },
    extra = { properties = { context_management = own, status = own, failure_code = own, done_reason = own } },
  },
}
local agent_schema <const> = { order = { "name", "version", "model_name", "extra" }, properties = { name = own, version = own } }

---@class trajectory.head
---@field session_id? string
---@field version string of the runner
---@field model_name? string
---@field tool_definitions? string JSON
---@field extra? table of the agent

---@param write fun(...: string): true?, native.failure? takes the text piece by piece
---@return trajectory.document
function document.new(write)
  return setmetatable({ write = write, count = 0, prompt_tokens = 0, completion_tokens = 0 }, document)
end

--- The beginning, up to the first step.
---@param head trajectory.head
---@return true?, native.failure? failure
function document:begin(head)
  local agent = { name = "cynode-sba", version = head.version, model_name = head.model_name, extra = head.extra }
  local text = encode(secret.clean(agent, agent_schema), agent_schema)
  if head.tool_definitions then text = ('%s,"tool_definitions":%s}'):format(text:sub(1, -2), head.tool_definitions) end
  local session = head.session_id and ('"session_id":%s,'):format(encode(head.session_id)) or ""
  return self.write(('{"schema_version":"%s",%s"agent":%s,"steps":['):format(VERSION, session, text))
end

--- Adds a step; its number is made here.
---@param step table as ATIF has it
---@return true?, native.failure? failure
function document:step(step)
  self.count = self.count + 1
  step.step_id = self.count
  local metrics = step.metrics or {}
  self.prompt_tokens = self.prompt_tokens + (metrics.prompt_tokens or 0)
  self.completion_tokens = self.completion_tokens + (metrics.completion_tokens or 0)
  return self.write(self.count > 1 and "," or "", encode(secret.clean(step, step_schema), step_schema))
end

local function positive(number) return number > 0 and number or nil end

--- The end, after the last step.
---@param notes string[] sentences
---@param extra table
---@param schema table which of its values are the runner's own
---@return true?, native.failure? failure
function document:finish(notes, extra, schema)
  local metrics = {
    total_prompt_tokens = positive(self.prompt_tokens), total_completion_tokens = positive(self.completion_tokens),
    total_steps = self.count,
  }
  local said = #notes > 0 and ('"notes":%s,'):format(encode(secret.redact(table.concat(notes, " ")))) or ""
  return self.write(("],%s\"final_metrics\":%s,\"extra\":%s}"):format(said, encode(metrics), encode(secret.clean(extra, schema), schema)))
end

---@param items table[]
---@return table? observation nil where there is no result
function document.observation(items)
  return #items > 0 and { results = array(items) } or nil
end

return document
