-- SPDX-License-Identifier: Apache-2.0
-- The lines of the prompt: edited where the terminal can, plain where not; and their history, kept in the file that
-- SBA_LUA_HISTORY names, or in memory only.

local file = require "native.file"
local interrupt = require "native.interrupt"
local line_editor = require "native.line_editor"

local input = {}

local LARGEST_HISTORY <const> = 1024 * 1024 -- bytes
local MOST_ENTRIES <const> = 1000

--- Reads without editing. The prompt goes to stderr, for stdout may be a file.
local plain = {}
plain.__index = plain

function plain.read(_, prompt)
  io.stderr:write(prompt)
  local line, message = io.read("l")
  if line or not message then return line end
  return nil, interrupt.reason() or { code = "io_error", message = message }
end

function plain.remember() end

local escapes = { ["\n"] = "\\n", ["\\"] = "\\\\" }
local unescapes = { n = "\n", ["\\"] = "\\" }

--- Its entries, one a line, the oldest first. A file that is not there has none.
local function entries_of(path)
  local bytes, failure = file.read(path, LARGEST_HISTORY)
  if not bytes then return failure.code == "not_found" and {} or nil, failure end
  local entries = {}
  for line in bytes:gmatch("[^\n]+") do entries[#entries + 1] = line:gsub("\\(.)", unescapes) end
  return entries
end

--- Nobody else may read it. It is made anew where it has become long.
local function keep(path, entries)
  if #entries > 0 and #entries <= 2 * MOST_ENTRIES then return file.append(path) end
  local lines = {}
  for i = math.max(1, #entries - MOST_ENTRIES), #entries do lines[#lines + 1] = entries[i]:gsub("[\n\\]", escapes) .. "\n" end
  local ok, failure = file.replace(path, lines, { mode = tonumber("600", 8), durable = false })
  if not ok then return nil, failure end
  return file.append(path)
end

local edited = {}
edited.__index = edited

function edited.read(_, prompt) return line_editor.read(prompt) end

function edited:remember(entry)
  line_editor.remember(entry)
  if not self.log then return end
  local ok, failure = self.log:append { (entry:gsub("[\n\\]", escapes)) }
  if ok then return end
  self.log = nil
  self.complain("the history is not kept any more: " .. failure.message)
end

local function open_history(self, path)
  local entries, failure = entries_of(path)
  if entries then
    for _, entry in ipairs(entries) do line_editor.remember(entry) end
    self.log, failure = keep(path, entries)
  end
  if failure then self.complain("the history is not kept: " .. failure.message) end
end

---Opens what the prompt reads from: read(prompt) gives a line, nil at the end, or nil and a failure; remember(entry).
---@param complete fun(line: string, cursor: integer): string?, string?
---@param history string? path of the file
---@param complain fun(message: string)
---@return table
function input.open(complete, history, complain)
  if not line_editor.open(complete) then return setmetatable({}, plain) end
  local self = setmetatable({ complain = complain }, edited)
  if history and history ~= "" then open_history(self, history) end
  return self
end

return input
