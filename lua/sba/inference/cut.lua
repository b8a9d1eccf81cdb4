-- SPDX-License-Identifier: Apache-2.0
-- Finds out whether a server cut a prompt without saying so. Bytes say little about tokens: prose has 4 bytes a token, Hindi, Tamil and
-- box drawing up to 25. So a cut is a count that falls although messages were only added. Two counts that look like one are not:
-- zero, which means unknown, and one far below the window, for a server that cuts leaves about half of it at least. Older versions
-- of Ollama do not count what they had in their cache.

local cut = {}
cut.__index = cut

local LEAST_SHARE <const> = 0.4 -- of its window that a server leaves of a prompt
local LEAST_WINDOW <const> = 2048 -- tokens; what is smaller cannot hold a job
local HALF_SLACK <const> = 2 -- tokens
local HALF_BYTES_A_TOKEN <const> = 3.75 -- text that has more of them may have been twice as long

function cut.new()
  return setmetatable({ sent = {}, largest = 0 }, cut)
end

local function size_of(message)
  local size = #(message.content or "") + #(message.thinking or "")
  for _, call in ipairs(message.tool_calls or {}) do size = size + (call.size or 0) end
  return size
end

--- Bytes of all messages, and of those after the ones of the request before; nil where one of them is no longer there.
local function measure(messages, sent)
  local total, new, is_longer = 0, 0, #messages >= #sent
  for i, message in ipairs(messages) do
    local size = size_of(message)
    total = total + size
    if not sent[i] then new = new + size else is_longer = is_longer and sent[i] == message end
  end
  return total, is_longer and new or nil
end

--- Half of a window, and two tokens, is what Ollama leaves of a prompt that cannot be shortened by whole messages.
local function is_half(window, count, total)
  return math.abs(count - (window // 2 + 2)) <= HALF_SLACK and total > HALF_BYTES_A_TOKEN * count
end

--- Whether a count may be that of the new messages alone.
local function is_uncached(self, count, new)
  local expected = new / self.bytes_a_token
  return math.abs(count - expected) <= count / 3
end

local function has_fallen(self, floor, count, new)
  if not new or not self.count or count >= self.count or count < LEAST_SHARE * floor or floor < LEAST_WINDOW then
    return false
  end
  return not is_uncached(self, count, new)
end

---Judges a reply's count of prompt tokens. Remembers the request.
---@param messages inference.message[] as the caller gave them
---@param window? integer tokens that the model has; nil: not known
---@param count? integer tokens of the prompt, as the server counted
---@return integer? largest count of this session, where this prompt was cut: the window has at least as many tokens
function cut:judge(messages, window, count)
  if not count or count == 0 then return nil end
  local total, new = measure(messages, self.sent)
  local is_cut = window and is_half(window, count, total) or has_fallen(self, window or self.largest, count, new)
  self.sent, self.count = table.move(messages, 1, #messages, 1, {}), count
  self.bytes_a_token = self.bytes_a_token or math.max(1, total) / count
  self.largest = math.max(self.largest, count)
  return is_cut and self.largest or nil
end

return cut
