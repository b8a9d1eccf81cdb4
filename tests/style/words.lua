-- SPDX-License-Identifier: Apache-2.0
-- cynode-sba --lua words.lua: holds docs/ and the manual page to the program. Every option, environment variable,
-- failure code, exit status and step type that the code knows must be in both. Every field of a job, of a result and of
-- a step's arguments must be in docs/. Every path that a README or a page names must be there, and the jobs and results
-- of the pages must be valid. Prints what is missing; exits 1 if there is something.
package.cpath = "/usr/lib/x86_64-linux-gnu/lua/5.4/?.so;/usr/lib/aarch64-linux-gnu/lua/5.4/?.so"

package.path = arg[0]:gsub("[^/]*$", "?.lua")

local files_below = require "files_below"
local lfs = require "lfs"
local schema_check = require "sba.util.schema_check"
local usage = require "sba.about".usage

local root = arg[0]:match("^(.*)/tests/style/") or "."

local function read(path)
  local file <close> = assert(io.open(root .. "/" .. path))
  return file:read("a")
end

local function sorted(set)
  local list = {}
  for name in pairs(set) do list[#list + 1] = name end
  table.sort(list)
  return list
end

local function filter(list, keep)
  local kept = {}
  for _, one in ipairs(list) do
    if keep(one) then kept[#kept + 1] = one end
  end
  return kept
end

--- Those of the names that a set does not have.
local function without(names, set)
  return filter(names, function(name) return not set[name] end)
end

--- Variables are read as environment.NAME, or named in a string to be looked up.
local function variables()
  local found = {}
  for _, path in ipairs(files_below(root .. "/lua/sba")) do
    local text = read("lua/sba/" .. path):gsub("%-%-[^\n]*", "")
    for name in text:gmatch("environment%.(%u[%u_]+)") do found[name] = true end
    for name in text:gmatch("\"(%u+_[%u_]*%u)\"") do found[name] = true end
  end
  return sorted(found)
end

-- What logs an event: the log itself, and helpers that are given the event's name.
local LOGS <const> = { "log:event%(", "log:line%(", "warn%(", "once%(", "line_of%(self", "view:event%(" }

local function logs(line)
  for _, call in ipairs(LOGS) do
    if line:find(call) then return true end
  end
end

--- The events of the log, "step.started". Those of an output are made of what prints it.
local function events()
  local found = {}
  for _, kind in ipairs { "step", "model" } do found[kind .. ".output"], found[kind .. ".running"] = true, true end
  for _, path in ipairs(files_below(root .. "/lua/sba")) do
    for line in read("lua/sba/" .. path):gmatch("[^\n]+") do
      if logs(line) then
        for name in line:gmatch("\"(%l[%l_]*%.%l[%l_]*)\"") do found[name] = true end
      end
    end
  end
  found["todo.json"], found["journal.jsonl"] = nil, nil
  return found
end

--- The events in the table of a page, each between backquotes in a row's first column.
local function tabled_events(text)
  local found = {}
  for row in text:match("\n## Logs\n.*$"):gmatch("\n| (`[^|]*) |") do
    for name in row:gmatch("`([^`]+)`") do found[name] = true end
  end
  return found
end

local function options()
  local found = {}
  for name in usage:gmatch("%-%-([%l-]+)") do found["--" .. name] = true end
  return sorted(found)
end

local function failure_codes()
  local codes = require "sba.result.result_schema".properties.failure_code.enum
  return filter(codes, function(code) return type(code) == "string" end)
end

local function exit_statuses()
  local exit, found = require "sba.result.failure".exit, { ["130"] = true, ["143"] = true }
  for _, status in pairs(exit) do
    if math.type(status) == "integer" then found[tostring(status)] = true end
  end
  return sorted(found)
end

--- Those of this checkout; another's, bundled with SBA_EXTRA_LUA, say their own words.
local function step_types()
  local list = {}
  for _, path in ipairs(files_below(root .. "/lua/sba/steps")) do list[#list + 1] = path:match("^([%l_]+)%.lua$") end
  return list
end

--- The fields of a schema's objects, at every depth.
local function fields_of(schema, found)
  for name, property in pairs(schema.properties or {}) do
    found[name] = true
    fields_of(property, found)
  end
  if schema.items then fields_of(schema.items, found) end
  return found
end

--- What a job's author writes.
local function fields()
  local found = fields_of(require "sba.job.job_schema" {}, {})
  for _, name in ipairs(step_types()) do fields_of(require("sba.steps." .. name).arguments, found) end
  return sorted(found)
end

local function needed()
  local all = {}
  for _, part in ipairs { variables(), options(), failure_codes(), exit_statuses(), step_types() } do
    assert(#part > 3, "a list of words is too short to be true")
    table.move(part, 1, #part, #all + 1, all)
  end
  return all
end

--- Whether a text has the word, not as a part of another.
local function has(text, word)
  local pattern = word:gsub("%p", "%%%0")
  return (" " .. text .. " "):find("[^%w_-]" .. pattern .. "[^%w_-]") ~= nil
end

local function missing_in(text, words)
  return filter(words, function(word) return not has(text, word) end)
end

--- The manual's dashes are macros.
local function manual_text()
  return (read("man/cynode-sba.1"):gsub("Fl Fl ", "--"):gsub("%.\\\"[^\n]*", ""))
end

local function exists(path)
  return lfs.attributes(root .. "/" .. path) ~= nil
end

local tops <const> = {
  src = true, lua = true, tests = true, examples = true, scripts = true, vendor = true, container = true, cmake = true,
  man = true, docs = true,
}

--- Paths between backquotes that begin in a directory of the checkout, and stand for nothing else.
local function lost_paths(text)
  local list = {}
  for quoted in text:gmatch("`([%w%._/-]+)`") do
    local top = quoted:match("^([%l]+)/")
    if top and tops[top] and not quoted:find("%u%u") and not exists(quoted) then list[#list + 1] = quoted end
  end
  return list
end

--- The packages of scripts/packages/LIST.
local function packages(list, found)
  for line in read("scripts/packages/" .. list):gmatch("[^\n]+") do
    local name = line:match("^([^#%s]+)")
    if name then found[name] = true end
  end
  return found
end

--- What README.md does not say of how many packages a command installs; of many, in tens.
local function count_packages()
  local build, all = #sorted(packages("build", {})), #sorted(packages("test", packages("build", {})))
  local text, in_tens = read("README.md"), (all + 5) // 10 * 10
  local said = { ("# installs %d packages"):format(build), ("`tests/run` installs about %d packages"):format(in_tens) }
  return filter(said, function(words) return not text:find(words, 1, true) end)
end

--- What is wrong with the jobs and results of the pages. The block wrong.json is a mistake on purpose.
local function mistakes_in_json(text)
  local list, jobs, results = {}, 0, 0
  for name, block in text:gmatch("```json *([^\n]*)\n(.-)```") do
    local value, failure = require "sba.util.json".decode(block)
    if type(value) == "table" and value.constraints then
      jobs = jobs + 1
      value, failure = require "sba.job".parse(block, require "sba.catalogue", {})
      if name ~= "wrong.json" then list[#list + 1] = not value and failure.message or nil end
    elseif type(value) == "table" and value.status then
      results = results + 1
      local _, errors = schema_check.check(value, require "sba.result.result_schema", { total = 0, limit = 1 })
      list[#list + 1] = errors[1] and schema_check.line(errors[1])
    else
      list[#list + 1] = failure and failure.message or "JSON that is neither job nor result"
    end
  end
  assert(jobs > 4 and results >= 1, "the jobs and results of the pages were not found")
  return list
end

local failed = false
local function complain(path, what, list)
  if #list == 0 then return end
  failed = true
  print(("%s: %s: %s"):format(path, what, table.concat(list, ", ")))
end

-- README.md and docs/ are one text; of the others only the paths that they name are looked at.
local all_pages, names = read("README.md"), {
  "README.md", "CONTRIBUTING.md", "SECURITY.md", "src/README.md", "lua/README.md", "tests/README.md",
  "vendor/README.md", "examples/README.md",
}
for _, path in ipairs(files_below(root .. "/docs", "*.md")) do
  names[#names + 1] = "docs/" .. path
  all_pages = all_pages .. "\n" .. read("docs/" .. path)
end
complain("README.md and docs/", "have JSON with mistakes", mistakes_in_json(all_pages))
complain("README.md and docs/", "do not say", missing_in(all_pages, needed()))
complain("README.md and docs/", "do not say", missing_in(all_pages, fields()))
complain("README.md", "does not say", count_packages())
local logged, tabled = events(), tabled_events(read("docs/node.md"))
complain("docs/node.md", "lacks events that the program logs", without(sorted(logged), tabled))
complain("docs/node.md", "has events that the program does not log", without(sorted(tabled), logged))
complain("the manual", "does not say", missing_in(manual_text(), needed()))
for _, path in ipairs(names) do complain(path, "names what is not there", lost_paths(read(path))) end
os.exit(not failed)
