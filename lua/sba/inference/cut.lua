-- SPDX-License-Identifier: Apache-2.0
-- Finds out whether a server cut the prompt in silence, by holding its count of tokens against the bytes that were sent. Ollama says
-- nothing when it drops messages or keeps no more than half of its window; older versions do not count what they had in their cache.

local cut = {}
cut.__index = cut

local MOST_BYTES_A_TOKEN <const> = 8 -- of text whose runs of blanks and rules count once; code has 3, prose 4 to 5
local HALF_SLACK <const> = 2 -- tokens
local TYPICAL <const> = 2.5 -- bytes a token where nothing is known yet; twice that means that half was dropped

function cut.new()
  return setmetatable({ contents = {} }, cut)
end

local function size_of(message)
  local size = #(message.content or "") + #(message.thinking or "")
  for _, call in ipairs(message.tool_calls or {}) do size = size + (call.size or 0) end
  return size
end

--- Bytes of all messages, and of those that are not as in the request before.
local function measure(self, messages)
  local total, new, same = 0, 0, true
  for i, message in ipairs(messages) do
    local size = size_of(message)
    same = same and self.contents[i] == message.content
    total = total + size
    if not same then new = new + size end
  end
  return total, new
end

local function remember(self, messages)
  for i, message in ipairs(messages) do self.contents[i] = message.content end
  for i = #messages + 1, #self.contents do self.contents[i] = nil end
end

--- Bytes without what makes few tokens of many: runs of blanks, of signs.
local function dense(messages)
  local size = 0
  for _, message in ipairs(messages) do size = size + #(message.content or ""):gsub("%s+", " "):gsub("%p%p%p+", "...") end
  return size
end

--- Half of a window is what Ollama leaves of a prompt that cannot be shortened by whole messages.
local function is_half(self, window, count, total)
  return math.abs(count - (window // 2 + 2)) <= HALF_SLACK and total > 1.5 * (self.bytes_a_token or TYPICAL) * count
end

local function is_far_below(self, messages, count, total, new)
  if count * MOST_BYTES_A_TOKEN >= total or count * MOST_BYTES_A_TOKEN >= dense(messages) then
    self.counts_cached = self.counts_cached or new < total // 2
    return false
  end
  return self.counts_cached or total == new or count * MOST_BYTES_A_TOKEN < new
end

---Judges a reply's count of prompt tokens. Remembers the request.
---@param messages inference.message[] as sent
---@param window integer tokens that the model is to have
---@param count? integer tokens of the prompt, as the server counted
---@return boolean whether the prompt was cut
function cut:judge(messages, window, count)
  local total, new = measure(self, messages)
  remember(self, messages)
  if not count then return false end
  if is_half(self, window, count, total) or is_far_below(self, messages, count, total, new) then return true end
  if new == total or self.counts_cached then self.bytes_a_token = total / count end
  return false
end

return cut
