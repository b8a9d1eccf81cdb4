-- SPDX-License-Identifier: Apache-2.0
-- Source text of the prompt to a chunk. An expression is a chunk that returns its values.

local chunk = {}

local function wants_more(message)
  return message:sub(-5) == "<eof>"
end

---@param source string one line or more
---@param globals? table what it finds as its globals; default: _G
---@return function? made, string? message why not, boolean? unfinished more lines could make it whole
function chunk.compile(source, globals)
  source = source .. "\n" -- or a string that lacks its end quote could go on
  local marked, expression = source:match("^%s*(=?)(.*)$")
  globals = globals or _G
  local made, message = load("return " .. expression, "=stdin", "t", globals)
  if made then return made end
  local unfinished = wants_more(message)
  if marked == "=" then return nil, message, unfinished end
  made, message = load(source, "=stdin", "t", globals)
  if made then return made end
  return nil, message, unfinished or wants_more(message)
end

return chunk
