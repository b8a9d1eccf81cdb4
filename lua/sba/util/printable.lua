-- SPDX-License-Identifier: Apache-2.0
-- Foreign text made fit for a terminal: what could move the cursor, change colours or the direction of writing is named instead.

local secret = require "native.secret"
local text = require "native.text"

local printable = {}

local function acts(code)
  return code < 0x20 or (code >= 0x7f and code < 0xa0) or (code >= 0x200b and code <= 0x200f)
    or (code >= 0x2028 and code <= 0x202e) or (code >= 0x2060 and code <= 0x206f) or code == 0xfeff or code == 0x61c
    or (code >= 0xe0000 and code <= 0xe007f)
end

---Line ends and tabs stay.
---@param utf8_text string
---@param form string of a name, for string.format: "<%s>"
---@return string
function printable.replace(utf8_text, form)
  local function named(character)
    local code = utf8.codepoint(character)
    return acts(code) and form:format((code < 0x100 and "\\x%02x" or "\\u{%x}"):format(code)) or nil
  end
  -- ASCII that acts, then all else: most text is plain, and calls nothing.
  return (utf8_text:gsub("[\0-\8\11-\31\127]", named):gsub("[\xc2-\xf4][\x80-\xbf]+", named))
end

---@param bytes string
---@param limit? integer bytes, before "..."
---@return string one line of UTF-8 without secrets
function printable.line(bytes, limit)
  local one = text.repair(secret.redact(bytes)):gsub("[\r\n\t]+", " ")
  local line = printable.replace(one, "%s")
  return limit and #line > limit and text.cut(line, limit) .. "..." or line
end

local escapes = { ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ['"'] = '\\"', ["\\"] = "\\\\" }

---@param bytes string
---@param limit integer bytes
---@return string as Lua's source has it, but for UTF-8
function printable.quoted(bytes, limit)
  local kept = #bytes > limit and text.cut(bytes, limit) or bytes
  local more = #bytes > #kept and (" ... %d bytes more"):format(#bytes - #kept) or ""
  return '"' .. printable.replace(text.repair(kept):gsub('[\n\r\t"\\]', escapes), "%s") .. '"' .. more
end

return printable
