-- SPDX-License-Identifier: Apache-2.0
-- The grammar of RFC 8259, rule by rule, as LPeg reads it: what a job file must be before anything is made of it. It says
-- only whether; json.decode, which reads the same language by hand, says what is wrong and where, and looks after what the
-- grammar does not: UTF-8, halves of surrogate pairs, duplicate names, depth.

local lpeg = require "lpeg"

local DEEPEST <const> = 1000 -- entries of LPeg's stack; 64 levels take about 200

-- Every start builds it, so it has as few rules as it can, and white space goes with what it follows.
local function build()
  local P, R, S, V = lpeg.P, lpeg.R, lpeg.S, lpeg.V
  local ws, digit, hex = S " \t\n\r" ^ 0, R "09", R("09", "af", "AF")
  local comma, value, member = "," * ws, V "value", V "member"
  local number = P "-" ^ -1 * ("0" + R "19" * digit ^ 0) * ("." * digit ^ 1) ^ -1 * (S "eE" * S "+-" ^ -1 * digit ^ 1) ^ -1
  local object = "{" * ws * (member * (comma * member) ^ 0) ^ -1 * "}"
  local array = "[" * ws * (value * (comma * value) ^ 0) ^ -1 * "]"
  lpeg.setmaxstack(DEEPEST)
  return P {
    ws * value * -1,
    value = (V "string" + object + array + number + "true" + "false" + "null") * ws,
    member = V "string" * ws * ":" * ws * value,
    string = '"' * (R(" !", "#[", "]\255") ^ 1 + "\\" * (S '"\\/bfnrt' + "u" * hex * hex * hex * hex)) ^ 0 * '"',
  }
end

local grammar

---Whether a text is of the grammar.
---@param bytes string
---@return boolean
return function(bytes)
  grammar = grammar or build()
  local ok, last = pcall(lpeg.match, grammar, bytes)
  return ok and last ~= nil
end
