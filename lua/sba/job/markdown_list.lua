-- SPDX-License-Identifier: Apache-2.0
-- Reads a Markdown text as a list of entries: each item of a list with the lines and paragraphs
-- that belong to it, and each paragraph that belongs to none. Headings and rules only separate.

local lines = require "sba.util.excerpt".lines
local text = require "native.text"

local markdown_list = {}

---@class markdown_list.entry
---@field parts string[] joined at the end: a text may have a line a thousand times
---@field is_item boolean
---@field is_line? boolean a paragraph of one line, so far

---@class markdown_list.reader
---@field entries markdown_list.entry[]
---@field open? markdown_list.entry to which the next line may belong
---@field is_after_blank? boolean
---@field fence? string what ends the block of code: "```"

local function item_of(words) return words:match "^[-*+]%s+(%S.*)$" or words:match "^%d+[.)]%s+(%S.*)$" end

-- "#123 is mended" is none.
local function is_heading(words) return words:find "^#+%s" or words:find "^#+$" end

local function is_rule(words) return words:find "^[-=*_][-=*_%s]+$" end

local function add(self, words, is_item)
  self.open = { parts = { words }, is_item = is_item, is_line = not is_item }
  table.insert(self.entries, self.open)
end

local function append(self, words, separator)
  table.move({ separator, words }, 1, 2, #self.open.parts + 1, self.open.parts)
  self.open.is_line = false
end

-- An item's own: the next line, or what is indented below it. A paragraph's: the next line.
local function belongs(self, line)
  if not self.open then return false end
  if not self.is_after_blank then return true end
  return self.open.is_item and line:find("^[ \t]") ~= nil
end

local function take_text(self, line, words)
  if belongs(self, line) then return append(self, words, self.is_after_blank and "\n" or " ") end
  add(self, words, false)
end

-- A line of it right below a paragraph of one line makes that a heading.
local function take_rule(self)
  if self.open and self.open.is_line and not self.is_after_blank then table.remove(self.entries) end
  self.open = nil
end

local function take_code(self, line, words)
  if self.fence and self.open then append(self, line, "\n") end
  if not self.fence then
    if belongs(self, line) then append(self, words, "\n") else add(self, words, false) end
    self.fence = words:match "^```" or "~~~"
  elseif words == self.fence then
    self.fence = nil
  end
end

local function take(self, line)
  local words = text.trim(line)
  local item = item_of(words)
  if self.fence or words:find "^```" or words:find "^~~~" then
    take_code(self, line, words)
  elseif words == "" then
    self.is_after_blank = true
    return
  elseif is_rule(words) then
    take_rule(self)
  elseif is_heading(words) then
    self.open = nil
  elseif item then
    add(self, item, true)
  else
    take_text(self, line, words)
  end
  self.is_after_blank = false
end

---@param markdown string
---@return string[]
function markdown_list.read(markdown)
  local self, list = { entries = {} }, {}
  for _, line in lines(markdown) do take(self, line) end
  for i, entry in ipairs(self.entries) do list[i] = table.concat(entry.parts) end
  return list
end

return markdown_list
