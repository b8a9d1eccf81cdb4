-- SPDX-License-Identifier: Apache-2.0
-- Build tool: lua5.4 bundle.lua OUT LIST, a file with a line each: VERSION... -- ROOT... -- FILE... -- DEFINITIONS
-- Writes a C file with the bytecode of every module and the versions of the libraries that are linked in. A style sheet, NAME.css, becomes
-- a module that is its text. One module more, sba.repl.documentation, has the words of these files for help() at the prompt of --lua, and
-- those of the native modules.

local function fail(...)
  io.stderr:write("bundle: ", string.format(...), "\n")
  os.exit(1)
end

local groups, out = { {} }, arg[1]
for line in io.lines(arg[2]) do
  if line == "--" then
    groups[#groups + 1] = {}
  else
    table.insert(groups[#groups], line)
  end
end
local versions, roots, files, definitions = table.unpack(groups)

--- The module name and chunk name of a file: "sba.steps.read_file", "@lua/sba/steps/read_file.lua". A style sheet has the chunk name of a
--- file that is not there, so that the dev build looks in vain for its Lua on the disk.
local function name_of(file)
  for _, root in ipairs(roots) do
    if file:sub(1, #root + 1) == root .. "/" then
      local path = file:sub(#root + 2):gsub("%.css$", ".lua")
      local name = path:gsub("%.lua$", ""):gsub("/init$", ""):gsub("/", ".")
      return name, "@lua/" .. path
    end
  end
  fail("%s lies in none of the directories %s", file, table.concat(roots, ", "))
end

local function read(file)
  local handle = assert(io.open(file, "rb"))
  local source = handle:read("a")
  handle:close()
  return source
end

local function compile(source, file, chunk_name)
  local chunk, message = load(source, chunk_name, "t")
  if not chunk then fail("%s: %s", file, message) end
  return string.dump(chunk)
end

--- A global that Lua does not have is a misspelt name. luac lists each access of one.
local function check_globals(file)
  local listing <close> = assert(io.popen("luac5.4 -l -p '" .. file:gsub("'", "'\\''") .. "'"))
  for line in listing:lines() do
    local number, name = line:match("%[(%d+)%].*_ENV \"([%a_][%w_]*)\"")
    if name and _G[name] == nil then fail("%s:%s: the global '%s' is not defined; is a name misspelt?", file, number, name) end
  end
end

--- The Lua of a file; of a style sheet, Lua that returns its text without the comments.
local function source_of(file)
  local text = read(file)
  if file:find("%.lua$") then
    check_globals(file)
    return text
  end
  return ("return %q"):format(text:gsub("/%*.-%*/\n?", ""))
end

local modules, seen = {}, {}
for _, file in ipairs(files) do
  local name, chunk_name = name_of(file)
  if seen[name] then fail("module %s is in both %s and %s: rename one", name, seen[name], file) end
  seen[name] = file
  modules[#modules + 1] = { name = name, path = chunk_name:sub(6), file = file, code = compile(source_of(file), file, chunk_name) }
end

--- The first comment of a module, and its functions that others call, each with the comment above it.
local function words_of(source)
  local words = { source:match("^%-%- SPDX[^\n]*\n(%-%-.-)\n[^%-]") }
  for paragraph in (source .. "\n\n"):gmatch("(.-)\n\n+") do
    words[#words + 1] = paragraph:match("^(%-%-%-.-\nfunction [^\n]*)")
  end
  return table.concat(words, "\n\n")
end

local documentation = {}
for _, module in ipairs(modules) do documentation[module.name] = words_of(read(module.file)) end
for paragraph in (read(definitions[1]) .. "\n"):gmatch("(.-)\n\n") do
  local class = paragraph:match("%-%-%-@class (native%.[%w_.]+)")
  if class then documentation[class] = paragraph end
end
local entries = {}
for name, words in pairs(documentation) do entries[#entries + 1] = ("[%q] = %q,"):format(name, words) end
table.sort(entries)
modules[#modules + 1] = {
  name = "sba.repl.documentation", path = "sba/repl/documentation.lua",
  code = compile("return {" .. table.concat(entries, "\n") .. "}", "the documentation", "@documentation"),
}
table.sort(modules, function(a, b) return a.name < b.name end)

-- Bytecode is of one version, word size and byte order of Lua. A build for another machine must have the same.
local function same_lua()
  local little = string.pack("=I2", 1) == "\1\0"
  local major, minor = _VERSION:match "(%d+)%.(%d+)"
  return ([[
#include <lua.h>
_Static_assert(LUA_VERSION_NUM == %d && sizeof(lua_Integer) == %d && sizeof(lua_Number) == %d
    && __BYTE_ORDER__ == %s, "this Lua cannot load the bytecode of the lua5.4 that bundles");
]]):format(major * 100 + minor, string.packsize "j", string.packsize "n",
    little and "__ORDER_LITTLE_ENDIAN__" or "__ORDER_BIG_ENDIAN__")
end

local c = { '#include "bundle.h"\n', same_lua() }
for i, module in ipairs(modules) do
  local bytes = module.code:gsub(".", function(byte) return byte:byte() .. "," end)
  c[#c + 1] = ("static const unsigned char code_%d[] = {%s};\n"):format(i, bytes)
end
c[#c + 1] = "const struct bundled_module bundled_modules[] = {\n"
for i, module in ipairs(modules) do
  c[#c + 1] = ('  {"%s", "%s", code_%d, sizeof code_%d},\n'):format(module.name, module.path, i, i)
end
c[#c + 1] = ("};\nconst size_t bundled_module_count = %d;\n"):format(#modules)
c[#c + 1] = ("const char *const bundled_library_versions = %q;\n"):format(table.concat(versions, ", "))

local handle = assert(io.open(out, "wb"))
handle:write(table.concat(c))
assert(handle:close())
