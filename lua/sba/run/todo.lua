-- SPDX-License-Identifier: Apache-2.0
-- The todo list: the requirements, then the acceptance criteria, then the job's steps.

local checkpoint = require "sba.result.checkpoint"
local file = require "native.file"
local json = require "sba.util.json"
local result_schema = require "sba.result.result_schema"
local text = require "native.text"

local todo = {}
todo.__index = todo

local LONGEST_TITLE <const> = 200 -- characters, of a note too
-- Members of a structure that are its title; the first that is there.
local TITLES <const> = {
  "title", "requirement", "summary", "description", "text", "name",
}
local MOST_ITEMS <const> = 10000
local items_schema = result_schema.properties.todo.properties.items

---@class todo
---@field items table[] as the result has them
---@field steps table[] those of a direct job's steps, by step
---@field criteria table<integer, table> those of acceptance criteria, by criterion
---@field count integer the last id that was given
---@field checkpoint checkpoint of todo.json
---@field known? table the summary, until the list changes

local function shortened(words)
  local past = utf8.offset(words, LONGEST_TITLE + 1)
  return past and words:sub(1, past - 1) or words
end

local function add(self, title, source, parent)
  self.count = self.count + 1
  local item = {
    id = tostring(self.count), title = shortened(title), source = source,
    parent = parent or json.null, status = "pending", note = json.null,
  }
  self.items[#self.items + 1] = item
  return item
end

--- Of a structure: what is its title by name, or else all of it as "key: value".
local function plain_words(value)
  if json.is_array(value) then
    local list = {}
    for i, one in ipairs(value) do list[i] = plain_words(one) end
    return table.concat(list, ", ")
  end
  if type(value) == "string" then return value end
  if not json.is_object(value) then return json.encode(value) end
  for _, name in ipairs(TITLES) do
    if type(value[name]) == "string" and value[name] ~= "" then return value[name] end
  end
  local list = {}
  for name, one in pairs(value) do list[#list + 1] = name .. ": " .. plain_words(one) end
  table.sort(list)
  return table.concat(list, ", ")
end

local function title_of(requirement)
  local structure = requirement:find "^[%[{]" and json.decode(requirement)
  if next(json.table_of(structure)) == nil then return requirement end
  return plain_words(structure)
end

---@param items? table[]
---@return todo
function todo.new(items)
  items = json.array(items or {})
  local self = setmetatable({
    items = items, steps = {}, criteria = {}, count = #items,
    checkpoint = checkpoint.new(function() return true end), -- until there is a file
  }, todo)
  for _, item in ipairs(items) do
    if item.source == "step" then table.insert(self.steps, item) end
    if item.source == "acceptance_criterion" then table.insert(self.criteria, item) end
  end
  return self
end

---@param job table
---@param describe fun(step: table): string
function todo:fill(job, describe)
  local context = job.context or {}
  for _, requirement in ipairs(context.requirements or {}) do
    add(self, title_of(requirement), "requirement")
  end
  for i, criterion in ipairs(context.acceptance_criteria or {}) do
    self.criteria[i] = add(self, criterion, "acceptance_criterion")
  end
  for i, step in ipairs(job.steps) do
    local what = describe(step)
    local title = what == "" and step.type or step.type .. ": " .. what
    step.what, self.steps[i] = what, add(self, title, "step")
  end
end

---@param path string
---@param failed fun(failure: native.failure) called once, when it cannot be written
function todo:keep(path, failed)
  self.checkpoint = checkpoint.new(function()
    local ok, failure = file.replace(path, { '{"items":', self:summary().items[1], "}\n" }, { durable = false })
    if not ok and failed then failed(failure) end
    failed = ok and failed or nil
    return ok ~= nil
  end)
  self.checkpoint:write()
end

local function changed(self, item)
  self.known = nil
  self.checkpoint:changed()
  return item
end

---@param item table of `steps` or `criteria`
---@param status "pending"|"in_progress"|"done"|"dropped"
---@param note? string|lightuserdata nil: as it was
function todo:set(item, status, note)
  if type(note) == "string" then note = shortened(note) end
  item.status, item.note = status, note or item.note
  changed(self)
end

---At the end of a job that was not cut short: an agent has met the requirements; in a direct job
---nobody has checked them.
---@param is_agents boolean
function todo:close(is_agents)
  for _, item in ipairs(self.items) do
    local source, is_open = item.source, item.status == "pending"
    if is_agents and source == "requirement" and (is_open or item.status == "in_progress") then
      self:set(item, "done")
    elseif not is_agents and source ~= "step" and is_open and item.note == json.null then
      self:set(item, "dropped", "not checked")
    end
  end
end

local function find(self, id)
  for position, item in ipairs(self.items) do
    if item.id == id then return item, position end
  end
end

--- But for case and blanks around it.
local function find_title(self, title)
  title = text.trim(shortened(title)):lower()
  for _, item in ipairs(self.items) do
    if text.trim(item.title):lower() == title then return item end
  end
end

---@param id? string
---@return boolean
function todo:has(id) return find(self, id) ~= nil end

---Adds an agent's item, unless there is one with that title.
---@param title string
---@param parent? string id of an item
---@return table? item, string? mistake, boolean? is_old
function todo:add(title, parent)
  local old = find_title(self, title)
  if old then return old, nil, true end
  if #self.items >= MOST_ITEMS then
    return nil, ("the list is full: it has %d items"):format(MOST_ITEMS)
  end
  return changed(self, add(self, title, "agent", parent))
end

---Takes over another agent's plan. What it has dropped stays as it was.
---@param entries { content: string, status?: string }[] of the Agent Client Protocol
function todo:follow(entries)
  local statuses <const> = { completed = "done", in_progress = "in_progress" }
  for _, entry in ipairs(entries) do
    local item, status = self:add(entry.content), statuses[entry.status] or "pending"
    if item and item.source == "agent" then self:set(item, status) end
  end
end

---@param change { id: string, status?: string, title?: string, position?: integer, note?: string }
---@return table? item, string? mistake
function todo:update(change)
  local item, position = find(self, change.id)
  if not item then
    local ids = #self.items == 0 and "the list is empty" or "the ids are 1 to " .. self.count
    return nil, ("there is no item %s: %s"):format(change.id, ids)
  end
  local same = change.title and find_title(self, change.title)
  if same and same ~= item then
    return nil, ("item %s has that title; change that one, or choose another title"):format(same.id)
  end
  item.status = change.status or item.status
  if change.title then item.title = shortened(change.title) end
  if change.note then item.note = shortened(change.note) end
  if change.position then
    table.remove(self.items, position)
    table.insert(self.items, math.min(change.position, #self.items + 1), item)
  end
  return changed(self, item)
end

---Made anew only after a change: journal, todo.json and result take the same.
---@return { total: integer, done: integer, items: table } items: their JSON, for json.encode
function todo:summary()
  if self.known then return self.known end
  local done = 0
  for _, item in ipairs(self.items) do done = done + (item.status == "done" and 1 or 0) end
  local items = json.verbatim(json.encode(self.items, items_schema))
  self.known = { total = #self.items, done = done, items = items }
  return self.known
end

return todo
