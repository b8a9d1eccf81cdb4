-- SPDX-License-Identifier: Apache-2.0
-- The grammar of RFC 8259, rule by rule, as LPeg reads it: what a job file must be before anything is made of it. It says
-- only whether; json.decode, which reads the same language by hand, says what is wrong and where, and looks after what a
-- grammar cannot: UTF-8, duplicate names, depth.

local lpeg = require "lpeg"

local DEEPEST <const> = 1000 -- entries of LPeg's stack; 64 levels take about 200

-- Every start builds it, so what stands more than once is made once.
local function build()
  local P, R, S, V = lpeg.P, lpeg.R, lpeg.S, lpeg.V
  local digit, hex, ws, value, text = R "09", R("09", "af", "AF"), V "ws", V "value", V "string"
  local comma, digits = ws * "," * ws, digit ^ 1
  local low, high = S "dD" * R("cf", "CF") * hex * hex, S "dD" * S "89abAB" * hex * hex
  local code = high * "\\u" * low + (hex * hex * hex * hex - S "dD" * R("89", "af", "AF"))
  local member = text * ws * ":" * ws * value
  lpeg.setmaxstack(DEEPEST)
  return P {
    ws * value * ws * -1,
    ws = S " \t\n\r" ^ 0,
    value = text + V "object" + V "array" + V "number" + "true" + "false" + "null",
    object = "{" * ws * (member * (comma * member) ^ 0) ^ -1 * ws * "}",
    array = "[" * ws * (value * (comma * value) ^ 0) ^ -1 * ws * "]",
    number = P "-" ^ -1 * ("0" + R "19" * digit ^ 0) * ("." * digits) ^ -1 * (S "eE" * S "+-" ^ -1 * digits) ^ -1,
    string = '"' * (R(" !", "#[", "]\255") ^ 1 + "\\" * (S '"\\/bfnrt' + "u" * code)) ^ 0 * '"',
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
