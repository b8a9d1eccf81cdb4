-- SPDX-License-Identifier: Apache-2.0
-- The file of a journal: opened and locked, one line and one write for each event (events.lua lists
-- them).

local file = require "native.file"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local text = require "native.text"

local journal = {}
journal.__index = journal

local BEFORE_ENTRY <const> = '{"event":"step.finished","entry":'
local AFTER_ENTRY <const> = "}" -- and a line end
journal.BETWEEN = AFTER_ENTRY .. "\n" .. BEFORE_ENTRY -- from one entry to the next

local DIGITS <const> = 16 -- hexadecimal, of a step's digest

-- The order of an event's own fields, which follow `event` and `at`.
local schema <const> = { order = {
  "index", "id", "type", "check", "pid", "started", "job_sha256", "protocol_version", "job_id", "task_id",
  "started_wall",
} }

---Opens and locks a journal, which stays as it is until journal.begin.
---@param path string
---@param create boolean
---@return native.file.log?, native.failure? failure not_locked: beside the log
function journal.lock(path, create)
  local log, failure = file.append(path, create)
  if not log then return nil, failure end
  local locked, why = log:lock()
  if locked then return log end
  if why.code ~= "locked" then return log, { code = "not_locked", message = why.message } end
  log:close()
  local message = "another runner works in this job directory: %s is locked; `fuser %s` says by which process"
  return nil, { code = "locked", message = message:format(path, path) }
end

---@param log? native.file.log nil: what is told is kept nowhere
---@param size integer bytes of it that stay: whole events, but for the last one's line end
---@param failed fun(failure: native.failure) called once
---@return journal
function journal.begin(log, size, failed)
  local self = setmetatable({ failed = failed, log = log, size = size }, journal)
  if not log then return self end
  local rest, length, is_whole = log:line(size, 0)
  local has_line_end = rest and is_whole and length == 1
  local done, failure = log:cut(has_line_end and size + 1 or size)
  if done and size > 0 and not has_line_end then done, failure = log:append {} end
  if size > 0 then self.size = size + 1 end
  if not done then
    self.log = nil
    failed(failure)
  end
  return self
end

--- Its last line lets --resume refuse it. Cutting off the torn line, or else all, makes room for
--- that.
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
  local write = is_long and append_long or self.log.append
  local offset, size = write(self.log, parts)
  if not offset then return end_early(self, size) end
  self.size = size
  return offset
end

---@param event string
---@param fields table
function journal:event(event, fields)
  if not self.log then return end
  local head = '{"event":"' .. event .. '","at":"' .. interrupt.timestamp() .. '"'
  self:append { json.continue(head, fields, schema) }
end

---There may be very many: they share one write.
---@param entries (string|(string|native.file.text)[])[] of entry.encode
---@return integer? offset of the first, after which come BETWEEN and the next; nil: not written
---@return integer? size of all of them
function journal:steps_finished(entries)
  local line, is_long = {}, false
  for i, entry in ipairs(entries) do
    line[#line + 1] = i == 1 and BEFORE_ENTRY or journal.BETWEEN
    local parts = type(entry) == "table" and entry or { entry }
    is_long = is_long or parts == entry
    for _, part in ipairs(parts) do line[#line + 1] = part end
  end
  line[#line + 1] = AFTER_ENTRY
  local offset = self:append(line, is_long)
  if not offset then return nil end
  offset = offset + #BEFORE_ENTRY
  return offset, self.size - offset - #AFTER_ENTRY - #"\n"
end

---What the job's line has of a step's arguments: --resume knows by it which steps of an edited job
---are as they were. The second digest keeps anyone from reading a short secret out of the first.
---@param step { arguments: table }
---@return string
function journal.digest(step) return text.sha256(text.fingerprint(step.arguments)):sub(1, DIGITS) end

return journal
