-- SPDX-License-Identifier: Apache-2.0
-- Server-sent events, read one by one.

local sse = {}

---@class sse.event
---@field data string empty if an event only sets other fields
---@field name? string
---@field id? string
---@field retry? integer milliseconds
---@field error? string in which some servers of models tell of a failure
---@field is_cut? boolean the stream ended before the event's blank line

--- Adds a line of the stream to the event. Comments and unknown fields are ignored.
local function take(event, data, line)
  local field, value = line:match("^([^:]*):? ?(.*)$")
  if field == "data" then
    data[#data + 1] = value
  elseif field == "event" then
    event.name = value
  elseif field == "error" then
    event.error = value
  elseif field == "id" and not value:find("\0", 1, true) then
    event.id = value
  elseif field == "retry" and value:find("^%d+$") then
    event.retry = math.tointeger(tonumber(value))
  end
end

---Reads events one by one: the event, nil at the end of the stream, or nil and the failure.
---@param next_line fun(): string?, boolean|table? the line, and whether it had its end; nil at the end; or nil and a failure
---@return fun(): sse.event?, table?
function sse.reader(next_line)
  local first = true
  return function()
    local event, data = {}, {}
    while true do
      local line, ended = next_line()
      if not line and ended then return nil, ended end
      if first and line then
        first, line = false, line:gsub("^\xEF\xBB\xBF", "")
      end
      if line and line ~= "" then take(event, data, line) end
      local is_cut = not line or not ended
      if (is_cut or line == "") and (data[1] or event.id or event.retry or event.error) then
        event.data, event.is_cut = table.concat(data, "\n"), is_cut
        return event
      end
      if is_cut then return nil end
    end
  end
end

return sse
