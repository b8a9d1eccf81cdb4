-- SPDX-License-Identifier: Apache-2.0
-- The file of a journal: opened and locked, one line and one write for each event (events.lua lists them).

local file = require "native.file"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"

local journal = {}
journal.__index = journal

journal.ENTRY_PREFIX = '{"event":"step.finished","entry":' -- the entry and "}" follow
journal.BETWEEN = "}\n" .. journal.ENTRY_PREFIX -- from one entry to the next

-- The order of an event's own fields, which follow `event` and `at`.
local order <const> = {
  order = { "index", "id", "type", "check", "job_sha256", "protocol_version", "job_id", "task_id", "started_wall" },
}

---Opens and locks a journal, which stays as it is until journal.begin.
---@param path string
---@param create boolean
---@return native.file.log?, native.failure? failure not_locked: beside the log
function journal.lock(path, create)
  local log, failure = file.append(path, create)
  if not log then return nil, failure end
  local locked, why = log:lock()
  if locked or why.code ~= "locked" then return log, why and { code = "not_locked", message = why.message } end
  log:close()
  local message <const> = "another runner works in this job directory: %s is locked; `fuser %s` says by which process"
  return nil, { code = "locked", message = message:format(path, path) }
end

---@param log? native.file.log
---@param size integer bytes of it that stay
---@param failed fun(failure: native.failure) called once
---@return journal
function journal.begin(log, size, failed)
  local self = setmetatable({ failed = failed, log = log, size = size }, journal)
  if not log then return self end
  local rest, length, is_whole = log:line(size, 0)
  local ends = rest and is_whole and length == 1 -- with a line end, which is not of the last event
  local done, failure = log:cut(size + (ends and 1 or 0))
  if done and size > 0 and not ends then done, failure = log:append {} end
  if size > 0 then self.size = size + 1 end
  if not done then
    self.log = nil
    failed(failure)
  end
  return self
end

--- Lets --resume refuse it. Cutting off the torn line, or else all, makes room for that.
local function end_early(self, failure)
  local log = self.log
  self.log = nil
  self.failed(failure)
  for _, size in ipairs { self.size, 0 } do
    if log:cut(size) and log:append { '{"event":"journal.failed"}' } then return end
  end
end

--- The first part is a string.
local function append_long(log, parts)
  local offset
  for _, part in ipairs(parts) do
    local done, failure
    if type(part) == "string" then
      done, failure = log:append({ part }, true)
    else
      done, failure = file.append_text(part, log)
      if part.file then part.file:close() end
    end
    if not done then return nil, failure end
    offset = offset or done
  end
  local at, size = log:append {}
  return at and offset, size
end

---@param parts (string|native.file.text)[] of a line
---@param is_long? boolean some are texts
---@return integer? offset
function journal:append(parts, is_long)
  if not self.log then return nil end
  local offset, size = (is_long and append_long or self.log.append)(self.log, parts)
  if not offset then return end_early(self, size) end
  self.size = size
  return offset
end

function journal:event(event, fields)
  if not self.log then return end
  self:append { json.continue('{"event":"' .. event .. '","at":"' .. interrupt.timestamp() .. '"', fields, order) }
end

---@param texts string[]|(string|native.file.text)[][] of entry.encode; one in parts comes alone
---@return integer? offset of the first; nil: they are not written
---@return integer? size of all, with what is between
function journal:steps_finished(texts)
  local line, is_long = { journal.ENTRY_PREFIX }, type(texts[1]) == "table"
  for i, entry in ipairs(is_long and texts[1] or texts) do
    if i > 1 and not is_long then line[#line + 1] = journal.BETWEEN end
    line[#line + 1] = entry
  end
  line[#line + 1] = "}"
  local offset = self:append(line, is_long)
  if offset then return offset + #journal.ENTRY_PREFIX, self.size - offset - #journal.ENTRY_PREFIX - #"}\n" end
end

return journal
