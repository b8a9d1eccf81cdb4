-- SPDX-License-Identifier: Apache-2.0
-- Directories that specs make for one test.
local temporary_directory = {}

---@return string path absolute, of an empty directory
function temporary_directory.make()
  local pipe <close> = assert(io.popen "mktemp -d")
  return assert(pipe:read "l")
end

---Removes the directory and what is in it, whatever the modes.
---@param path string as make gave it
function temporary_directory.remove(path)
  assert(os.execute(("chmod -R u+rwx '%s' && rm -rf '%s'"):format(path, path)))
end

return temporary_directory
