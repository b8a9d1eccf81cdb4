-- SPDX-License-Identifier: Apache-2.0
-- arrows.lua, patterns.lua and size.lua against made-up sources: silent on good ones, and finding the one mistake that
-- is put in.

-- arrows.lua

local tree = {
  ["src/main.c"] = '#include "core/base/a.h"\n#include "host.h"\n#include <stdio.h>\n',
  ["src/host.h"] = "",
  ["src/host.c"] = '#include "host.h"\n#include "bind/bind.h"\n#include "bundle.h"\n#include <lua.h>\n',
  ["src/bundle.h"] = "#include <lua.h>\n",
  ["src/bind/bind.h"] = '#include "core/base/a.h"\n#include <lua.h>\n',
  ["src/bind/a.c"] = '#include "core/base/a.h"\n#include "bind/bind.h"\n',
  ["src/bind/b.c"] = '#include "core/base/b.h"\n#include "bind/bind.h"\n',
  ["src/core/base/a.h"] = "",
  ["src/core/base/b.h"] = '#include "core/base/a.h"\n',
  ["lua/sba/main.lua"] = 'local cli = require "sba.cli"\nlocal job = require("sba.job")\nreturn { cli, job }\n',
  ["lua/sba/cli.lua"] = 'local text = require "sba.util.text"\nreturn text\n',
  ["lua/sba/catalogue.lua"] = 'local AT = "sba.steps."\nreturn function(name) return require(AT .. name) end\n',
  ["lua/sba/result/names.lua"] = 'return function(name) return require("sba.util." .. name) end\n',
  ["lua/sba/job/init.lua"] = 'local shape = require "sba.job.shape"\nreturn shape\n',
  ["lua/sba/job/shape.lua"] = "-- require is a word here\nreturn 1\n",
  ["lua/sba/run/direct.lua"] = 'local native = require "native.process"\nreturn native\n',
  ["lua/sba/run/state.lua"] = "---@field job table\nreturn function(run) return run.job end -- run.jobs\n",
  ["lua/sba/result/init.lua"] = "return 1\n",
  ["lua/sba/steps/echo.lua"] = 'local text = require "sba.util.text"\nreturn text\n',
  ["lua/sba/util/text.lua"] = 'local lpeg = require "lpeg"\nreturn lpeg\n',
}

-- a file of the tree, what it holds instead, what must be found
local upward = {
  { "src/core/base/a.h", "#include <lua.h>\n", "core/base/a.h %(base%) uses lua.h" },
  { "src/core/base/a.h", '#include "core/base/b.h"\n', "a circle: .*core/base/a.h" },
  { "src/bind/a.c", '#include "bind/b.h"\n', "bind/a.c %(binding%) uses bind/b.h" },
  { "src/other/x.c", "", "other/x.c: belongs to no layer" },
  { "lua/sba/steps/echo.lua", 'return require "sba.run.direct"\n', "sba.steps.echo %(steps%) uses sba.run.direct" },
  { "lua/sba/job/shape.lua", 'local job = require "sba.job"\nreturn job\n', "a circle: .*sba.job" },
  { "lua/sba/run/direct.lua", 'local name = ...\nreturn require(name)\n', "cannot be read" },
  { "lua/sba/result/init.lua", 'local AT = "sba.run."\nreturn require(AT .. "x")\n', "uses sba.run. %(run%)" },
  { "lua/sba/cli.lua", 'return require "socket"\n', "requires socket, which belongs to no layer" },
  { "lua/sba/cli.lua", 'return function()\n  return require "sba.util.text"\nend\n',
    "cli.lua:2: requires sba.util.text inside" },
  { "lua/sba/odd.lua", "return 1\n", "sba.odd: belongs to no layer" },
  { "lua/sba/run/direct.lua", "return function(run) return run.jobs end\n", "direct.lua:1: .* the field jobs" },
}

-- patterns.lua

local linear = {
  's:find("abc")', 's:gsub("%s+", " ")', 's:match("^(.*)@")', 's:match("^[^:]*:? ?(.*)$")', 's:find(word, 1, true)',
  's:gmatch("[^\\n]+")', 'local WORD <const> = "%a+"; s:find(WORD)', '-- s:find("%s*$")',
  's:find(p) -- bounded: 4 bytes',
}
local backtracking = {
  's:find("%s*$")', 's:match("^%s*(.-)%s*$")', 's:gmatch("(.-)\\n")', 's:find(pattern)', 's:find("a" .. b)',
  's:match("%b{}")', 's:match("(.)%1")', 's:find("%s*$") -- bounded:', 'local W = "%s*$"\ns:find(W)',
}

local function write(path, content)
  assert(os.execute(("mkdir -p '%s'"):format(path:match("^(.*)/"))))
  local handle = assert(io.open(path, "w"))
  handle:write(content)
  handle:close()
end

---Runs a check on a made-up checkout, one file of which holds something else.
---@return boolean found_nothing, string output
local function run(check, files, file, content)
  local root = os.tmpname()
  os.remove(root)
  for path, text in pairs(files) do write(root .. "/" .. path, text) end
  if file then write(root .. "/" .. file, content) end
  local pipe = assert(io.popen(("lua5.4 '%s' '%s' 2>&1"):format(arg[0]:gsub("[^/]*$", check), root)))
  local output = pipe:read("a")
  local found_nothing = pipe:close() == true
  os.execute(("rm -r '%s'"):format(root))
  return found_nothing, output
end

local function assert_silent(check, files, file, content)
  local ok, output = run(check, files, file, content)
  assert(ok and output == "", ("%s: %s was refused: %s"):format(check, content or "a good tree", output))
end

local function assert_found(wanted, check, files, file, content)
  local ok, output = run(check, files, file, content)
  assert(not ok and output:find(wanted), ("%s: %s: expected %q, got %q"):format(check, content, wanted, output))
end

assert_silent("arrows.lua", tree)
for _, case in ipairs(upward) do assert_found(case[3], "arrows.lua", tree, case[1], case[2]) end
for _, source in ipairs(linear) do assert_silent("patterns.lua", {}, "lua/sba/x.lua", source .. "\n") end
for _, source in ipairs(backtracking) do
  assert_found("lua/sba/x.lua:%d: the pattern", "patterns.lua", {}, "lua/sba/x.lua", source .. "\n")
end
-- size.lua: what a file has too much of.

tree["tests/a.py"] = "pass\n"
assert_silent("size.lua", tree)
local too_large = {
  { "src has 20%d%d%d lines of code", "src/core/base/a.h", ("int a;\n"):rep(20000) },
  { "a file of 401 lines of code", "src/core/base/a.h", ("int a;\n"):rep(401)},
  { "a function of 63 lines of code", "src/core/base/a.c", "void a(void)\n{\n" .. ("    a();\n"):rep(61) .. "}\n" },
  { "a function of 62 lines of code", "lua/sba/cli.lua", "local function a()\n" .. ("  a()\n"):rep(60) .. "end\n" },
  { "a function of 62 lines of code", "tests/a.py", "def a():\n" .. ("    a()\n"):rep(61) .. "a()\n" },
  { "a line of 121 characters", "lua/sba/cli.lua", ("-"):rep(121) .. "\n" },
  { "3 `and` and `or` choose one value", "lua/sba/cli.lua", "a = b and c or d and e\n" },
  { "assigns to 4 names", "lua/sba/cli.lua", "local a, b, c, d = f()\n" },
}
for _, case in ipairs(too_large) do assert_found(case[1], "size.lua", tree, case[2], case[3]) end
assert_silent("size.lua", tree, "src/core/base/a.h", ("// words are free\n\n"):rep(20000))

print(("%d mistakes were put in and found"):format(#upward + #backtracking + #too_large))
