-- SPDX-License-Identifier: Apache-2.0
-- Describes an HTML page that came instead of an answer: a proxy or gateway in between mostly sends one.

local printable = require "sba.util.printable"
local text = require "native.text"

local LONGEST_TITLE <const> = 80 -- bytes

---@param body string
---@return string? words "an HTML page (502 Bad Gateway)"; nil where it is none
return function(body)
  if not body:find "^%s*<" then return nil end
  local title = body:sub(1, 4096):match "<[Tt][Ii][Tt][Ll][Ee]>%s*([^<]-)%s*</" -- bounded: 4096 bytes
  if not title or title == "" then return "an HTML page" end
  return ("an HTML page (%s)"):format(text.cut(printable.line(title), LONGEST_TITLE))
end
