-- SPDX-License-Identifier: Apache-2.0
-- lua5.4 budgets.lua [ROOT]: counts the lines and kilobytes of each room, comments and blanks included, and prints every room that is
-- over its budget. Exits 1 if there is one. A budget is lowered when a room has become smaller; raising one wants a reason.
package.path = arg[0]:gsub("[^/]*$", "?.lua")
local files_below = require "files_below"

local root = arg[1] or arg[0]:match("^(.*)/tests/style/") or "."

-- Room, lines, kilobytes (of 1,000 bytes), patterns of the paths that belong to it.
local budgets = {
  { "src", 13520, 502, "src/" },
  { "src/bind", 2700, 91, "src/bind/" },
  {
    "processes, confinement, ending", 2490, 90,
    "src/core/process/", "src/core/base/terminal_mode", "src/core/base/ending", "src/core/base/threads",
  },
  { "edits", 950, 38, "src/core/edit/" },
  { "files, trees, snapshots, changes", 3300, 130, "src/core/files/" },
  { "search, globs, secrets, text", 1720, 67, "src/core/search/", "src/core/text/" },
  { "lua", 16692, 754, "lua/" },
  { "lua/sba/agent", 1970, 92, "lua/sba/agent/" },
  { "lua/sba/run", 3024, 134, "lua/sba/run/" },
  { "lua/sba/model", 1670, 75, "lua/sba/model/" },
  { "lua/sba/gateway", 1320, 58, "lua/sba/gateway/" },
  { "lua/sba/report, repl", 1360, 61, "lua/sba/report/", "lua/sba/repl/" },
  { "lua/sba/patch, steps", 2620, 123, "lua/sba/patch/", "lua/sba/steps/" },
  { "tests", 24831, 1224, "tests/" },
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
