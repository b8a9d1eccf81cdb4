-- SPDX-License-Identifier: Apache-2.0
-- For fuzz_json.c: json.decode accepts what the grammar of RFC 8259 accepts, and writes it so that it is read the same
-- again.

local json = require "sba.util.json"
local lpeg = require "lpeg"

local P, R = lpeg.P, lpeg.R
local S, V = lpeg.S, lpeg.V
local ws, digit, hex = S " \t\n\r" ^ 0, R "09", R("09", "af", "AF")
local half = "\\u" * S "dD"
local pair = half * S "89abAB" * hex * hex * half * R("cf", "CF") * hex * hex
local single = "\\u" * (hex - S "dD") * hex * hex * hex + half * R "07" * hex * hex
local function list(open, item, close) return open * ws * (item * ("," * ws * item) ^ 0) ^ -1 * close end

lpeg.setmaxstack(1000)
local grammar = P {
  ws * V "value" * -1,
  value = (V "string" + list("{", V "string" * ws * ":" * ws * V "value", "}") + list("[", V "value", "]") + V "number"
    + "true" + "false" + "null") * ws,
  string = '"' * (R(" !", "#[", "]\255") + "\\" * S '"\\/bfnrt' + pair + single) ^ 0 * '"',
  number = P "-" ^ -1 * ("0" + R "19" * digit ^ 0) * ("." * digit ^ 1) ^ -1 * (S "eE" * S "+-" ^ -1 * digit ^ 1) ^ -1,
}

-- What the grammar does not say: the decoder's own limits.
local function is_limit(failure)
  local message = failure.message
  return failure.code ~= "invalid_json" or message:find "is there twice$" or message:find "is too large$"
end

return function(bytes)
  local value, failure = json.decode(bytes)
  if failure then
    assert(value == nil and failure.offset <= #bytes and failure.line >= 1 and failure.column >= 1, failure.message)
    assert(not failure.message:find "%c" and #failure.message < 2000 and utf8.len(failure.message), "message")
    local ok, matched = pcall(lpeg.match, grammar, bytes)
    assert(is_limit(failure) or not ok or not matched or not utf8.len(bytes), failure.message)
    return
  end
  assert(lpeg.match(grammar, bytes), "accepted, but not JSON")
  local written = json.encode(value)
  local again, mistake = json.decode(written)
  assert(not mistake, mistake and mistake.message)
  assert(json.encode(again) == written, "written differently")
end
