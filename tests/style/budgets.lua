-- SPDX-License-Identifier: Apache-2.0
-- lua5.4 budgets.lua [ROOT]: counts the lines and kilobytes of each room, comments and blanks included, and prints every room that is
-- over its budget. Exits 1 if there is one. A budget is lowered when a room has become smaller; raising one wants a reason.
package.path = arg[0]:gsub("[^/]*$", "?.lua")
local files_below = require "files_below"

local root = arg[1] or arg[0]:match("^(.*)/tests/style/") or "."

-- Room, lines, kilobytes (of 1,000 bytes), patterns of the paths that belong to it.
local budgets = {
  { "src", 18350, 674, "src/" },
  { "src/bind", 3430, 115, "src/bind/" },
  {
    "processes, confinement, ending", 3150, 111,
    "src/core/process", "src/core/confine", "src/core/oom", "src/core/signal_name", "src/core/threads",
    "src/core/terminal_mode", "src/core/ending",
  },
  { "patching in C", 2740, 109, "src/core/patch" },
  {
    "files, trees, snapshots, changes", 4110, 160,
    "src/core/workspace", "src/core/file", "src/core/snapshot", "src/core/ignore", "src/core/own_files",
    "src/core/directory_names", "src/core/stream",
  },
  { "search, globs, secrets, text", 2280, 86, "src/core/search", "src/core/glob", "src/core/secret", "src/core/text", "src/core/tokens" },
  { "lua", 22010, 953, "lua/" },
  { "lua/sba/run/agent", 2450, 110, "lua/sba/run/agent/" },
  { "lua/sba/run", 3420, 149, "lua/sba/run/[^/]+$" },
  { "lua/sba/inference", 2200, 99, "lua/sba/inference/" },
  { "lua/sba/orchestrator", 2350, 101, "lua/sba/orchestrator/" },
  { "lua/sba/report, repl", 2690, 113, "lua/sba/report/", "lua/sba/repl/" },
  { "lua/sba/patch, steps", 2590, 116, "lua/sba/patch/", "lua/sba/steps/" },
  { "tests", 30130, 1524, "tests/" },
}

local endings = { c = true, h = true, lua = true, py = true }

local sizes = {}
for _, top in ipairs { "src", "lua", "tests" } do
  for _, path in ipairs(files_below(root .. "/" .. top)) do
    if endings[path:match("%.(%a+)$")] then
      local file <close> = assert(io.open(root .. "/" .. top .. "/" .. path))
      local text = file:read("a")
      sizes[top .. "/" .. path] = { lines = select(2, text:gsub("\n", "")), bytes = #text }
    end
  end
end

local function belongs(path, budget)
  for i = 4, #budget do
    if path:find("^" .. budget[i]) then return true end
  end
  return false
end

local failures = 0
for _, budget in ipairs(budgets) do
  local room, most_lines, most_kilobytes = table.unpack(budget)
  local lines, bytes = 0, 0
  for path, size in pairs(sizes) do
    if belongs(path, budget) then lines, bytes = lines + size.lines, bytes + size.bytes end
  end
  if lines > most_lines or bytes > most_kilobytes * 1000 then
    failures = failures + 1
    print(("%s has %d lines and %d kB, its budget is %d lines and %d kB: make it smaller, or say in the commit why not")
      :format(room, lines, (bytes + 500) // 1000, most_lines, most_kilobytes))
  end
end
os.exit(failures == 0)
