-- SPDX-License-Identifier: Apache-2.0
-- What models wrap around what was asked for: code fences and <tool_call> marks. Plain searches only, for a model's text may be
-- megabytes of anything, and patterns would take their time with it.

local fence = {}

local FENCE <const> = "```"

---The parts between an opening and a closing mark; the last one may lack its end.
---@param content string
---@param opening string
---@param closing string
---@return string[] parts, integer past where the last one ends
function fence.between(content, opening, closing)
  local parts, from = {}, 1
  while true do
    local _, begin = content:find(opening, from, true)
    if not begin then return parts, from end
    local stop, last = content:find(closing, begin + 1, true)
    parts[#parts + 1] = content:sub(begin + 1, (stop or #content + 1) - 1)
    from = (last or #content) + 1
  end
end

--- The first line names the language.
local function without_language(part)
  local line_end = part:find("\n", 1, true)
  return line_end and part:sub(line_end + 1) or (part:gsub("^[%w_-]+", ""))
end

---What stands in code fences.
---@param content string
---@return string[] parts, integer past
function fence.code(content)
  local parts, past = fence.between(content, FENCE, FENCE)
  for i, part in ipairs(parts) do parts[i] = without_language(part) end
  return parts, past
end

---What stands in a text's only code fence, where nothing stands outside of it; else the text itself.
---@param content string
---@return string
function fence.inside(content)
  local first = content:find("%S")
  if not first or content:sub(first, first + #FENCE - 1) ~= FENCE then return content end
  local parts, past = fence.code(content)
  if #parts ~= 1 or content:find("%S", past) then return content end
  return parts[1]
end

---A text without the blanks around it.
---@param content string
---@return string
function fence.trim(content)
  local first = content:find("%S")
  return first and content:match("^.*%S", first) or ""
end

return fence
