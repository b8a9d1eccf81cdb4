-- SPDX-License-Identifier: Apache-2.0
-- Foreign text made fit for a terminal: what could move the cursor, change colours or the direction
-- of writing is named instead.

local secret = require "native.secret"
local text = require "native.text"

local printable = {}

-- Code points that act: C0 and C1 controls, zero widths, line separators and directions of writing,
-- the byte order mark, and tags.
local ACTING <const> = {
  { 0, 0x1f }, { 0x7f, 0x9f }, { 0x61c, 0x61c }, { 0x200b, 0x200f }, { 0x2028, 0x202e },
  { 0x2060, 0x206f }, { 0xfeff, 0xfeff }, { 0xe0000, 0xe007f },
}

local function acts(code)
  for _, range in ipairs(ACTING) do
    if code <= range[2] then return code >= range[1] end -- they are in order
  end
  return false
end

---Line ends and tabs stay.
---@param utf8_text string
---@param form string of a name, for string.format: "<%s>"
---@return string
function printable.replace(utf8_text, form)
  local function named(character)
    local code = utf8.codepoint(character)
    local name = code < 0x100 and "\\x%02x" or "\\u{%x}"
    return acts(code) and form:format(name:format(code))
  end
  -- ASCII that acts, then all else: most text is plain, and calls nothing.
  return (utf8_text:gsub("[\0-\8\11-\31\127]", named):gsub("[\xc2-\xf4][\x80-\xbf]+", named))
end

---@param line string UTF-8
---@param limit integer bytes, before "..."
---@return string
function printable.cut(line, limit)
  return #line > limit and text.cut(line, limit) .. "..." or line
end

---@param bytes string
---@param limit? integer bytes, before "..."
---@return string one line of UTF-8 without secrets
function printable.line(bytes, limit)
  local one = text.repair(secret.redact(bytes)):gsub("[\r\n\t]+", " ")
  local line = printable.replace(one, "%s")
  return printable.cut(line, limit or #line)
end

local escapes = { ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ['"'] = '\\"', ["\\"] = "\\\\" }

---@param bytes string
---@param limit integer bytes
---@return string as Lua's source has it, but for UTF-8
function printable.quoted(bytes, limit)
  local kept = text.cut(bytes, limit)
  local more = #bytes > #kept and (" ... %d bytes more"):format(#bytes - #kept) or ""
  return '"' .. printable.replace(text.repair(kept):gsub('[\n\r\t"\\]', escapes), "%s") .. '"' .. more
end

return printable
