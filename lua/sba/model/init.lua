-- SPDX-License-Identifier: Apache-2.0
-- Models: finds an endpoint that serves an allowed one, and connects to it. What is asked of a model, and what it may do, is the
-- caller's.

local chat_completions = require "sba.model.chat_completions"
local endpoint = require "sba.model.endpoint"
local ollama = require "sba.model.ollama"
local printable = require "sba.util.printable"
local retry = require "sba.util.retry"
local session = require "sba.model.session"
local url = require "sba.util.url"
local wire = require "sba.model.wire"
local words = require "sba.util.words"

local inference = {}

local CONNECT_TRIES <const> = 3
local LONGEST_MESSAGE <const> = 4000 -- bytes of one that names models

local dialects = { ollama = ollama, chat_completions = chat_completions }

---@class inference.options
---@field environment table<string, string>
---@field allowed_models string[] of the job; no other is ever named in a request
---@field source? "worker"|"api_egress"|"orchestrator" of the job
---@field http native.http.client
---@field on_wait? fun(failure: inference.failure, seconds: number, number: integer) before each wait
---@field timeout? { connect: number?, first: number?, idle: number?, probe: number? } seconds
---@field policy? table of retry.policy, fields to change

local function new_policy(options)
  local policy = retry.policy()
  for name, value in pairs(options.policy or {}) do policy[name] = value end
  return policy
end

--- Whether an endpoint's answer says that it speaks something else: no such path, or no JSON.
local function speaks_otherwise(failure)
  return failure.cause == "bad_answer" or failure.status and failure.status < 500 and failure.status ~= 429
end

--- The models of an endpoint in the first dialect that it speaks.
local function list(candidate)
  local first
  for _, name in ipairs(candidate.dialects) do
    local dialect = dialects[name]
    local served, failure = dialect.list(candidate.endpoint)
    if served then return dialect, served end
    first = first or failure
    if not speaks_otherwise(failure) then break end
  end
  return nil, nil, first
end

local function names_of(served)
  local names = {}
  for i, one in ipairs(served) do names[i] = one.name end
  if #names > 10 then names = table.move(names, 1, 10, 1, { [11] = ("%d more"):format(#names - 10) }) end
  return names
end

local function connected(options, candidate, dialect, model, others)
  local description, failure = dialect.describe(candidate.endpoint, model)
  if not description then return nil, failure end
  return session.new {
    dialect = dialect, endpoint = candidate.endpoint, model = model.name, others = others, policy = new_policy(options),
    context_length = description.context_length, supports_tools = description.supports_tools,
    on_wait = options.on_wait, place = endpoint.place(candidate.endpoint),
  }
end

local function not_served(candidate, served, wanted)
  local message = ("%s serves none of the allowed models (%s); it has %s"):format(
    url.shown(candidate.endpoint.base), words.list(wanted, "and"), words.list(names_of(served), "and"))
  return wire.failure(candidate.endpoint, { code = "model_missing", message = printable.line(message, LONGEST_MESSAGE) })
end

--- API Egress that lists no models: the first wanted one is taken, and the next where it turns out to be missing.
local function unlisted(options, candidate, wanted)
  local others = table.move(wanted, 2, #wanted, 1, {})
  return connected(options, candidate, chat_completions, { name = wanted[1], entry = {} }, others)
end

local function try(options, candidate, wanted)
  if candidate.failure then return nil, wire.failure(candidate.endpoint, candidate.failure) end
  local dialect, served, failure = list(candidate)
  if dialect then
    local model = endpoint.choose(served, wanted)
    if not model then return nil, not_served(candidate, served, wanted) end
    return connected(options, candidate, dialect, model)
  end
  if candidate.source == "api_egress" and failure.status and (failure.status == 404 or failure.status == 405 or failure.status == 501) then
    return unlisted(options, candidate, wanted)
  end
  return nil, failure
end

local function unavailable(message, transient)
  return { code = "inference_unavailable", cause = "no_endpoint", message = message, transient = transient }
end

--- No model can be reached. missing: the variables of the job's source, where none of them is set.
local function nothing_reached(tried, missing, transient)
  local hint = missing and "the environment names no endpoint for models; set " .. words.list(missing, "or")
  if #tried == 0 then return unavailable(hint, false) end
  return unavailable("no model can be reached: " .. table.concat(tried, "; ") .. (hint and "; " .. hint or ""), transient)
end

local function try_all(options, candidates, wanted, missing)
  local tried, transient = {}, false
  for i, candidate in ipairs(candidates) do
    local found, failure = try(options, candidate, wanted)
    if found then return found end
    if failure.code ~= "inference_unavailable" then return nil, failure end
    tried[i] = ("%s: %s"):format(candidate.endpoint.name, failure.message)
    transient = transient or failure.transient and not candidate.is_guess
  end
  return nil, nothing_reached(tried, missing, transient)
end

---The models of the first endpoint that has any.
---@param options inference.options without allowed_models
---@return string[]? names, inference.failure? failure whose message says what was tried
function inference.served(options)
  local candidates, missing = endpoint.candidates(options.environment, options.source, options.http, options.timeout)
  local tried = {}
  for i, candidate in ipairs(candidates) do
    local _, served, failure = list(candidate)
    if served and #served > 0 then return names_of(served) end
    tried[i] = ("%s: %s"):format(candidate.endpoint.name, failure and failure.message or "it has no model")
  end
  return nil, nothing_reached(tried, missing, false)
end

---Finds the endpoint and the model of a job, and what is to be known of the model before the first request.
---@param options inference.options
---@return inference.session?, inference.failure? failure inference_unavailable, whose message says what was tried; timeout; cancelled
function inference.connect(options)
  local candidates, missing = endpoint.candidates(options.environment, options.source, options.http, options.timeout)
  if #candidates == 0 then return nil, nothing_reached({}, missing, false) end
  local wanted, policy = endpoint.wanted(options.allowed_models, options.environment.INFERENCE_MODEL), new_policy(options)
  policy.tries = math.min(policy.tries, CONNECT_TRIES)
  return retry.run(policy, function() return try_all(options, candidates, wanted, missing) end, options.on_wait)
end

return inference
