-- SPDX-License-Identifier: Apache-2.0
-- Base64 in texts for models, which cannot read it: a line says how much there was.

local lpeg = require "lpeg"

local base64 = {}

local LEAST <const> = 256 -- characters; shorter words may be names or keys
local LEAST_LINES <const> = 4 -- of 64 or 76 characters, as base64 is broken into lines

---How many bytes a base64 text encodes. Line breaks in it may be escaped, as in JSON.
---@param text string
---@return integer
function base64.size(text)
  return #text:gsub("\\[rn]", ""):gsub("[^%w+/_-]", "") * 3 // 4
end

local letter <const> = lpeg.R("AZ", "az", "09") + lpeg.S "+/_-" + "\\/"
local line_break <const> = lpeg.P "\r\n" + "\n" + "\\r\\n" + "\\n"

local function line(length)
  return #letter ^ length * letter ^ -length * -letter * line_break
end

--- What could be base64 but has no digits, or letters of one case only, is something else, and stays as it is.
local function name(run)
  local is_base64 = run:find "%d" and run:find "%u" and run:find "%l"
  return is_base64 and ("[base64, %d bytes]"):format(base64.size(run)) or run
end

local whole -- made when it is first needed: that takes milliseconds

local function grammar()
  local lines = line(64) ^ LEAST_LINES + line(76) ^ LEAST_LINES
  local run = (letter ^ LEAST + lines * letter ^ 0) * lpeg.P "=" ^ -2
  return lpeg.Cs((run / name + letter ^ 1 + (1 - letter)) ^ 0)
end

---A text with its base64 named instead of shown.
---@param words string
---@return string
function base64.named(words)
  if #words < LEAST then return words end
  whole = whole or grammar()
  return lpeg.match(whole, words)
end

return base64
