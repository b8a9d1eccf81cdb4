-- SPDX-License-Identifier: Apache-2.0
-- The todo list: the requirements, then the acceptance criteria, then the job's steps. It lives in todo.json beside the
-- result. A step's item follows its step.

local array = require "sba.util.json".array
local checkpoint = require "sba.result.checkpoint"
local file = require "native.file"
local json = require "native.json"
local schema = require "sba.result.schema"

local todo = {}
todo.__index = todo

local LONGEST_TITLE <const> = 200 -- characters
local ITEM_OVERHEAD <const> = 100 -- bytes of an item in JSON, its title aside

local file_schema = { order = { "items" }, properties = { items = schema.properties.todo.properties.items } }

local function add(self, title, source)
  local past = utf8.offset(title, LONGEST_TITLE + 1)
  local item = {
    id = tostring(#self.items + 1), title = past and title:sub(1, past - 1) or title, source = source,
    parent = json.null, status = "pending", note = json.null,
  }
  self.items[#self.items + 1] = item
  return item
end

--- An empty list.
---@return todo
function todo.new()
  return setmetatable({ items = array {}, steps = {}, done = 0 }, todo)
end

--- Fills the list from a job.
---@param job table
---@param describe fun(step: table): string
function todo:fill(job, describe)
  local context = job.context or {}
  for _, requirement in ipairs(context.requirements or {}) do add(self, requirement, "requirement") end
  for _, criterion in ipairs(context.acceptance_criteria or {}) do add(self, criterion, "acceptance_criterion") end
  for i, step in ipairs(job.steps) do
    local what = describe(step)
    self.steps[i] = add(self, what == "" and step.type or step.type .. ": " .. what, "step")
  end
end

--- Keeps the list in a file from now on.
---@param path string
---@param failed fun(failure: native.failure) called once, when it cannot be written; the job goes on
function todo:keep(path, failed)
  self.checkpoint = checkpoint.new(function()
    local text = json.encode({ items = self.items }, file_schema) .. "\n"
    local ok, failure = file.replace(path, { text }, { durable = false })
    if ok then return #text end
    if failed then failed(failure) end
    failed = nil
  end)
  self.checkpoint:write()
end

--- A step's item takes a new status.
---@param index integer of the step, from 1
---@param status "pending"|"in_progress"|"done"|"dropped"
---@param note? string
---@return table item
function todo:follow(index, status, note)
  local item = self.steps[index]
  if item.status == "done" then self.done = self.done - 1 end
  if status == "done" then self.done = self.done + 1 end
  item.status, item.note = status, note or item.note
  if self.checkpoint then self.checkpoint:changed(#item.title + ITEM_OVERHEAD) end
  return item
end

--- To be called now and then while a step runs.
function todo:tick()
  if self.checkpoint then self.checkpoint:tick() end
end

--- Writes what was not yet written.
function todo:finish()
  if self.checkpoint and self.checkpoint.dirty then self.checkpoint:write() end
end

--- The list as the result carries it.
---@return { total: integer, done: integer, items: table[] }
function todo:summary()
  return { total = #self.items, done = self.done, items = self.items }
end

return todo
