-- SPDX-License-Identifier: Apache-2.0
-- The mode --validate: every mistake of a job on a line of its own, "FILE:LINE:COLUMN: POINTER: message".

local catalogue = require "sba.catalogue"
local exit = require "sba.util.exit"
local file = require "native.file"
local job = require "sba.job"
local job_context = require "sba.job.context"
local json_place = require "sba.util.json_place"
local printable = require "sba.util.printable"
local redact = require "native.secret".redact
local schema_check = require "sba.util.schema_check"

local LARGEST_JOB <const> = 64 * 1024 * 1024 -- bytes

local function say(name, line, column, message)
  print(("%s:%d:%d: %s"):format(name, line, column, printable.line(message)))
end

local function say_errors(name, bytes, failure)
  local errors, broken = failure.errors, failure.broken
  if broken then return say(name, broken.line, broken.column, broken.what) end
  local places = json_place.of(bytes)
  for _, problem in ipairs(errors) do
    local line, column = places:place(problem.pointer)
    say(name, line, column, schema_check.line(problem))
  end
  if errors.total > #errors then print(("%s: and %d more"):format(name, errors.total - #errors)) end
end

local PATHS <const> = { "path", "save_to" } -- arguments that name a file of the workspace

local function leaves(path)
  for part in path:gmatch("[^/]+") do
    if part ~= "." then return part == ".." and path:sub(1, 1) ~= "/" end
  end
end

--- Why a valid step will fail when it runs; and the argument.
local function lint(step)
  for _, name in ipairs(PATHS) do
    local path = step.arguments[name]
    if type(path) == "string" and leaves(path) then return "the path leaves the workspace", name end
  end
  local own = catalogue.get(step.type).lint
  if own then return own(step.arguments) end
end

local function say_lint(name, bytes, steps)
  local places, found = nil, false
  for i, step in ipairs(steps) do
    local message, argument = lint(step)
    if message then
      places, found = places or json_place.of(bytes), true
      local pointer = ("/steps/%d/arguments"):format(i - 1)
      local given = places:has(pointer) and pointer or ("/steps/%d/args"):format(i - 1)
      given = argument and given .. "/" .. argument or given
      local line, column = places:place(given)
      say(name, line, column, given .. ": " .. message)
    end
  end
  return found
end

--- Checks one file; returns its exit status.
local function validate(path, environment)
  local name = path == "-" and "<stdin>" or redact(path)
  local bytes, unread = file.read(path, LARGEST_JOB)
  if not bytes then return exit.because(unread.message, exit.REFUSED) end
  local read, failure = job.parse(bytes, catalogue, environment)
  if not read then
    say_errors(name, bytes, failure)
    return exit.REFUSED
  end
  local directory = path ~= "-" and (path:match("^.*/") or ".") or nil
  local context, missing = job_context.load(read.context, directory)
  if not context then
    local line, column = json_place.of(bytes):place("/context")
    say(name, line, column, "/context: " .. missing.message)
    return exit.REFUSED
  end
  if say_lint(name, bytes, read.steps) then return exit.REFUSED end
  print(name .. ": valid")
  return exit.OK
end

---@param paths string[] "-" is stdin
---@param environment table<string, string>
---@return integer status of the first file that is not valid
return function(paths, environment)
  local status = exit.OK
  for _, path in ipairs(paths) do
    local one = validate(path, environment)
    if status == exit.OK then status = one end
  end
  return status
end
