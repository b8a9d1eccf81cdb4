-- SPDX-License-Identifier: Apache-2.0
-- What tools answered: shown to the model as head and tail with the exact count left out, kept whole in outputs/ beside the
-- result so that read_output gives the rest.

local excerpt = require "sba.util.excerpt"
local file = require "native.file"
local meter = require "sba.run.agent.meter"
local text = require "native.text"
local workspace = require "native.workspace"

local outputs = {}
outputs.__index = outputs

local MOST_KEPT <const> = 256 * 1024 * 1024 -- bytes on disk
local MOST_IN_MEMORY <const> = 16 * 1024 * 1024 -- where there is no job directory

---@param directory? string where outputs/ is made; nil: they are kept in memory
---@param limit integer most bytes of one answer that the model is shown
---@param tokens? integer most tokens of it; default: as many as there are
---@return table outputs
function outputs.new(directory, limit, tokens)
  local self = setmetatable({ limit = limit, tokens = tokens or math.huge, sizes = {}, kept = 0, memory = {} }, outputs)
  if directory then
    local path = directory .. "outputs"
    self.directory = file.make_directory(path) and workspace.open(path)
  end
  self.most = self.directory and MOST_KEPT or MOST_IN_MEMORY
  return self
end

local function keep(self, id, whole)
  if self.kept + #whole > self.most then return false end
  if self.directory then
    if not self.directory:write(id, whole) then return false end
  else
    self.memory[id] = whole
  end
  self.sizes[id], self.kept = #whole, self.kept + #whole
  return true
end

--- How many bytes of a text are as many tokens as may be shown, where the text is of one kind.
local function fitting(self, part)
  local tokens = meter.raw(part)
  return tokens > self.tokens and math.max(1, #part * self.tokens // tokens) or nil
end

---What the model is shown of an answer; the whole is kept where that is not all of it.
---@param id string of the step
---@param whole string UTF-8, without secrets
---@return string
function outputs:show(id, whole)
  local limit = fitting(self, (excerpt.of(whole, self.limit))) or self.limit
  if #whole <= limit then return whole end
  local is_kept = keep(self, id, whole)
  return (excerpt.of(whole, limit, function(offset)
    if not is_kept then return "they were not kept, because the limit for kept outputs is reached" end
    return ('read_output {"step": "%s", "offset_bytes": %d} gives them'):format(id, offset)
  end))
end

local function slice(self, id, offset, size)
  if not self.directory then return self.memory[id]:sub(offset + 1, offset + size) end
  local found, failure = self.directory:read(id, { offset_bytes = offset, max_bytes = size })
  if not found then return nil, failure end
  return found.content
end

---A part of a kept answer.
---@param arguments { step: string, offset_bytes?: integer, max_bytes?: integer }
---@return string? part, string? mistake
function outputs:read(arguments)
  local size = self.sizes[arguments.step]
  if not size then return nil, ("the output of %s was not cut, or there is no such step"):format(arguments.step) end
  local offset = arguments.offset_bytes or 0
  if offset >= size then return nil, ("the output of %s has only %d bytes"):format(arguments.step, size) end
  local part, failure = slice(self, arguments.step, offset, math.min(arguments.max_bytes or self.limit, self.limit))
  if not part then return nil, failure.message end
  part = text.repair(part)
  part = text.cut(part, fitting(self, part) or #part)
  return ("%s\n[bytes %d to %d of %d]"):format(part, offset, math.min(offset + #part, size), size)
end

return outputs
