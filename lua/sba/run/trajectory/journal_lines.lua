-- SPDX-License-Identifier: Apache-2.0
-- The lines of a journal, read in blocks: a journal may be larger than the memory there is.

local file = require "native.file"
local workspace = require "native.workspace"

local BLOCK <const> = 256 * 1024 -- bytes
local LONGEST <const> = 512 * 1024 * 1024 -- bytes of a line, and of standard input

--- A function that returns the next block, "" at the end, or nil and a failure.
local function blocks_of(path)
  local above = path:match("^.*/") or ""
  local directory, failure = workspace.open(above ~= "" and above or ".")
  if not directory then return nil, failure end
  local name, offset = path:sub(#above + 1), 0
  return function()
    local found, failed = directory:read(name, { offset_bytes = offset, max_bytes = BLOCK })
    if not found then return nil, failed end
    offset = offset + #found.content
    return found.content
  end
end

---Opens a journal. The function that it returns gives the next line without its newline, and whether it has one; nil at the end; or
---nil and a failure.
---@param path string "-" is stdin
---@return (fun(): string?, boolean|native.failure?)? next_line, native.failure? failure
return function(path)
  local next_block, block = function() return "" end, ""
  local failure
  if path == "-" then block, failure = file.read("-", LONGEST) else next_block, failure = blocks_of(path) end
  if not block or not next_block then return nil, failure end
  local at = 1
  return function()
    local parts, size = {}, 0
    repeat
      local newline = block:find("\n", at, true)
      parts[#parts + 1] = block:sub(at, (newline or 0) - 1)
      if newline then
        at = newline + 1
        return table.concat(parts), true
      end
      size = size + #parts[#parts]
      if size > LONGEST then return nil, { code = "too_large", message = ("a line has more than %d bytes"):format(LONGEST) } end
      block, failure = next_block()
      at = 1
      if not block then return nil, failure end
    until block == ""
    local rest = table.concat(parts)
    if rest ~= "" then return rest, false end
  end
end
