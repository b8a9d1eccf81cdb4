-- SPDX-License-Identifier: Apache-2.0
-- Parts of a text that differ from run to run although nothing else does: times, durations and ids. They become names, so that
-- two texts can be compared.

local lpeg = require "lpeg"

local changing = {}

local P, R, S, B = lpeg.P, lpeg.R, lpeg.S, lpeg.B
local digit <const>, letter <const>, alphanumeric <const> = R "09", R("az", "AZ"), R("az", "AZ", "09")
local hex_letter <const>, hex <const> = R("af", "AF"), R("09", "af", "AF")
local blank <const> = S " \t\n\v\f\r"
local two <const> = digit * digit

local function times(pattern, count)
  local result = P(true)
  for _ = 1, count do result = result * pattern end
  return result
end

local clock <const> = two * ":" * two * ":" * two * ((P "." + ",") * digit ^ 1) ^ -1
local date <const> = two * two * "-" * two * "-" * two
local year <const>, name <const>, offset <const> = two * two, times(letter, 3), S "+-" * two * P ":" ^ -1 * two
local zone <const> = offset + letter ^ 1
local time <const> = date * S "T " * clock * (P "Z" + P " " ^ -1 * offset) ^ -1
  + name * " " * name * blank ^ 1 * digit ^ 1 * " " * clock * (" " * S "AP" * "M") ^ -1 * (" " * zone) ^ -1 * " " * year -- date
  + name * ", " * digit ^ 1 * " " * name * " " * year * " " * clock * " " * zone -- date -R
local decimal <const> = digit ^ 1 * ("." * digit ^ 0) ^ -1
local unit <const> = ("second" * P "s" ^ -1 + S "mun" ^ -1 * "s") * -alphanumeric
local in_units <const> = blank ^ -1 * unit
local without_times <const> = lpeg.Cs((time / "<time>" + decimal / "<duration>" * in_units + digit ^ 1 + letter ^ 1
  + (1 - alphanumeric) ^ 1) ^ 0)

local LEAST_HEX <const> = 7 -- digits of a short commit id
local LEAST_DECIMAL <const> = 9 -- digits of seconds since 1970, and of what counts faster
local uuid <const> = times(hex, 8) * times("-" * times(hex, 4), 3) * "-" * times(hex, 12)
local hexadecimal <const> = #(hex_letter ^ 0 * digit) * #(digit ^ 0 * hex_letter) * times(hex, LEAST_HEX) * hex ^ 0
local id <const> = -B(alphanumeric) * ("0x" * hex ^ 1 + uuid + hexadecimal + times(digit, LEAST_DECIMAL) * digit ^ 0) * -alphanumeric
local process <const> = (P "pid" + "PID" + "process") * S " =:#" ^ -2 * digit ^ 1
local temporary <const> = "/tmp/" * (1 - (blank + S "/\"':,;()")) ^ 1
local date_or_clock <const> = -B(alphanumeric) * (time + date + clock) * -alphanumeric
local without_ids <const> = lpeg.Cs((date_or_clock / "<time>" + id / "<id>" + process / "<process>" + temporary / "<temporary>"
  + decimal * in_units / "<duration>" + digit ^ 1 + letter ^ 1 + 1) ^ 0)

---A text without its times and durations.
---@param words string
---@return string
function changing.without_times(words)
  return lpeg.match(without_times, words)
end

---A text without its times, durations and ids: hexadecimal and long numbers, UUIDs, process ids, names of temporary files.
---@param words string
---@return string
function changing.without_ids(words)
  return lpeg.match(without_ids, words)
end

return changing
