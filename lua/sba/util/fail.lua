-- SPDX-License-Identifier: Apache-2.0
-- Failures of the world, raised inside a room whose door catches them.

local fail = {}

---@param code string
---@param message string a format
function fail.raise(code, message, ...) error({ code = code, message = message:format(...) }, 0) end

---What a step returns that fails with a result all the same.
---@param code string
---@param message string
---@param result table
---@param text string the result as plain text
---@param is_cut? boolean something is missing from the text
---@return nil, sba.step_failure
function fail.with(code, message, result, text, is_cut)
  return nil, { code = code, message = message, result = result, text = text, is_cut = is_cut }
end

---@generic T
---@param value T|nil
---@param failure? native.failure raised where there is no value
---@return T
function fail.check(value, failure)
  if value == nil then error(failure, 0) end
  return value
end

---What the function returns, or nil and the failure that it raised. Other errors go on.
---@param run function
function fail.caught(run, ...)
  local results = table.pack(pcall(run, ...))
  if results[1] then return table.unpack(results, 2, results.n) end
  if type(results[2]) ~= "table" then error(results[2], 0) end
  return nil, results[2]
end

return fail
