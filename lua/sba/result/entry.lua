-- SPDX-License-Identifier: Apache-2.0
-- A step's entry in the result, made of what its run returned.

local excerpt = require "sba.util.excerpt"
local failures = require "sba.result.failure"
local json = require "sba.util.json"
local long_text = require "sba.util.files".long_text
local result_schema = require "sba.result.result_schema"
local schema_check = require "sba.util.schema_check"
local secret = require "sba.util.secret"
local text = require "native.text"

local entries = {}

local MOST_OUTPUT <const> = 1024 * 1024 -- bytes
-- Bytes of a text that is encoded apart.
local LONG <const> = 256 * 1024

-- Error codes of the status timeout.
local TIMEOUTS <const> = { timeout = true, idle_timeout = true }

local entry_schema = result_schema.properties.steps.items
local schemas = setmetatable({}, { __mode = "k" })

--- With the step type's result in it, so that every key has its order.
local function schema_of(module)
  if not module then return entry_schema end
  schemas[module] = schemas[module] or schema_check.with(entry_schema, { result = module.result })
  return schemas[module]
end

--- Secrets are redacted before the text is shortened: a part of one would not be found.
local function fill(entry, module, limit, result, words, is_cut)
  if not (module and module.redacts) then
    result = secret.clean(result, module and module.result)
    words = words and secret.redact(words)
  end
  entry.result, entry.exit_code = result, json.table_of(result).exit_code
  entry.error = entry.error and secret.redact(entry.error)
  if not words then return end
  local is_shortened
  entry.output, is_shortened = excerpt.of(text.repair(words), math.min(limit, MOST_OUTPUT))
  if is_cut or is_shortened then entry.output_truncated = true end
end

---Makes an entry, but for its place, name and times, of what xpcall(run, failures.traced) gave.
---@param module table of the step's type
---@param limit integer bytes of the plain text
---@param ok boolean
---@param result any
---@param more any the text, or the failure
---@param is_cut? boolean the text is not whole
---@return table entry, failure? failure the job's
function entries.make(module, limit, ok, result, more, is_cut)
  if ok and result ~= nil then
    local entry = { status = "success" }
    fill(entry, module, limit, result, more, is_cut)
    return entry
  end
  local problem = more
  if not ok then
    problem = failures.caught(result, true)
  elseif type(problem) ~= "table" then
    problem = failures.caught("the step returned neither result nor failure", true)
  end
  local status = TIMEOUTS[problem.code] and "timeout" or "failure"
  local entry = { status = status, error = problem.message, error_code = problem.code }
  fill(entry, module, limit, problem.result, problem.text, problem.is_cut)
  local failure = failures.of_step(problem.code, entry.error)
  failure.traceback = problem.traceback
  return entry, failure
end

---@param step { arguments: table }
---@param context { max_output_bytes: integer }
---@return integer most bytes of the plain text; read_file cuts its own to max_bytes, but no sentence
---in its place
function entries.most_text(step, context)
  return math.min(context.max_output_bytes, step.arguments.max_output_bytes or math.maxinteger)
end

---@param step { arguments: table }
---@param context { max_output_bytes: integer }
---@return integer bytes that the step may return
function entries.limit(step, context)
  local arguments = step.arguments
  local own = arguments.max_output_bytes or arguments.max_bytes or math.maxinteger
  return math.min(context.max_output_bytes, own)
end

---The entry as JSON, in parts if its result has long texts. Meanwhile bytes that no JSON holds,
---"\0001\0" and so on, stand for them.
---@param entry table
---@param module? table of the step's type
---@return string|(string|native.file.text)[]
function entries.encode(entry, module)
  local result, whole_texts, texts = entry.result, {}, {}
  for name, value in pairs(json.is_object(result) and result or {}) do
    local is_long = type(value) == "string" and #value > LONG
    if is_long or type(value) == "table" and getmetatable(value) == long_text then
      texts[#texts + 1] = is_long and { bytes = value } or value
      whole_texts[name], result[name] = value, json.verbatim(('"\0%d\0"'):format(#texts))
    end
  end
  local whole = json.encode(entry, schema_of(module))
  for name, value in pairs(whole_texts) do result[name] = value end
  if #texts == 0 then return whole end
  local parts, at = {}, 1
  for _ = 1, #texts do
    -- A pattern would be tried at each byte of a long output.
    local before = whole:find("\0", at, true)
    local number = whole:match("^%d+", before + 1)
    parts[#parts + 1], parts[#parts + 2] = whole:sub(at, before - 1), texts[tonumber(number)]
    at = before + #number + 2
  end
  parts[#parts + 1] = whole:sub(at)
  return parts
end

---@param parts string|(string|native.file.text)[] as entries.encode gives them
---@return string entry with what is shown of long texts in files
function entries.joined(parts)
  if type(parts) == "string" then return parts end
  local list = {}
  for i, part in ipairs(parts) do
    if type(part) == "table" then part = json.encode(part.bytes or part.shown):sub(2, -2) end
    list[i] = part
  end
  return table.concat(list)
end

return entries
