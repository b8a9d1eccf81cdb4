-- SPDX-License-Identifier: Apache-2.0
-- Server-sent events, read one by one.

local sse = {}

---@class sse.event
---@field data string empty if an event only sets id or retry
---@field name? string
---@field id? string
---@field retry? integer milliseconds

--- Adds a line of the stream to the event. Comments and unknown fields are ignored.
local function take(event, data, line)
  local field, value = line:match("^([^:]*):? ?(.*)$")
  if field == "data" then
    data[#data + 1] = value
  elseif field == "event" then
    event.name = value
  elseif field == "id" and not value:find("\0", 1, true) then
    event.id = value
  elseif field == "retry" and value:find("^%d+$") then
    event.retry = math.tointeger(tonumber(value))
  end
end

---Reads events one by one: the event, nil at the end of the stream, or nil and the failure. An event that the end cuts off is
---dropped.
---@param exchange native.http.exchange
---@param expired fun(): native.failure? is asked at every line, comments included
---@return fun(): sse.event?, native.failure?
function sse.reader(exchange, expired)
  local first = true
  return function()
    local event, data = {}, {}
    while true do
      local line, ended = exchange:line "any"
      if not line then return nil, ended or nil end
      local failure = expired()
      if failure then return nil, failure end
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
