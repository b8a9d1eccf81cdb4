-- SPDX-License-Identifier: Apache-2.0
-- Base64 in texts for models, which cannot read it: a line says how much there was.

local lpeg = require "lpeg"

local base64 = {}

local LEAST <const> = 256 -- characters; shorter words may be names or keys
local LINE <const>, LEAST_LINES <const> = 64, 4 -- characters, as base64 is broken into lines of that many or more

---How many bytes a base64 text encodes. Its line breaks may be escaped, as in JSON.
---@param text string
---@return integer
function base64.size(text) return #text:gsub("\\[rn]", ""):gsub("[^%w+/_-]", "") * 3 // 4 end

--- What could be base64 but has no digits, or letters of one case only, is something else, and stays as it is.
local function name(run)
  local is_base64 = run:find "%d" and run:find "%u" and run:find "%l"
  return is_base64 and ("[base64, %d bytes]"):format(base64.size(run)) or run
end

local grammar -- made when it is first needed: that takes milliseconds

---A text with its base64 named instead of shown.
---@param words string
---@return string
function base64.named(words)
  if #words < LEAST then return words end
  local letter = lpeg.R("AZ", "az", "09") + lpeg.S "+/_-" + "\\/"
  local line = letter ^ LINE * (lpeg.P "\r\n" + "\n" + "\\r\\n" + "\\n")
  local run = (letter ^ LEAST + line ^ LEAST_LINES * letter ^ 0) * lpeg.P "=" ^ -2
  grammar = grammar or lpeg.Cs((run / name + letter ^ 1 + (1 - letter)) ^ 0)
  return lpeg.match(grammar, words)
end

return base64
