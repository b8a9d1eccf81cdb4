-- SPDX-License-Identifier: Apache-2.0
-- A module that is loaded when it is first used: most jobs need few of them, and to load all takes
-- longer than an empty job.

---@param name string of a module: a function, or a table whose fields do not change
---@return table stands for it
return function(name)
  return setmetatable({}, {
    __index = function(self, field)
      local value = require(name)[field]
      self[field] = value
      return value
    end,
    __call = function(_, ...) return require(name)(...) end,
  })
end
