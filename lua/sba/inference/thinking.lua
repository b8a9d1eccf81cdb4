-- SPDX-License-Identifier: Apache-2.0
-- Keeps a model's thinking apart from what it says, where a server leaves both in one text: <think>...</think> at its beginning,
-- or no more than the </think> where the template itself opened it.

local lpeg = require "lpeg"
local text = require "native.text"

local blank <const>, letter <const> = lpeg.S " \t\n\v\f\r" ^ 0, lpeg.R("az", "AZ")
local opening <const>, closing <const> = "<think" * letter ^ 0 * ">", "</think" * letter ^ 0 * ">" * blank
local marked <const> = blank * opening * lpeg.C((1 - closing) ^ 0) * (closing + -1)
local unmarked <const> = lpeg.C((1 - (closing + "<think")) ^ 0) * closing -- the template itself opened it
local thinking_first <const> = (marked + unmarked) * lpeg.C(lpeg.P(1) ^ 0)

---@param whole string the content of a reply
---@return string content what was said
---@return string thought marks and the blanks around them left out
return function(whole)
  local thought, content = lpeg.match(thinking_first, whole)
  if not thought then return whole, "" end
  return content, text.trim(thought)
end
