-- SPDX-License-Identifier: Apache-2.0
-- --report: writes one HTML page about a result, and the journal and job next to it, to stdout.

local exit = require "sba.util.exit"
local file = require "native.file"
local html = require "sba.report.html"
local outcome = require "sba.report.outcome"
local page = require "sba.report.page"
local redact = require "native.secret".redact
local source = require "sba.report.source"
local style = require "sba.report.style"

local TIMEOUT <const> = 3600 -- seconds that a reader of stdout may take

local function complain(message)
  io.stderr:write("cynode-sba: ", redact(message), "\n")
end

---Writes the page, whole or not at all. Returns the exit status.
---@param path string of the result; "-" is stdin
---@param job_path string where the job may be besides the result's directory
---@return integer
return function(path, job_path)
  local found, message = source.read(path, job_path)
  if not found then
    complain(message)
    return exit.signalled() or exit.REFUSED
  end
  local bytes = table.concat(html.document(outcome.title(found), style, page(found)))
  if file.write(1, bytes, TIMEOUT) then return exit.OK end
  complain("cannot write the report to stdout: its reader stopped reading")
  return exit.signalled() or exit.UNWRITABLE
end
