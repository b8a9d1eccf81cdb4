-- SPDX-License-Identifier: Apache-2.0
-- --report: writes one HTML page about a result, and the journal and job next to it, to stdout.

local exit = require "sba.util.exit"
local file = require "native.file"
local html = require "sba.report.html"
local lists = require "sba.report.lists"
local outcome = require "sba.report.outcome"
local read = require "sba.report.source".read
local steps = require "sba.report.steps"
local style = require "sba.report.style"
local timeline = require "sba.report.timeline"
local turns = require "sba.report.turns"

local h = html.elements
local report = {}

local TIMEOUT <const> = 3600 -- seconds that a reader of stdout may take

---The page of a result: how the job ended first, then what it did and why.
---@param path string of the result; "-" is stdin
---@param job_path string where the job may be besides the result's directory
---@return string? html, string? message one line
function report.page(path, job_path)
  local source, message = read(path, job_path)
  if not source then return nil, message end
  return html.document(outcome.title(source), style, h.body {
    outcome.view(source),
    h.main {
      lists.changes(source), timeline.view(source), lists.acceptance(source.result), lists.todo(source.result), steps.view(source),
      turns.view(source), lists.artifacts(source.result), lists.about(source),
    },
  })
end

---Writes the page, whole or not at all. Returns the exit status.
---@param path string
---@param job_path string
---@return integer
function report.print(path, job_path)
  local bytes, message = report.page(path, job_path)
  if not bytes then return exit.because(message, exit.REFUSED) end
  if file.write(1, { bytes }, TIMEOUT) then return exit.OK end
  return exit.because("cannot write the report to stdout: its reader stopped reading", exit.UNWRITABLE)
end

return report
