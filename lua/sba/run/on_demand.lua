-- SPDX-License-Identifier: Apache-2.0
-- The modules that only some jobs need. Loading all of them takes longer than an empty job does, so each is loaded when it is first
-- used. This is the one place for that: everything else a job needs is required at the top of a file.

return {
  acceptance = function() return require "sba.agent.acceptance" end,
  agent = function() return require "sba.agent" end,
  ask = function() return require "sba.run.ask" end,
  check = function() return require "sba.run.check" end,
  gateway = function() return require "sba.gateway" end,
  http = function() return require "sba.util.http" end,
  models = function() return require "sba.agent.models" end,
  past = function() return require "sba.run.past" end,
  status = function() return require "sba.run.status" end,
  step = function() return require "sba.run.step" end,
  terminal = function() return require "sba.util.terminal" end,
  trace = function() return require "sba.run.trace" end,
  transfer = function() return require "sba.run.transfer" end,
  undo = function() return require "sba.run.undo" end,
  workspace_changes = function() return require "sba.run.workspace_changes" end,
}
