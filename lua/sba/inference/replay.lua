-- SPDX-License-Identifier: Apache-2.0
-- A session without a server: it gives back what was recorded, in order, waits included none.

local replay = {}
replay.__index = replay

---@class inference.recording
---@field model string
---@field context_length integer
---@field supports_tools? boolean
---@field exchanges { reply: inference.reply?, failure: inference.failure?, context_length: integer? }[] with what was left of the window

---Asks the recording. Once it is at its end: replay_ended.
---@param request inference.request
---@return inference.reply?, inference.failure?
function replay:chat(request)
  self.number = self.number + 1
  local exchange = self.exchanges[self.number]
  if not exchange then
    return nil, {
      code = "replay_ended", cause = "replay_ended", passing = false,
      message = ("the recording ends after %d replies, and another is wanted"):format(#self.exchanges),
    }
  end
  self.context_length = exchange.context_length or self.context_length
  if exchange.reply and request.on_text and exchange.reply.content ~= "" then request.on_text(exchange.reply.content) end
  return exchange.reply, exchange.failure
end

---@param record inference.recording
---@return inference.session
return function(record)
  return setmetatable({
    model = record.model, context_length = record.context_length, supports_tools = record.supports_tools,
    exchanges = record.exchanges, place = "the recording", number = 0,
  }, replay)
end
