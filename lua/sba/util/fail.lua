-- SPDX-License-Identifier: Apache-2.0

---What a function returns for a failure of the world.
---@param code string
---@param message string a format
---@param ... any its arguments
---@return nil, native.failure
return function(code, message, ...)
  return nil, { code = code, message = message:format(...) }
end
