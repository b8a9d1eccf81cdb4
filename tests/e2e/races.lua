-- SPDX-License-Identifier: Apache-2.0
-- cynode-sba --lua races.lua WORKSPACE ROUNDS [KIND...]: works on files of a workspace while "dir" is exchanged with
-- something that leads outside. Prints how often each kind of work succeeded and was refused; whatever it saw of the
-- outside, it says so and ends with status 9. Only work of these kinds is done, or all.
local search = require "native.search"
local transaction = require "sba.patch.transaction"
local workspace = require "native.workspace"

-- The rounds, where chance has it that one kind of work never succeeds or is never refused.
local MOST_TIMES <const> = 20
local root, rounds = arg[1], tonumber(arg[2])
local directory = assert(workspace.open(root))
local secret = assert(search.compile("SECRET"))
local done, refused = {}, {}

local function leak(kind, what)
  print("LEAK: " .. kind .. ": " .. what)
  os.exit(9)
end

-- Walks; whatever the outside holds, names and sizes too, is recognised.
local function walk_through(kind, path)
  local walk <close>, failure = directory:walk(path)
  local entry
  while walk do
    entry, failure = walk:next()
    if not entry then break end
    local read = entry.type == "file" and directory:read(walk:path(), { digest = true, max_bytes = 0 })
    local size = read and read.size_bytes or entry.size_bytes
    if entry.name:find("outsider", 1, true) or size == 31337 then leak(kind, walk:path()) end
  end
  return not failure, failure
end

local work = {
  read = function(path)
    local read, failure = directory:read(path, { digest = true })
    if read and (read.content:find("SECRET", 1, true) or read.size_bytes == 31337) then leak("read", path) end
    return read, failure
  end,
  write = function(path, i) return directory:write(path:gsub("file$", "written"), "from inside " .. i) end,
  append = function(path, i)
    return directory:write(path:gsub("file$", "appended"), i % 100 == 0 and "" or "more", { append = i % 100 ~= 0 })
  end,
  create = function(path, i) return directory:write(path:gsub("file$", "made/" .. i % 7 .. "/new"), "x") end,
  tree = function(path) return walk_through("tree", (path:gsub("/[^/]*$", ""))) end,
  whole_tree = function() return walk_through("whole_tree", ".") end,
  stat = function(path)
    local status, failure = directory:stat(path)
    if status and status.size_bytes == 31337 then leak("stat", path) end
    return status, failure
  end,
  search = function(path)
    local found, failure = secret:files(directory, (path:gsub("/[^/]*$", "")))
    if found and found.count > 0 then leak("search", found.shown) end
    return found, failure
  end,
  transaction = function(path, i)
    local change <close> = transaction.new(directory)
    local staged, failure = change:write((path:gsub("file$", "staged")), "from inside " .. i)
    if not staged then return nil, failure end
    staged, failure = change:write((path:gsub("file$", "deep/er/staged")), "from inside " .. i)
    if not staged then return nil, failure end
    return change:commit()
  end,
  removal = function(path)
    local change <close> = transaction.new(directory)
    local staged, failure = change:remove((path:gsub("file$", "victim")))
    if not staged then return nil, failure end
    return change:commit()
  end,
  chmod = function(path)
    local change <close> = transaction.new(directory)
    local staged, failure = change:chmod(path, 384)
    if not staged then return nil, failure end
    return change:commit()
  end,
}

local paths = { "dir/file", "dir/sub/file", "dir/sub/../file", "dir/sub/../../dir/file" }
local passing = { path_escape = true, not_found = true, not_a_directory = true, io_error = true, not_a_file = true,
  already_exists = true, too_many_links = true }

if arg[3] then
  local chosen = {}
  for _, kind in ipairs { table.unpack(arg, 3) } do chosen[kind] = work[kind] end
  work = chosen
end

-- Whether these were seen to succeed and to be refused: else the two have not met yet.
local function met()
  for _, kind in ipairs { "read", "write", "stat", "tree", "transaction" } do
    if work[kind] and not (done[kind] and refused[kind]) then return false end
  end
  return true
end

for i = 1, MOST_TIMES * rounds do
  if i > rounds and met() then break end
  for kind, one in pairs(work) do
    if arg[3] or kind ~= "whole_tree" or i % 10 == 0 then
      local result, failure = one(paths[i % #paths + 1], i)
      local counts = result and done or refused
      counts[kind] = (counts[kind] or 0) + 1
      if not result and not passing[failure.code] then
        leak(kind, "unexpected: " .. failure.code .. ": " .. failure.message)
      end
    end
  end
end

for kind in pairs(work) do print(kind, done[kind] or 0, refused[kind] or 0) end
