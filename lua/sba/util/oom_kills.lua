-- SPDX-License-Identifier: Apache-2.0
-- How many processes the kernel killed because memory ran out.

local file = require "native.file"

local LARGEST <const> = 64 * 1024 -- bytes

---Counts in the runner's cgroup, which in a container is the container's; 0 where nothing counts. A line of /proc/self/cgroup is
---`NUMBER:CONTROLLERS:PATH`, for cgroup v2 `0::PATH`. A container may see its cgroup as the root, while the line has the host's path.
---@return integer
return function()
  for line in (file.read("/proc/self/cgroup", LARGEST) or ""):gmatch "[^\n]+" do
    local controllers, path = line:match "^%d+:([^:]*):(.*)"
    local counter = controllers == "" and { "/sys/fs/cgroup", "/memory.events" }
      or ("," .. controllers .. ","):find(",memory,", 1, true) and { "/sys/fs/cgroup/memory", "/memory.oom_control" }
    for _, place in ipairs(counter and { path, "" } or {}) do
      local count = (file.read(counter[1] .. place .. counter[2], LARGEST) or ""):match "\noom_kill (%d+)"
      if count then return tonumber(count) end
    end
  end
  return 0
end
