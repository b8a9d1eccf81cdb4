-- SPDX-License-Identifier: Apache-2.0
-- lua5.4 headers.lua [ROOT [--write]]: the table of src/README.md has the first sentence of each header of core/; what
-- one declares begins with a word of its file's name, and no two define the same structure. Prints what does not hold.
-- --write writes the table.
package.path = arg[0]:gsub("[^/]*$", "?.lua")
local files_below = require "files_below"

local root = arg[1] or arg[0]:match("^(.*)/tests/style/") or "."
local README <const> = root .. "/src/README.md"
-- First words that are known without their file.
local KNOWN <const> = { array = true, size = true, steal = true, pids = true, scan = true, span = true }

local failures = 0
local function fail(...)
  failures = failures + 1
  print(string.format(...))
end

local function read(path)
  local file <close> = assert(io.open(path))
  return file:read("a")
end

--- The first sentence of the comment at the top.
local function purpose(text)
  local words = text:match("^[^\n]*\n(.-)\n#"):gsub("\n?// ?", " "):match("^%s*(.-%.)%f[%s\0]")
  return words or "?"
end

--- Whether a name begins with a word of the file's name, "child" and "children" alike.
local function fits(name, stem)
  local first = name:match "^%a+"
  for word in stem:gmatch "%a+" do
    if first:sub(1, 4) == word:sub(1, 4) then return true end
  end
  return KNOWN[first] or false
end

local lines, structures = {}, {}
for _, path in ipairs(files_below(root .. "/src/core")) do
  local stem = path:match "([%w_]+)%.h$"
  if stem then
    local text = read(root .. "/src/core/" .. path)
    if not stem:find "_internal$" then lines[#lines + 1] = ("| `%s` | %s |\n"):format(path, purpose(text)) end
    for kind, name in text:gmatch "\n(%a+) ([%w_]+) {" do
      if structures[name] then fail("%s and %s both define %s %s", structures[name], path, kind, name) end
      structures[name] = path
      if not fits(name, stem) then fail("%s: the name of %s %s does not begin as its file's", path, kind, name) end
    end
    for line in text:gmatch "\n(%a[^\n]-)%(" do
      local name = line:match "[ %*]([%w_]+)$"
      if name and not line:find "^typedef" and not line:find "^#" and not fits(name, stem) then
        fail("%s: the name %s does not begin as its file's", path, name)
      end
    end
  end
end
table.sort(lines)

local text, table_of = read(README), table.concat(lines):sub(1, -2)
local head, there, tail = text:match "^(.-\n|[-|]+|\n)(.-)(\n[^|].*)$"
if arg[2] == "--write" then
  assert(io.open(README, "w")):write(head, table_of, tail):close()
elseif there ~= table_of then
  fail("the table of src/README.md is not what the headers say; tests/style/headers.lua . --write writes it")
end
os.exit(failures == 0)
