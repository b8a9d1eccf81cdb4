-- SPDX-License-Identifier: Apache-2.0
-- What is directly in a directory.

---The entries of a directory, in byte order. Links are not followed.
---@param root native.root
---@param path string
---@param most integer entries that are read, whichever the file system gives first, so that a huge directory costs little
---@return native.entry[]|nil entries
---@return boolean|native.failure more whether there are more
return function(root, path, most)
  local walk <close>, failure = root:walk(path, { max_depth = 1, max_names = most })
  if not walk then return nil, failure end
  local entries, entry, problem = {}, walk:next()
  while entry do
    entry, problem = walk:next()
    entries[#entries + 1] = entry
  end
  if problem then return nil, problem end
  return entries, walk:is_cut()
end
