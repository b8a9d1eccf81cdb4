-- SPDX-License-Identifier: Apache-2.0
-- What steps are called with: where they work, what bounds them, and what of the run they may use.

local artifacts = require "sba.run.artifacts"
local interrupt = require "native.interrupt"
local on_demand = require "sba.run.on_demand"
local secret = require "sba.util.secret"

-- What a model's commands get where it is not set: nothing waits for a person.
local unattended <const> = {
  PAGER = "cat", GIT_PAGER = "cat", GIT_EDITOR = "true", CI = "1", DEBIAN_FRONTEND = "noninteractive", PIP_PROGRESS_BAR = "off",
}

--- The environment of commands: the runner's without its passwords, and the artifacts directory.
local function children_environment(run)
  local list, environment = {}, secret.for_commands(run.environment)
  for name, value in pairs(not run.steps and unattended or {}) do
    if not environment[name] then list[#list + 1] = name .. "=" .. value end
  end
  for name, value in pairs(environment) do
    if name ~= "CYNODE_ARTIFACTS_DIR" then list[#list + 1] = name .. "=" .. value end
  end
  if run.artifacts then list[#list + 1] = "CYNODE_ARTIFACTS_DIR=" .. run.artifacts:path() end
  table.sort(list)
  return list
end

--- The file's size before a step first appended to it, so that a step that runs again appends to the same.
local function size_before_append(run, size)
  local index, known = run.record.count + 1, run.past.append
  if known and known.index == index then return known.size end
  run:emit("step.append", { index = index - 1, size = size })
  return size
end

---@param limits? { whole: number?, idle: number? } seconds: for connecting and the call with all its tries; without progress
---@return gateway.answer?, mcp.failure?
local function call_tool(run, tool, arguments, limits)
  limits = { until_when = limits and limits.whole and interrupt.now() + limits.whole, idle = limits and limits.idle }
  local gateway, failure = run:connect(false, limits)
  if not gateway then return nil, failure end
  return gateway:call(tool, arguments, limits)
end

local function tick(run, news, missing)
  if news then run.live:said(news, missing) end
  run.live:tick()
  run.log.view:tick()
  run.todo.checkpoint:tick()
  run.checkpoint:tick()
end

---@param run run
---@return table
return function(run)
  return {
    workspace = run.workspace, environment = children_environment(run), agent = not run.steps, follow = run.log.follow or nil,
    max_output_bytes = run.job.constraints.max_output_bytes,
    place = function(path) return artifacts.place(run, path) end,
    ask = function(question)
      run.ask = run.ask or on_demand.ask()(run)
      return run.ask(question)
    end,
    call_tool = function(...) return call_tool(run, ...) end,
    commit = function(change) return on_demand.undo().commit(run, change) end,
    size_before_append = function(size) return size_before_append(run, size) end,
    tick = function(news, missing) tick(run, news, missing) end,
  }
end
