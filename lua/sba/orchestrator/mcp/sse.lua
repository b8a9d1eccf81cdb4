-- SPDX-License-Identifier: Apache-2.0
-- Server-sent events, as they come.

local sse = {}

---@class sse.event
---@field data string empty where an event only sets id or retry
---@field id? string
---@field retry? integer milliseconds

--- Puts a line of the stream into the event; comments and unknown fields are nothing.
local function take(event, data, line)
  local field, value = line:match("^([^:]*):? ?(.*)$")
  if field == "data" then
    data[#data + 1] = value
  elseif field == "id" and not value:find("\0", 1, true) then
    event.id = value
  elseif field == "retry" and value:find("^%d+$") then
    event.retry = math.tointeger(tonumber(value))
  end
end

---Reads events one by one: event, nil at the stream's end, or nil and the failure. An event that the end cut is none.
---@param exchange native.http.exchange
---@return fun(): sse.event?, native.failure?
function sse.reader(exchange)
  local first = true
  return function()
    local event, data = {}, {}
    while true do
      local line, ended = exchange:line "any"
      if not line then return nil, ended or nil end
      if first then
        first, line = false, line:gsub("^\xEF\xBB\xBF", "")
      end
      if not ended then return nil end
      if line ~= "" then
        take(event, data, line)
      elseif data[1] or event.id or event.retry then
        event.data = table.concat(data, "\n")
        return event
      end
    end
  end
end

return sse
