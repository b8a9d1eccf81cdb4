-- SPDX-License-Identifier: Apache-2.0

---@param list any[]
---@param wanted any
---@return boolean
return function(list, wanted)
  for i = 1, #list do
    if list[i] == wanted then return true end
  end
  return false
end
