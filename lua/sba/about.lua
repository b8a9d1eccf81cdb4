-- SPDX-License-Identifier: Apache-2.0
-- The modes that run no job: what this program is, what it accepts, whether a job is valid; and the idle one of sessions.

local exit = require "sba.util.exit"
local redact = require "native.secret".redact

local about = {}

local LARGEST_JOB <const> = 64 * 1024 * 1024 -- bytes

--- --version
function about.version()
  local bundle = require "native.bundle"
  print(("cynode-sba %s (%s)"):format(bundle.version, bundle.libraries))
  return exit.OK
end

--- --help
function about.help()
  io.write(require "sba.cli".help)
  return exit.OK
end

--- --idle
function about.idle()
  require "native.process".idle()
  return exit.signalled() or exit.OK
end

local schemas = {
  job = function() return require "sba.job.printed".job(require "sba.catalogue") end,
  result = function() return require "sba.util.schema".print((require "sba.result.schema")) end,
  steps = function() return require "sba.job.printed".steps(require "sba.catalogue") end,
}

--- --schema
---@param what "job"|"result"|"steps"
function about.schema(what)
  io.write(schemas[what]())
  return exit.OK
end

local function print_errors(errors)
  local line = require "sba.util.schema_mistakes".line
  for _, problem in ipairs(errors) do print(redact(line(problem))) end
  if errors.total > #errors then print(("and %d more"):format(errors.total - #errors)) end
end

--- --validate: every error on a line of its own, "POINTER: message".
---@param path string "-" is stdin
---@param environment table<string, string>
function about.validate(path, environment)
  local bytes, unread = require "native.file".read(path, LARGEST_JOB)
  if not bytes then
    io.stderr:write("cynode-sba: ", redact(unread.message), "\n")
    return exit.signalled() or exit.REFUSED
  end
  local job, failure = require "sba.job".parse(bytes, require "sba.catalogue", environment)
  if not job then
    print_errors(failure.errors)
    return exit.REFUSED
  end
  print((path == "-" and "the job" or redact(path)) .. ": valid")
  return exit.OK
end

return about
