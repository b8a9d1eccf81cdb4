-- SPDX-License-Identifier: Apache-2.0
-- Folders that specs make for one test.
local temporary_folder = {}

---@return string path absolute, of an empty folder
function temporary_folder.make()
  local pipe <close> = assert(io.popen "mktemp -d")
  return assert(pipe:read "l")
end

---Removes the folder and what is in it, whatever the modes.
---@param path string as make gave it
function temporary_folder.remove(path)
  assert(os.execute(("chmod -R u+rwx '%s' && rm -rf '%s'"):format(path, path)))
end

return temporary_folder
