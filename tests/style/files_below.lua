-- SPDX-License-Identifier: Apache-2.0

---@param directory string
---@param names? string which files, as find -name has it; default: all
---@return string[] paths relative to directory, in byte order; at least one
return function(directory, names)
  local found = {}
  local find = "cd '%s' && find . -type f -name '%s' -not -path '*/.*' | LC_ALL=C sort"
  find = find:format(directory, names or "*")
  for path in assert(io.popen(find)):lines() do found[#found + 1] = path:sub(3) end
  assert(#found > 0, "no such files below " .. directory)
  return found
end
