-- SPDX-License-Identifier: Apache-2.0
-- What models wrap around what was asked for: code fences and <tool_call> marks. The last one may lack its end.

local lpeg = require "lpeg"

local fence = {}

local P, C, Ct = lpeg.P, lpeg.C, lpeg.Ct
local blank <const> = lpeg.S " \t\n\v\f\r" ^ 0
local mark <const> = P "```"
local language <const> = (1 - (mark + "\n")) ^ 0 * "\n" + (lpeg.R("az", "AZ", "09") + lpeg.S "_-") ^ 0

local function up_to(ending) return C((1 - ending) ^ 0) * (ending + -1) end

local block <const> = mark * language * up_to(mark)
local blocks <const> = Ct(((1 - mark) ^ 0 * block) ^ 0)
local only_block <const> = blank * block * blank * -1
local opening <const> = P "<tool_call>"
local marked <const> = Ct(((1 - opening) ^ 0 * opening * up_to(P "</tool_call>")) ^ 0)

---What stands in code fences.
---@param content string
---@return string[]
function fence.code(content)
  return lpeg.match(blocks, content)
end

---What stands between <tool_call> marks.
---@param content string
---@return string[]
function fence.marked(content)
  return lpeg.match(marked, content)
end

---What stands in the only code fence of a text that holds nothing else; otherwise the text itself.
---@param content string
---@return string
function fence.inside(content)
  return lpeg.match(only_block, content) or content
end

return fence
