-- SPDX-License-Identifier: Apache-2.0
-- Sizes in the words of a server that refused a request as too long: the window, and what it
-- counted.

local has = require "sba.util.said".has
local json = require "sba.util.json"
local lpeg = require "lpeg"
local text = require "native.text"

local sizes = {}

---@class model.sizes tokens
---@field window? integer
---@field prompt? integer
---@field may_be_sum? boolean the prompt's count may have the reply that was asked for in it
---@field excess? integer by which the prompt is too long
---@field is_of_reply? boolean the words may be about the reply's length
---@field is_a_guess? boolean nothing was said of a size
---@field is_above? boolean the prompt is above a limit; set by sba.model.refusal
---@field are_refused? boolean they are why the request was refused; set by sba.model.refusal

---Numbers that stand alone: not of a model's name, not a part of another.
---@param said string
---@return { value: integer, first: integer, last: integer }[]
function sizes.numbers(said)
  local found = {}
  for first, digits, behind in said:gmatch "()(%d[%d,_]*)()" do
    local value = math.tointeger(tonumber((digits:gsub("[,_]", ""))))
    local before, after = said:sub(first - 1, first - 1), said:sub(behind, behind + 1)
    local is_part = before:find "[%w_.-]" or after:find "^[%w_-]" or after:find "^%.%d"
    if value and not is_part then found[#found + 1] = { value = value, first = first, last = behind - 1 } end
  end
  return found
end

local LIMIT_WORDS <const> = {
  "maximum", "max ", "limit", "window", "context length", "context size", "allowed", "at most",
  "range", "should be", "must be",
}
local COUNT_WORDS <const> = { "input", "prompt", "contain", "request", "has ", "messages", "given", "resulted" }
local OF_REPLY <const> = { "max_tokens", "max_completion_tokens", "max_new_tokens", "completion", "output tokens" }
local OF_PROMPT <const> = { "prompt", "input", "message", "conversation" }

-- What stands behind a number, perhaps after "tokens".
local blank = lpeg.P " " ^ 0
local unit = blank * lpeg.R "az" ^ 0 * blank
local limit = lpeg.P "max" + "limit"
local before_operator, before_limit = unit * lpeg.S "+>", blank * limit + unit * limit

---What a number counts, by the text around it: up to the number before, and up to the next. The
---first form that fits decides. Each has an example, whose first number it is.
---@type { kind: "window"|"prompt"|"excess", example: string, fits: fun(before: string, after:
---string) }[]
sizes.forms = {
  { kind = "excess", example = "exceeded by 1619 tokens",
    fits = function(before) return before:sub(-3) == "by " end },
  { kind = "window", example = "inputs must be <= 4096",
    fits = function(before) return text.trim_end(before):find "[<>=]$" end },
  { kind = "prompt", example = "190000 tokens + 20000 > 200000",
    fits = function(_, after) return lpeg.match(before_operator, after) end },
  { kind = "window", example = "maximum context length is 2048 tokens",
    fits = function(before) return has(before, LIMIT_WORDS) end },
  { kind = "prompt", example = "your request has 3500 input tokens",
    fits = function(before) return has(before, COUNT_WORDS) end },
  { kind = "window", example = "too large for a model with 7000 maximum context length",
    fits = function(_, after) return lpeg.match(before_limit, after) end },
  { kind = "prompt", example = "too long (4000 in the messages, 8000 in the completion)",
    fits = function(_, after) return after:find "^ in the messages" end },
}

local function kind_of(before, after)
  -- <400> is a status.
  if before:sub(-1) == "<" and after:sub(1, 1) == ">" then return nil end
  for _, form in ipairs(sizes.forms) do
    if form.fits(before, after) then return form.kind end
  end
end

local LEAST <const> = 256 -- tokens; lesser numbers count other things
local MOST <const> = 16 -- numbers that are looked at

---What was asked for the reply, and a sum with it, are no sizes; nor is a lone number in brackets:
---it may be a code. For example, of "maximum context length is 4096 tokens, you requested 5000 (3000
---in the messages, 2000 in the completion)" the window is 4,096 and the prompt 3,000, if 2,000 were
---asked for: 5,000 is the sum.
---@param words string in lower case
---@param asked? integer tokens for the reply
---@return model.sizes
function sizes.of(words, asked)
  local found, in_brackets = {}, false
  local numbers, values = {}, { 0 }
  for _, one in ipairs(sizes.numbers(words)) do
    if one.value >= LEAST and #numbers < MOST then numbers[#numbers + 1], values[#values + 1] = one, one.value end
  end
  local is_shown = json.contains(values, asked)
  for i, one in ipairs(numbers) do
    local last, next_one = numbers[i - 1] or { last = 0 }, numbers[i + 1] or { first = #words + 1 }
    local before = words:sub(last.last + 1, one.first - 1)
    local after = words:sub(one.last + 1, next_one.first - 1)
    local kind = kind_of(before, after)
    local is_asked = asked and json.contains(values, one.value - asked)
    if kind and not found[kind] and not (kind == "prompt" and is_asked) then
      found[kind] = one.value
      if kind == "prompt" then found.may_be_sum = not is_shown and has(before, { "requested" }) end
      if kind == "window" then in_brackets = before:sub(-1) == "(" and after:sub(1, 1) == ")" end
    end
  end
  if in_brackets and not found.prompt then found.window = nil end
  found.is_of_reply = has(words, OF_REPLY) or not has(words, OF_PROMPT)
  return found
end

return sizes
