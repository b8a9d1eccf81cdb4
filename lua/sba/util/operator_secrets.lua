-- SPDX-License-Identifier: Apache-2.0
-- The secrets of the operator (SBA_SECRETS, SBA_SECRETS_DIR): passed on to the commands that list
-- them, never stored.

local file = require "native.file"
local humanize = require "sba.util.humanize"
local json = require "sba.util.json"
local listing = require "sba.util.files".entries
local native = require "native.secret"
local text = require "native.text"
local workspace = require "native.workspace"

local operator = {}

-- Bytes besides blanks at the ends; a shorter value stands in ordinary text too.
local SHORTEST <const> = 8
local LARGEST <const> = 32 * 1024 -- bytes of one
-- As many secrets there may be, and entries of the directory.
local MOST <const> = 100
-- Bytes of all: a text that is cut is compared with every rest of every secret.
local MOST_BYTES <const> = 128 * 1024
local MOST_MISTAKES <const> = 5 -- that are named
-- A name of an environment variable, as POSIX has it.
local NAME <const> = "^[%a_][%w_]*$"

local values, names = {}, {} -- by name; names in byte order
-- Names of SBA_SECRETS whose variable is not set, or empty.
local unset = {}
-- Sentences; what commands must not open.
local mistakes, hidden = {}, {}

local function refuse(format, ...)
  if #mistakes < MOST_MISTAKES then mistakes[#mistakes + 1] = format:format(...) end
end

local function why_unfit(value)
  if #value > LARGEST then return ("it has more than %d bytes"):format(LARGEST) end
  if value:find("\0", 1, true) or not text.is_utf8(value) then
    return "it is not UTF-8 text without NUL, so that it could not be passed on and redacted; give it in base64"
  end
  if #text.trim(value) < SHORTEST then
    return ("it has fewer than %d bytes besides blanks, and so short a value cannot be redacted"):format(SHORTEST)
  end
end

-- A tool that shows one line of it, such as a search or a diff, gives that line away.
local function learn(value)
  native.add(value)
  for line in value:gmatch "[^\r\n]+" do
    line = text.trim(line)
    if #line >= SHORTEST then native.add(line) end
  end
end

local function add(name, value, what)
  local why = why_unfit(value)
  if why then return refuse("%s cannot be a secret: %s", what, why) end
  learn(value)
  if not values[name] then names[#names + 1] = name end
  values[name] = value
end

local function take_variables(environment, reserved)
  for name in (environment.SBA_SECRETS or ""):gmatch "[^,]+" do
    name = text.trim(name)
    local value = environment[name] or ""
    if not name:find(NAME) then
      if name ~= "" then refuse("SBA_SECRETS requires names of variables; %s is none", humanize.quoted(name)) end
    elseif reserved(name) then
      refuse("SBA_SECRETS names %s, which the runner itself reads", name)
    elseif value == "" then
      unset[#unset + 1] = name
    else
      add(name, value, "the variable " .. name .. " (SBA_SECRETS)")
    end
  end
end

-- Kubernetes' entries for its own use begin with a dot; what they hold is linked from beside them.
local function take_file(directory, entry, reserved)
  local name, path = entry.name, directory .. "/" .. entry.name
  if name:sub(1, 1) == "." then return end
  if entry.type == "symlink" then hidden[#hidden + 1] = { path = path, what = "the secret" } end
  local problem
  if not name:find(NAME) then
    problem = "is not named like an environment variable (letters, digits and _)"
  elseif reserved(name) then
    problem = "is a variable that the runner itself reads"
  end
  if problem then return refuse("%s in SBA_SECRETS_DIR %s", path, problem) end
  local value, failure = file.read(path, LARGEST, { regular = true })
  problem = "cannot read the secret %s in SBA_SECRETS_DIR: %s"
  if not value then return refuse(problem, name, failure.message) end
  add(name, (value:gsub("\r?\n$", "")), "the file " .. path)
end

local function take_directory(path, reserved)
  if path == "" then return end
  hidden[1] = { path = path, what = "the directory of secrets" }
  local directory <close>, failure = workspace.open(path)
  local what = "the directory of SBA_SECRETS_DIR"
  if not directory then return refuse("cannot open %s: %s", what, failure.message) end
  local entries, more = listing(directory, ".", MOST)
  if not entries then return refuse("cannot list %s: %s", what, more.message) end
  if more == true then return refuse("%s, %s, has more than %d entries", what, path, MOST) end
  for _, entry in ipairs(entries) do take_file(path, entry, reserved) end
end

---Takes them; where a variable and a file have one name, the file wins. The caller removes the
---variables.
---@param environment table<string, string>
---@param reserved fun(name: string): boolean the runner's own variables
---@return string[] names of its variables
---@return string[] warnings
function operator.take(environment, reserved)
  take_variables(environment, reserved)
  take_directory(environment.SBA_SECRETS_DIR or "", reserved)
  local total = 0
  for _, value in pairs(values) do total = total + #value end
  if #names > MOST or total > MOST_BYTES then
    refuse("SBA_SECRETS and SBA_SECRETS_DIR give %d secrets of %d bytes; there may be %d of %d",
      #names, total, MOST, MOST_BYTES)
  end
  table.sort(names)
  local warnings = {}
  for i, name in ipairs(unset) do
    warnings[i] = "SBA_SECRETS names " .. name .. ", which is not set"
  end
  return table.move(names, 1, #names, 1, {}), warnings
end

---@return failure? why no job runs: a secret that cannot be read, or cannot be redacted
function operator.failure()
  if not mistakes[1] then return nil end
  return { code = "environment_invalid", message = native.redact(table.concat(mistakes, "; ")) }
end

---@param name string
---@return string?
function operator.value(name) return values[name] end

---@param name string
---@return string? why there is no such secret
function operator.unknown(name)
  if values[name] then return nil end
  if json.contains(unset, name) then
    return "the secret " .. name .. " is not set: SBA_SECRETS names the variable, which is empty or absent"
  end
  local near = humanize.near(name, names)
  local advice = near and " (did you mean " .. near .. "?)" or ""
  return "no secret has the name " .. humanize.quoted(name) .. advice
    .. "; the operator gives them in SBA_SECRETS or SBA_SECRETS_DIR"
end

---@return { path: string, what: string }[] what commands must not open; a directory comes before what lies in it
function operator.files() return hidden end

return operator
