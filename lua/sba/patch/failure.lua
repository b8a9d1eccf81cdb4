-- SPDX-License-Identifier: Apache-2.0
-- Failures of the world are raised inside this room, and returned where it ends.

local failure = {}

---@param code string
---@param message string a format
function failure.raise(code, message, ...) error({ code = code, message = message:format(...) }, 0) end

---Returns a value, or raises the failure in its place.
---@generic T
---@param value T|nil
---@param problem? native.failure
---@return T
function failure.check(value, problem)
  if value == nil then error(problem, 0) end
  return value
end

---Returns what the function returns, or nil and the failure that it raised. Other errors go on.
---@param run function
function failure.caught(run, ...)
  local results = table.pack(pcall(run, ...))
  if results[1] then return table.unpack(results, 2, results.n) end
  if type(results[2]) ~= "table" then error(results[2], 0) end
  return nil, results[2]
end

return failure
