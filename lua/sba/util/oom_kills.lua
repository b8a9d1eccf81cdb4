-- SPDX-License-Identifier: Apache-2.0
-- How many processes the kernel killed because memory ran out.

local file = require "native.file"

local LARGEST <const> = 64 * 1024 -- bytes of /proc/self/cgroup
local MOST_COUNTED <const> = 4096 -- bytes of a file that counts

local counter -- a path, once it was looked for; false: nothing counts

local function kills_in(path) return (file.read(path, MOST_COUNTED) or ""):match "\noom_kill (%d+)" end

--- Lines of /proc/self/cgroup are `NUMBER:CONTROLLERS:PATH`, for cgroup v2 `0::PATH`. A container may see its cgroup as the root where
--- the line has the host's path.
local function find()
  for line in (file.read("/proc/self/cgroup", LARGEST) or ""):gmatch "[^\n]+" do
    local controllers, path = line:match "^%d+:([^:]*):(.*)"
    local form = controllers == "" and "/sys/fs/cgroup%s/memory.events"
      or ("," .. controllers .. ","):find(",memory,", 1, true) and "/sys/fs/cgroup/memory%s/memory.oom_control"
    for _, place in ipairs(form and { path, "" } or {}) do
      if kills_in(form:format(place)) then return form:format(place) end
    end
  end
  return false
end

---@return integer in the runner's cgroup, which in a container is the container's; 0 where nothing counts
return function()
  if counter == nil then counter = find() end
  return counter and tonumber(kills_in(counter)) or 0
end
