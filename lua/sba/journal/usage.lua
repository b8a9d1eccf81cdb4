-- SPDX-License-Identifier: Apache-2.0
-- What requests to models used, as the result's `inference` has it.

local usage = {}

local COUNTED <const> = { "prompt_tokens", "completion_tokens", "duration_ms" }

---@class journal.usage
---@field model string
---@field requests integer
---@field prompt_tokens integer
---@field completion_tokens integer
---@field duration_ms integer

---Counts a request.
---@param all? journal.usage
---@param model string
---@param used { prompt_tokens?: integer, completion_tokens?: integer, duration_ms?: integer }
---@return journal.usage all
function usage.add(all, model, used)
  all = all or { model = model, requests = 0 }
  all.requests = all.requests + 1
  for _, name in ipairs(COUNTED) do all[name] = (all[name] or 0) + (used[name] or 0) end
  return all
end

---@param one? journal.usage
---@param other? journal.usage
---@return journal.usage?
function usage.sum(one, other)
  if not one or not other then return one or other end
  local all = { model = one.model, requests = one.requests + other.requests }
  for _, name in ipairs(COUNTED) do all[name] = one[name] + other[name] end
  return all
end

return usage
