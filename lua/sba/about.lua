-- SPDX-License-Identifier: Apache-2.0
-- The modes that do not run a job: --version, --help, --schema, --validate, and --idle for sessions.

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

about.usage = [=[
cynode-sba, the sandbox agent runner: runs a job and writes its result.
  cynode-sba [OPTION...]       run the job; see the manual cynode-sba(1)
  --stdin                      job on stdin, result on stdout
  --resume                     continue an interrupted job from its journal
  --replay FILE                run an agent's job with recorded replies
  --validate [FILE]            check a job; list all errors by JSON Pointer
  --report [FILE]              print a result as an HTML page
  --schema [job|result|steps]  print a JSON Schema (draft 2020-12)
  --idle                       wait as PID 1 of a session until SIGTERM
  --lua [FILE [ARG...]]        run Lua, or a prompt; -e CODE runs one line
  --version, --help
option               environment              default
--job FILE           SBA_JOB_PATH             /job/job.json; - is stdin
--result FILE        SBA_RESULT_PATH          /job/result.json; - is stdout
--workspace DIR      SBA_WORKSPACE            /workspace
--user UID[:GID]     SBA_USER                 none; the user to become when root
--log-format FORMAT  SBA_LOG_FORMAT           auto; json, text; on stderr
                     CYNODE_ARTIFACTS_DIR     artifacts/ next to the result
                     SBA_EXECUTION_MODE       from the job
                     SBA_STDIN_STDOUT         false; true: as --stdin
                     SBA_LUA_HISTORY          none; history file of the prompt
exit: 0 success, 1 the job failed, 2 job or command line refused, 3 the result
could not be written, 124 timeout, 143 SIGTERM, 130 SIGINT
]=]

--- --help
function about.help()
  io.write(about.usage)
  return exit.OK
end

--- --idle
function about.idle()
  require "native.process".idle()
  return exit.signalled() or exit.OK
end

local schemas = {
  job = function() return require "sba.job.printed".job(require "sba.catalogue") end,
  result = function() return require "sba.util.schema_document" ((require "sba.result.result_schema")) end,
  steps = function() return require "sba.job.printed".steps(require "sba.catalogue") end,
}

--- --schema
---@param what "job"|"result"|"steps"
function about.schema(what)
  io.write(schemas[what]())
  return exit.OK
end

local function print_errors(errors)
  local line = require "sba.util.schema_check".line
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
  local directory = path ~= "-" and (path:match("^.*/") or ".") or nil
  local context, missing = require "sba.job.context".load(job.context, directory)
  if not context then
    print("/context: " .. redact(missing.message))
    return exit.REFUSED
  end
  print((path == "-" and "the job" or redact(path)) .. ": valid")
  return exit.OK
end

return about
