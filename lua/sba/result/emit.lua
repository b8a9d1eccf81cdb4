-- SPDX-License-Identifier: Apache-2.0
-- The result leaves the runner: into its file, onto stdout, or, where neither takes it, onto stderr.

local file = require "native.file"
local chunks = require "sba.util.chunks"
local redact = require "native.secret".redact

local emit = {}

local TIMEOUT <const> = 30 -- seconds without progress until a reader of stdout counts as gone

local function to_stream(fd, parts)
  local size, taken = chunks.size(parts), 0
  for _, part in ipairs(parts) do
    local all, written = file.write(fd, part, TIMEOUT)
    taken = taken + written
    if not all then return nil, { code = "io_error", message = ("stdout took only %d of the result's %d bytes"):format(taken, size) } end
  end
  return size
end

--- Replaces the result file.
---@param path string
---@param parts string[]
---@return integer? bytes, failure|string how "renamed", "in_place", or the failure
function emit.replace(path, parts)
  local how, failure = file.replace(path, parts)
  if not how then return nil, failure end
  return chunks.size(parts), how
end

--- Writes the result to where it belongs.
---@param path string "-" is stdout
---@param parts string[]
---@return integer? bytes, failure|string? how
function emit.write(path, parts)
  if path == "-" then return to_stream(1, parts) end
  return emit.replace(path, parts)
end

--- The last resort: one line that says what failed, then the whole result as one line, on stderr.
---@param parts string[]
---@param failure failure
function emit.to_stderr(parts, failure)
  file.write(2, ("cynode-sba: the result follows here: %s\n"):format(redact(failure.message)), TIMEOUT)
  to_stream(2, parts)
end

return emit
