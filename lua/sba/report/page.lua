-- SPDX-License-Identifier: Apache-2.0
-- The page: how the job ended first, then what it did and why.

local changes = require "sba.report.changes"
local h = require "sba.report.html".elements
local lists = require "sba.report.lists"
local outcome = require "sba.report.outcome"
local steps = require "sba.report.steps"
local timeline = require "sba.report.timeline"
local turns = require "sba.report.turns"

---@param source report.source
---@return html.element
return function(source)
  local scale = timeline.scale(source.result)
  return h.body {
    outcome.view(source),
    h.main {
      changes(source),
      timeline.view(source, scale),
      lists.acceptance(source.result),
      lists.todo(source.result),
      steps.view(source, scale),
      turns.view(source),
      lists.artifacts(source.result),
      lists.about(source),
    },
  }
end
