-- SPDX-License-Identifier: Apache-2.0
-- The grammar of RFC 8259, rule by rule, as LPeg reads it: what a job file must be before anything is made of it. It says
-- only whether; json.decode, which reads the same language by hand, says what is wrong and where, and looks after what a
-- grammar cannot: UTF-8, duplicate names, depth.

local lpeg = require "lpeg"

local DEEPEST <const> = 1000 -- entries of LPeg's stack; 64 levels take about 200

local function build()
  local P, R, S, V = lpeg.P, lpeg.R, lpeg.S, lpeg.V
  local digit, hex = R "09", R("09", "af", "AF")
  local four = hex * hex * hex * hex
  local pair = S "dD" * S "89abAB" * hex * hex * "\\u" * S "dD" * R("cf", "CF") * hex * hex
  local escape = "\\" * (S '"\\/bfnrt' + "u" * (pair + (four - S "dD" * R("89", "af", "AF"))))
  lpeg.setmaxstack(DEEPEST)
  return P {
    V "ws" * V "value" * V "ws" * -P(1),
    ws = S " \t\n\r" ^ 0,
    value = V "string" + V "object" + V "array" + V "number" + "true" + "false" + "null",
    object = "{" * V "ws" * (V "member" * (V "separator" * V "member") ^ 0) ^ -1 * V "ws" * "}",
    member = V "string" * V "ws" * ":" * V "ws" * V "value",
    array = "[" * V "ws" * (V "value" * (V "separator" * V "value") ^ 0) ^ -1 * V "ws" * "]",
    separator = V "ws" * "," * V "ws",
    number = P "-" ^ -1 * ("0" + R "19" * digit ^ 0) * ("." * digit ^ 1) ^ -1 * (S "eE" * S "+-" ^ -1 * digit ^ 1) ^ -1,
    string = '"' * (R(" !", "#[", "]\255") ^ 1 + escape) ^ 0 * '"',
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
