-- SPDX-License-Identifier: Apache-2.0
-- SEARCH/REPLACE blocks, which models write instead of a diff:
--
--   src/a.c
--   <<<<<<< SEARCH
--   what the file holds
--   =======
--   what takes its place
--   >>>>>>> REPLACE
--
-- Several blocks for one file apply one after the other. Only the first needs the name above it. An empty SEARCH makes a new file.

local fail = require "sba.util.fail"
local lines = require "sba.util.lines"
local replace = require "sba.patch.replace"
local text = require "native.text"

local blocks = {}

local MOST_BLOCKS <const> = 10000
local LONGEST_NAME <const> = 4096 -- bytes

local function is_mark(line, character, ...)
  local marks, word = line:match("^(%p+) ?(%u*)$")
  if not marks or #marks < 5 or #marks > 9 or marks ~= character:rep(#marks) then return false end
  for _, wanted in ipairs { ... } do
    if word == wanted then return true end
  end
  return false
end

local function begins(line) return is_mark(line, "<", "SEARCH", "ORIGINAL") end

--- The file name in a line above a block: "src/a.c", "### src/a.c", "**src/a.c**:", "File: src/a.c".
local function name_in(line)
  if #line > LONGEST_NAME then return nil end
  local name = text.trim_end(line:match("^[ \t#*`]*(.*)$"), " \t*`:")
  name = name:gsub("^[Ff]ile: *", ""):gsub("^[*`]+", "")
  return name ~= "" and not name:find("[ \t]") and name or nil
end

---@class sba.block
---@field path string
---@field line integer of the text, where it begins
---@field old string
---@field new string

--- Reads the parts of a block after its first mark.
local function read_block(next_line, block)
  local part, parts, dividers = {}, {}, 0
  for line, whole in next_line do
    if is_mark(line, "=", "") then
      dividers, parts[#parts + 1], part = dividers + 1, part, {}
    elseif is_mark(line, ">", "REPLACE", "UPDATED") then
      parts[#parts + 1] = part
      if dividers == 1 then
        block.old, block.new = table.concat(parts[1]), table.concat(parts[2])
        return block
      end
      return fail("invalid_patch", "the block in line %d has %d lines of =======, not one; replace_in_file takes any text", block.line,
        dividers)
    elseif begins(line) then
      break
    else
      -- Some models begin with hints about the line.
      local is_hint = line:find("^:start_line:") or line:find("^:end_line:") or line == "-------"
      if dividers > 0 or part[1] or not is_hint then part[#part + 1] = whole end
    end
  end
  return fail("invalid_patch", "the block in line %d has no end: >>>>>>> REPLACE", block.line)
end

---Reads the blocks of a text.
---@param bytes string
---@return sba.block[]? blocks nil without failure: the text has none
---@return native.failure?
function blocks.parse(bytes)
  if not bytes:find("<<<<< ", 1, true) then return nil end
  local found, number, over, state, at = {}, 0, lines(bytes)
  local name, above -- above: the name in the line right above, not counting code fences
  local function next_line()
    local line, is_whole
    at, line, is_whole = over(state, at)
    if not at then return nil end
    number = number + 1
    return text.trim_end(line, "\r"), line .. (is_whole and "\n" or "")
  end
  for line in next_line do
    if begins(line) then
      name = above or name
      if not name then return fail("invalid_patch", "line %d begins a block, and no line above it names the file", number) end
      local block, failure = read_block(next_line, { path = name, line = number })
      if not block then return nil, failure end
      found[#found + 1], above = block, nil
      if #found > MOST_BLOCKS then return fail("too_large", "there are more than %d blocks", MOST_BLOCKS) end
    elseif not line:find("^```") then
      above = name_in(line)
      if above and (not name or above:find("[./]")) then name = above end
    end
  end
  return #found > 0 and found or nil
end

--- The content of a file after a block.
local function changed(before, block, path)
  if block.old == block.new then return fail("invalid_patch", "SEARCH and REPLACE are the same: nothing would change") end
  local is_empty = not block.old:find("%S")
  if is_empty and (not before or before.bytes == "") then return block.new, {} end
  if is_empty then return fail("already_exists", "the file is there, and SEARCH is empty: give the text to replace") end
  local wanted = { old_text = block.old, new_text = block.new, expected_count = 1, whole_lines = true }
  local content, more = replace.apply(before.bytes, path, wanted)
  if content then return content, more end
  more.message = more.message:gsub("old_text", "SEARCH"):gsub("new_text", "REPLACE")
  return nil, more
end

local function merge(entry, block, tolerated)
  entry.hunks = entry.hunks + 1
  entry.added, entry.removed = entry.added + text.count_lines(block.new), entry.removed + text.count_lines(block.old)
  for name, is in pairs(tolerated) do entry.names[name] = entry.names[name] or is end
end

--- Applies one block to an overlay.
local function apply_one(block, files, by_path, entries)
  local path, failure = files:path(block.path)
  if not path then return nil, failure end
  local before
  before, failure = files:get(path)
  if not before and failure.code ~= "not_found" then return nil, failure end
  if not before and block.old:find("%S") then return nil, failure end
  if before and before.kind ~= "file" then return fail("patch_mismatch", "it is a symbolic link") end
  local content, tolerated = changed(before, block, path)
  if not content then return nil, tolerated end
  local entry = by_path[path]
  if not entry then
    entry = {
      path = path, action = before and "modified" or "created", hunks = 0, added = 0, removed = 0, offset = 0, fuzz = 0, names = {},
    }
    by_path[path], entries[#entries + 1] = entry, entry
  end
  merge(entry, block, tolerated)
  local put = { kind = "file", bytes = content, mode = before and before.mode }
  if before then return files:put(path, put) end
  return files:create(path, put)
end

---Applies blocks to an overlay.
---@param list sba.block[]
---@param files table the overlay
---@return table[]? entries as apply has them
---@return native.failure|string[] tolerated of the whole text; or the failure
function blocks.apply(list, files)
  local entries, by_path = {}, {}
  for number, block in ipairs(list) do
    local good, failure = apply_one(block, files, by_path, entries)
    if not good then
      return fail(failure.code, "%s: block %d of %d (line %d): %s", block.path, number, #list, block.line, failure.message)
    end
  end
  for _, entry in ipairs(entries) do
    local names = replace.names(entry.names)
    entry.names, entry.tolerated = nil, #names > 0 and names or nil
  end
  return entries, { "search_replace" }
end

return blocks
