-- SPDX-License-Identifier: Apache-2.0
-- lua5.4 arrows.lua [ROOT]: walks the includes of ROOT/src and the requires of ROOT/lua/sba, and prints every arrow
-- that points upward, every circle and every require inside a function, and every field of a run's state that some file
-- uses and run/state.lua does not list. Exits 1 if there is one.
package.path = arg[0]:gsub("[^/]*$", "?.lua")
local files_below = require "files_below"

local root = arg[1] or arg[0]:match("^(.*)/tests/style/") or "."

-- What a layer may use besides itself; "!" means: not even itself. A file's layer is the first pattern that fits its
-- name.
local c_layers = {
  { "^main%.c$", "main", "host", "base", "process" },
  { "^memory%.", "memory" },
  { "^host%.", "host", "memory", "bind", "bundle", "base", "text", "confine", "process", "lua" },
  { "^bundle%.", "bundle", "lua" },
  { "^bind/bind[_%.]", "bind", "bundle", "base", "text", "lua" },
  { "^bind/", "binding", "!", "bind", "base", "text", "files", "workspace", "search", "confine", "process", "edit",
    "http", "lua" },
  { "^core/base/", "base" },
  { "^core/text/", "text", "base" },
  { "^core/files/", "files", "text", "base" },
  { "^core/workspace/", "workspace", "files", "text", "base" },
  { "^core/search/", "search", "workspace", "files", "text", "base" },
  { "^core/confine/", "confine", "text", "base" },
  { "^core/process/", "process", "confine", "text", "base" },
  { "^core/edit/", "edit", "text", "base" },
  { "^core/http/", "http", "text", "base" },
  { "^lua%.h$", "lua" }, { "^lauxlib%.h$", "lua" }, { "^lualib%.h$", "lua" },
}
local lua_layers = {
  { "^sba%.main$", "main", "cli", "catalogue", "job", "run", "agent", "outside", "result", "repl", "report", "about",
    "task", "util", "native" },
  { "^sba%.crash_exit$", "main", "journal", "run", "result", "task", "util", "native" },
  { "^sba%.cli$", "cli", "util", "native" },
  { "^sba%.repl%f[%.\0]", "repl", "catalogue", "job", "run", "agent", "result", "util", "native" },
  { "^sba%.report%f[%.\0]", "report", "catalogue", "journal", "run", "result", "util", "native", "lpeg" },
  { "^sba%.about$", "about", "cli", "catalogue", "job", "patch", "result", "util", "native" },
  { "^sba%.task$", "task", "report", "model", "util", "native" },
  { "^sba%.catalogue$", "catalogue", "steps", "util", "native" },
  { "^sba%.job%f[%.\0]", "job", "util", "native" },
  { "^sba%.outside%.", "outside", "util", "native" },
  { "^sba%.run%f[%.\0]", "run", "agent", "outside", "journal", "steps", "patch", "gateway", "result", "util",
    "native", "lpeg" },
  { "^sba%.agent%f[%.\0]", "agent", "steps", "model", "gateway", "result", "util", "native", "lpeg" },
  { "^sba%.journal%.", "journal", "util", "native" },
  { "^sba%.result%f[%.\0]", "result", "journal", "util", "native" },
  { "^sba%.model%f[%.\0]", "model", "util", "native", "lpeg" },
  { "^sba%.gateway%f[%.\0]", "gateway", "util", "native" },
  { "^sba%.steps%.", "steps", "patch", "acp", "util", "native" },
  { "^sba%.acp%.", "acp", "util", "native" },
  { "^sba%.patch%.", "patch", "util", "native", "lpeg" },
  { "^sba%.util%.", "util", "native", "library", "lpeg" },
  { "^native%.", "native" },
  { "^cjson$", "library" }, { "^lpeg$", "lpeg" },
}

local failures = 0
local function fail(...)
  failures = failures + 1
  print(string.format(...))
end

local function lines_of(path)
  local lines = {}
  for line in io.lines(path) do lines[#lines + 1] = line end
  return lines
end

local function layer_of(layers, name)
  for _, layer in ipairs(layers) do
    if name:find(layer[1]) then return layer end
  end
end

local function allows(layer, other)
  local itself = layer[3] ~= "!"
  for i = 3, #layer do
    if layer[i] == other then return true end
  end
  return itself and layer[2] == other
end

---Judges the uses of a graph: name -> list of { target, place }. Names of no layer are judged by the caller.
local function judge(layers, graph)
  for name, uses in pairs(graph) do
    local layer = layer_of(layers, name)
    if not layer then
      fail("%s: belongs to no layer that tests/style/arrows.lua knows", name)
    else
      for _, use in ipairs(uses) do
        local target = layer_of(layers, use.target)
        if target and not allows(layer, target[2]) and use.target ~= use.own then
          fail("%s: %s (%s) uses %s (%s)", use.place, name, layer[2], use.target, target[2])
        end
      end
    end
  end
end

---Prints a circle of the graph once, as a way from a name back to it.
local function find_circles(graph)
  local state = {}
  local function visit(name, way)
    state[name] = "open"
    way[#way + 1] = name
    for _, use in ipairs(graph[name] or {}) do
      if state[use.target] == "open" and not use.is_lazy then
        fail("%s: a circle: %s -> %s", use.place, table.concat(way, " -> "), use.target)
      elseif not state[use.target] and graph[use.target] and not use.is_lazy then
        visit(use.target, way)
      end
    end
    way[#way] = nil
    state[name] = "done"
  end
  for name in pairs(graph) do
    if not state[name] then visit(name, {}) end
  end
end

---Includes of src/. A file's own header counts as the file itself.
local function c_graph()
  local graph = {}
  for _, file in ipairs(files_below(root .. "/src", "*.[ch]")) do
    graph[file] = {}
    for number, line in ipairs(lines_of(root .. "/src/" .. file)) do
      local target = line:match('^%s*#%s*include%s*["<]([^">]+)[">]')
      if target and layer_of(c_layers, target) then
        local own = file:gsub("%.c$", ".h")
        table.insert(graph[file], { target = target, own = own, place = ("src/%s:%d"):format(file, number) })
      end
    end
  end
  return graph
end

---What a line requires after the word: a name in quotes, or what begins one: "sba.steps." .. name, PREFIX .. name.
local function required(line, after, constants)
  local constant = line:match("^%s*%(%s*([%u_]+)%s*%.%.", after)
  return constants[constant] or line:match("^[%s(,]*[\"']([^\"']+)[\"']", after)
end

---Requires of lua/sba/. A lazy one is an arrow, but makes no circle: by then all are loaded.
local function lua_graph()
  local graph = {}
  for _, file in ipairs(files_below(root .. "/lua/sba", "*.lua")) do
    local name = "sba." .. file:gsub("%.lua$", ""):gsub("/init$", ""):gsub("/", ".")
    local constants = {}
    graph[name] = {}
    for number, line in ipairs(lines_of(root .. "/lua/sba/" .. file)) do
      local constant, value = line:match("^local ([%u_]+) = \"([^\"]*)\"$")
      if constant then constants[constant] = value end
      local place = ("lua/sba/%s:%d"):format(file, number)
      if line:find("^%s*%-%-") then line = "" end
      local lazy = line:match "^local [%w_]+ = lazy \"([^\"]+)\"$"
      if lazy then table.insert(graph[name], { target = lazy, place = place, is_lazy = true }) end
      -- A call: neither the word in a text ("require", =require) nor a field of that name.
      for after in line:gmatch("%f[%w_=\"]require%f[^%w_]()%s*[\"'(,%a]") do
        local target = required(line, after, constants)
        if not target then
          -- They load whatever module is named to them.
          local by_name = name:find("^sba%.repl%.") or name == "sba.util.lazy"
          if not by_name then fail("%s: this require cannot be read: %s", place, line) end
        elseif not layer_of(lua_layers, target) then
          fail("%s: %s requires %s, which belongs to no layer", place, name, target)
        else
          table.insert(graph[name], { target = target, place = place })
          if line:find("^%s") and not target:find("%.$") then
            fail("%s: requires %s inside a function; put it at the top, or make it lazy (util/lazy.lua)", place, target)
          end
        end
      end
    end
  end
  return graph
end

---The fields of the state of a run, which main, run/ and agent/ share.
local function check_fields()
  local listed = {}
  for _, line in ipairs(lines_of(root .. "/lua/sba/run/state.lua")) do
    listed[line:match "^%-%-%-@field ([%l_%d]+)" or ""] = true
  end
  for _, file in ipairs(files_below(root .. "/lua/sba", "*.lua")) do
    local shares_it = file == "main.lua" or file:find "^run/" or file:find "^agent/"
    for number, line in ipairs(shares_it and lines_of(root .. "/lua/sba/" .. file) or {}) do
      local code = line:gsub("%-%-.*", ""):gsub("self%.run%.", " run."):gsub("state%.run%.", " run.")
      for name in code:gmatch "%f[%w_.]run%.([%l_%d]+)%f[^%w_]" do
        if not listed[name] then fail("lua/sba/%s:%d: run/state.lua does not list the field %s", file, number, name) end
      end
    end
  end
end

local c, lua = c_graph(), lua_graph()
judge(c_layers, c)
judge(lua_layers, lua)
find_circles(c)
find_circles(lua)
check_fields()
os.exit(failures == 0)
