-- SPDX-License-Identifier: Apache-2.0
-- JSON of servers, gateways and models, read where one meaning is left. What json.decode takes is
-- read by it; the rest is tried once more:
--
--   a name that is there twice               the last one counts
--   half of a surrogate pair, "\ud83d"       U+FFFD
--   a byte that is not UTF-8                 U+FFFD
--   NaN, Infinity, -Infinity                 null
--   control characters in a string           taken as they are
--   a byte order mark                        skipped

local json = require "sba.util.json"
local lpeg = require "lpeg"
local text = require "native.text"

local tolerant = {}

-- As json.decode; counted by what stands before a value, where it stands in strings too.
local MOST_VALUES <const> = 1000000

local P, S, R = lpeg.P, lpeg.S, lpeg.R
local C, Cc, V = lpeg.C, lpeg.Cc, lpeg.V
local Cs, Ct = lpeg.Cs, lpeg.Ct
local blank <const> = S " \t\r\n" ^ 0
local hex <const> = R("09", "AF", "af")
local high <const> = "\\u" * S "dD" * R("89", "AB", "ab") * hex * hex
local low <const> = "\\u" * S "dD" * R("CF", "cf") * hex * hex
local control <const> = R "\0\31" / function(byte) return ("\\u%04x"):format(byte:byte()) end
local escape <const> = "\\" * (S '"\\/bfnrt' + "u" * hex * hex * hex * hex)
local character <const> = high * low + (high + low) / "\\ufffd" + escape + control + (1 - S '"\\')
local string <const> = Cs('"' * character ^ 0 * '"') / json.decode
local digits <const> = R "09" ^ 1
local exponent <const> = S "eE" * S "+-" ^ -1 * digits
local whole <const> = P "-" ^ -1 * ("0" + R "19" * R "09" ^ 0)
local number <const> = C(whole * ("." * digits) ^ -1 * exponent ^ -1) / json.decode
local nothing <const> = P "null" + "NaN" + P "-" ^ -1 * "Infinity"
local word <const> = P "true" * Cc(true) + P "false" * Cc(false) + nothing * Cc(json.null)

-- members: name and value in turn.
local function object_of(members)
  local object = {}
  for i = 1, #members, 2 do object[members[i]] = members[i + 1] end
  return object
end

local function list_of(item) return (item * (blank * "," * blank * item) ^ 0) ^ -1 * blank end

local document <const> = P "\xEF\xBB\xBF" ^ -1 * blank * P {
  "value",
  value = string + word + number + V "object" + V "array",
  object = Ct("{" * blank * list_of(string * blank * ":" * blank * V "value") * "}") / object_of,
  array = Ct("[" * blank * list_of(V "value") * "]") / json.array,
} * blank * -1

---@param bytes string of any size
---@return any value, sba.json.failure? failure what json.decode finds
---@return boolean? is_mended
function tolerant.decode(bytes)
  local value, failure = json.decode(bytes, { size = #bytes })
  if not failure then return value end
  local many = select(2, bytes:gsub("[%[{,:]", "%0"))
  if failure.code ~= "invalid_json" or many > MOST_VALUES then return nil, failure end
  -- LPeg raises an error where it is nested too deeply.
  local is_read, read = pcall(lpeg.match, document, (text.repair(bytes)))
  if is_read and read ~= nil then return read, nil, true end
  return nil, failure
end

return tolerant
