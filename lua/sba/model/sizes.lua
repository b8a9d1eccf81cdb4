-- SPDX-License-Identifier: Apache-2.0
-- Sizes in the words of a server that refused a request as too long: the window, and what it counted.

local lpeg = require "lpeg"
local said_of = require "sba.model.said"
local text = require "native.text"

local sizes = {}

---@class model.sizes tokens
---@field window? integer
---@field prompt? integer
---@field excess? integer by which the prompt is too long
---@field is_of_reply? boolean the words may be about the reply's length
---@field is_a_guess? boolean nothing was said of a size

---Numbers that stand alone: not of a model's name, not a part of another.
---@param said string
---@return { value: integer, first: integer, last: integer }[]
function sizes.numbers(said)
  local found, at = {}, 1
  while true do
    local first, last = said:find("%d[%d,_]*", at)
    if not first then return found end
    local value = math.tointeger(tonumber((said:sub(first, last):gsub("[,_]", ""))))
    local before, after = said:sub(first - 1, first - 1), said:sub(last + 1, last + 2)
    if value and not before:find "[%w_.-]" and not after:find "^[%w_-]" and not after:find "^%.%d" then
      found[#found + 1] = { value = value, first = first, last = last }
    end
    at = last + 1
  end
end

local LIMIT_WORDS <const> = {
  "maximum", "max ", "limit", "window", "context length", "context size", "allowed", "at most",
  "range", "should be", "must be",
}
local COUNT_WORDS <const> = { "input", "prompt", "contain", "request", "has ", "messages", "given", "resulted" }
local OF_REPLY <const> = { "max_tokens", "max_completion_tokens", "max_new_tokens", "completion", "output tokens" }
local OF_PROMPT <const> = { "prompt", "input", "message", "conversation" }

-- What stands behind a number, perhaps after "tokens".
local P, R, S = lpeg.P, lpeg.R, lpeg.S
local blank <const> = P " " ^ 0
local unit <const> = blank * R "az" ^ 0 * blank
local limit <const> = P "max" + "limit"
local before_operator <const>, before_limit <const> = unit * S "+>", blank * limit + unit * limit

-- The text around a number, from the number before it and up to the next.
local function around(words, numbers, i)
  local from = numbers[i - 1] and numbers[i - 1].last + 1 or 1
  local to = numbers[i + 1] and numbers[i + 1].first - 1 or #words
  return words:sub(from, numbers[i].first - 1), words:sub(numbers[i].last + 1, to)
end

local OPERATORS <const> = { ["<"] = true, [">"] = true, ["="] = true }

-- What a number is: "window", "prompt", "excess", or nothing.
local function kind_of(before, after)
  if before:sub(-1) == "<" and after:sub(1, 1) == ">" then return nil end -- <400> is a status
  if before:sub(-3) == "by " then return "excess" end
  if OPERATORS[text.trim_end(before):sub(-1)] then return "window" end
  if lpeg.match(before_operator, after) then return "prompt" end
  if said_of.has(before, table.unpack(LIMIT_WORDS)) then return "window" end
  if said_of.has(before, table.unpack(COUNT_WORDS)) then return "prompt" end
  if lpeg.match(before_limit, after) then return "window" end
  return after:sub(1, 16) == " in the messages" and "prompt" or nil
end

local LEAST <const>, MOST <const> = 256, 16 -- tokens: lesser numbers count other things; numbers that are looked at

local function is_asked(numbers, one, most)
  if one.value == most then return true end
  for _, other in ipairs(numbers) do
    if most > 0 and other.value + most == one.value then return true end
  end
  return false
end

---What was asked for the reply, and a sum with it, are no sizes; nor is a lone number in brackets: it may be a code.
---@param words string in lower case
---@param asked? integer tokens for the reply
---@return model.sizes
function sizes.of(words, asked)
  local numbers, found, in_brackets = {}, {}, false
  local most = asked or 0
  for _, one in ipairs(sizes.numbers(words)) do
    if one.value >= LEAST and #numbers < MOST then numbers[#numbers + 1] = one end
  end
  for i, one in ipairs(numbers) do
    local before, after = around(words, numbers, i)
    local kind = kind_of(before, after)
    if kind == "prompt" and is_asked(numbers, one, most) then kind = nil end
    if kind and not found[kind] then
      found[kind] = one.value
      if kind == "window" then in_brackets = before:sub(-1) == "(" and after:sub(1, 1) == ")" end
    end
  end
  if in_brackets and not found.prompt then found.window = nil end
  found.is_of_reply = said_of.has(words, table.unpack(OF_REPLY)) or not said_of.has(words, table.unpack(OF_PROMPT))
  return found
end

return sizes
