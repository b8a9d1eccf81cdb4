-- SPDX-License-Identifier: Apache-2.0
-- A failure of the world, in the form that every function returns it.

---What a function returns for a failure of the world.
---@param code string
---@param message string a format
---@param ... any its arguments
---@return nil, native.failure
return function(code, message, ...)
  return nil, { code = code, message = message:format(...) }
end
