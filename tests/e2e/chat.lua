-- SPDX-License-Identifier: Apache-2.0
-- cynode-sba --lua chat.lua PLAN: connects as the plan (JSON) says, asks what it asks, and prints what comes of it as
-- lines of JSON: {"wait"}, {"session"}, {"reply"} or {"failure"}, {"text"}.
local http = require "sba.util.http"
local models = require "sba.model.connect"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"

local plan = assert(json.decode(arg[1]))
if plan.deadline then interrupt.set_deadline(plan.deadline) end

local function say(value)
  print(json.encode(value))
  io.flush()
end

plan.options.environment = plan.options.environment or {}
plan.options.http = http.client(plan.options.environment)
local pieces
plan.options.on_text = function(piece) pieces[#pieces + 1] = piece end
plan.options.on_wait = function(failure, seconds) say { wait = seconds, message = failure.message } end

local session, failure = models.connect(plan.options)
if not session then return say { failure = failure } end

local function say_session()
  say { session = {
    model = session.model, context_length = session.context_length, supports_tools = session.supports_tools,
  } }
end

say_session()
local said = {} -- a conversation has the same tables at every request
for _, request in ipairs(plan.requests) do
  pieces = {}
  for i, message in ipairs(request.messages) do
    local key = i .. json.encode(message)
    said[key] = said[key] or message
    request.messages[i] = said[key]
  end
  local reply, failed = session:chat(request)
  say(reply and { reply = reply, text = table.concat(pieces) } or { failure = failed })
end
say_session()
