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

--- Checks one file; returns its exit status.
local function validate(path, environment)
  local name = path == "-" and "<stdin>" or redact(path)
  local bytes, unread = file.read(path, LARGEST_JOB)
  if not bytes then return exit.because(unread.message, exit.REFUSED) end
  local directory = path ~= "-" and (path:match("^.*/") or ".") or nil
  local read, failure = job.parse(bytes, catalogue, environment, function(given)
    return select(2, job_context.load(given, directory))
  end)
  if not read then
    say_errors(name, bytes, failure)
    return exit.REFUSED
  end
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
