-- SPDX-License-Identifier: Apache-2.0
-- What tools answered: the model is shown head and tail, read_output gives the rest. The whole is
-- in outputs/ next to the result, or in memory.

local excerpt = require "sba.util.excerpt"
local file = require "native.file"
local prompts = require "sba.agent.prompts"
local text = require "native.text"
local workspace = require "native.workspace"

local outputs = {}
outputs.__index = outputs

local MOST_KEPT <const> = 256 * 1024 * 1024 -- bytes on disk
local MOST_IN_MEMORY <const> = 16 * 1024 * 1024
local LONGEST_CHARACTER <const> = 4 -- bytes
local LEAST_KEPT <const> = 400 -- bytes; a shorter answer is never shortened

---@param directory? string where outputs/ is made; nil: in memory
---@param limit integer bytes of one answer that the model is shown
---@param tokens? integer of it; default: any number
function outputs.new(directory, limit, tokens)
  local path = (directory or "") .. "outputs/"
  local self = { limit = limit, tokens = tokens or math.huge, kept = {}, size = 0, path = path }
  self.directory = directory and file.make_directory(path) and workspace.open(path)
  self.most = self.directory and MOST_KEPT or MOST_IN_MEMORY
  return setmetatable(self, outputs)
end

--- What was left out begins at `offset` and, where it is cut at lines, at `line`.
local function keep(self, id, whole)
  if self.size + #whole > self.most then return nil end
  local kept = { bytes = #whole, lines = text.count_lines(whole), offset = 0, line = 1 }
  if not self.directory then kept.whole = whole end
  local is_safe = kept.whole or file.replace(self.path .. id, { whole }, { durable = false })
  if not is_safe then return nil end
  self.size = self.size + #whole
  self.kept[id] = kept
  return kept
end

---@param part string
---@param count? integer texts that share the tokens; default: 1
---@return integer? bytes that may be shown, about; nil: all
function outputs:fitting(part, count)
  local most = self.tokens // (count or 1)
  -- A token has a byte at least.
  local tokens = #part > most and text.tokens(part) or 0
  return tokens > most and math.max(1, #part * most // tokens) or nil
end

---What the model is shown of an answer. A whole one is kept too: it may be shortened later.
---@param id string of the step
---@param whole string UTF-8, without secrets
---@param count? integer answers shown together; default: 1
---@return string
function outputs:show(id, whole, count)
  local limit = self.limit // (count or 1)
  limit = self:fitting(excerpt.of(whole, limit), count) or limit
  if #whole <= limit and #whole < LEAST_KEPT then return whole end
  local kept = keep(self, id, whole)
  if #whole <= limit then return whole end
  self.has_cut = true
  return (excerpt.of_lines(whole, limit, function(offset, line)
    if not kept then return prompts.not_kept end
    kept.offset, kept.line = offset, line
    local from = line and ('"start_line": %d'):format(line) or ('"offset_bytes": %d'):format(offset)
    return prompts.read_them:format(id, from)
  end))
end

--- As root:read.
local function of_memory(whole, options)
  local first, last, number = (options.offset_bytes or 0) + 1, #whole, 0
  for after, _, _, at in excerpt.lines(options.start_line and whole or "") do
    number = number + 1
    if number == options.start_line then first = at end
    if number == options.end_line then last = after - 1 break end
  end
  return { content = whole:sub(first, math.min(last, first + options.max_bytes - 1)) }
end

--- What is shown of a range, no longer than `most` and than the tokens allow, and whether it was cut;
--- or nil and the mistake. An output may be very long: no more of it is read.
local function read(self, id, most, options)
  local whole, found, failure = self.kept[id].whole
  -- So that the cut finds where the last one begins.
  options.max_bytes = most + LONGEST_CHARACTER
  if whole then
    found = of_memory(whole, options)
  else
    found, failure = self.directory:read(id, options)
  end
  if not found then return nil, failure.message end
  local range = text.repair(found.content)
  local part = text.cut(range, most)
  part = text.cut(part, self:fitting(part) or #part)
  return part, #part < #range
end

local function read_bytes(self, id, offset, most)
  local size = self.kept[id].bytes
  if offset >= size then return nil, ("the result of %s has only %d bytes"):format(id, size) end
  local part, mistake = read(self, id, math.min(most or self.limit, self.limit), { offset_bytes = offset })
  if not part then return nil, mistake end
  return ("%s\n[bytes %d to %d of %d]"):format(part, offset, math.min(offset + #part, size), size)
end

local GOES_ON <const> = "; the line goes on, and offset_bytes reads any part of the result"

local function read_lines(self, id, first, last)
  local total, more = self.kept[id].lines, ""
  if first > total then return nil, ("the result of %s has only %d lines"):format(id, total) end
  if last and last < first then
    return nil, ("end_line (%d) is before start_line (%d)"):format(last, first)
  end
  last = math.min(last or total, total)
  local part, is_cut = read(self, id, self.limit, { start_line = first, end_line = last })
  if not part then return nil, is_cut end
  if is_cut then
    local back = part:reverse():find("\n", 1, true)
    if back then part = part:sub(1, #part - back + 1) else more = GOES_ON end
  end
  local to = first + math.max(0, text.count_lines(part) - 1)
  if to < last then more = more .. ("; start_line %d reads on"):format(to + 1) end
  return ("[lines %d to %d of %d%s]\n%s"):format(first, to, total, more, part)
end

---By default, what was left out.
---@param given table arguments of read_output
---@return string? part, string? mistake
function outputs:read(given)
  local id, first, last = given.step, given.start_line, given.end_line
  local offset, most = given.offset_bytes, given.max_bytes
  local kept = self.kept[id]
  if not kept then return nil, prompts.nothing_left_out:format(id) end
  local of_lines = first or last or kept.line
  if offset or most or not of_lines then
    return read_bytes(self, id, offset or kept.offset, most)
  end
  if last then first = first or 1 end
  return read_lines(self, id, first or kept.line, last)
end

return outputs
