-- SPDX-License-Identifier: Apache-2.0
-- patterns.lua against one-line sources: silent on those that are linear, and finding each that is not.
local lfs = require "lfs"

local patterns = arg[0]:gsub("[^/]*$", "patterns.lua")

local good = {
  's:find("abc")', 's:gsub("%s+", " ")', 's:match("^(.*)@")', 's:match("^%s*#?(%d+)[.):]?%s*$")', 's:match("^[^:]*:? ?(.*)$")',
  's:find(word, 1, true)', 's:gmatch(utf8.charpattern)', 's:gmatch("[^\\n]+")', 's:gsub("[?#].*$", "")',
  's:match("^(%a[%w+.-]*)://([^/?#]*)(.*)$")',
  'string.gsub(s, "%d", "")', 's:match "^x"', 's:gmatch("step[%s_-]*(%d+)")', 'local WORD <const> = "%a+"; s:find(WORD)',
  's:match("^(.-)[.]x")', '-- s:find("%s*$")', '"s:find(x)"', 's:find(p) -- bounded: 4 bytes', 's:match("^%b{}")', 'f(s:find("%%"))',
}
local bad = {
  's:find("%s*$")', 's:gsub("/+$", "")', 's:match("^%s*(.-)%s*$")', 's:gmatch("([^\\n]*)\\n")', 's:gmatch("(.-)\\n")',
  's:match "%d+%.?%d*s"',
  's:find(pattern)', 's:find(patterns[1])', 's:find("a" .. b)', 's:match("%b{}")', 's:match("^(.-):?(%d*)$")', 's:find(":[^/]*$")',
  'string.find(s, "x*y")', 's:match("(.)%1")', 's:match("^.*a.*b")', 's:find("%s*$") -- bounded:', 'local W = "%s*$"\ns:find(W)',
  "s:find '%s*$'",
  'string.match("a", pattern)',
}

---@return boolean found_nothing, string output
local function run_patterns(source)
  local root = os.tmpname()
  os.remove(root)
  for _, directory in ipairs { "", "/lua", "/lua/sba" } do assert(lfs.mkdir(root .. directory)) end
  local handle = assert(io.open(root .. "/lua/sba/x.lua", "w"))
  handle:write(source, "\n")
  handle:close()
  local pipe = assert(io.popen(("lua5.4 '%s' '%s' 2>&1"):format(patterns, root)))
  local output = pipe:read("a")
  local found_nothing = pipe:close() == true
  os.execute(("rm -r '%s'"):format(root))
  return found_nothing, output
end

for _, source in ipairs(good) do
  local ok, output = run_patterns(source)
  assert(ok and output == "", ("%s was refused: %s"):format(source, output))
end
for _, source in ipairs(bad) do
  local ok, output = run_patterns(source)
  assert(not ok and output:find("lua/sba/x.lua:%d: the pattern"), ("%s was taken: %s"):format(source, output))
end
print(("%d patterns were taken, %d refused"):format(#good, #bad))
