-- SPDX-License-Identifier: Apache-2.0
-- JSON for people.

local lpeg = require "lpeg"

---Spreads compact JSON over lines, two spaces a level; arrays of plain values stay on one line.
---@param compact string as json.encode writes it
---@return string
return function(compact)
  local P, R, S, level = lpeg.P, lpeg.R, lpeg.S, 0
  local function line(change)
    level = level + change
    return "\n" .. ("  "):rep(level)
  end
  local string = '"' * ("\\" * P(1) + (1 - S '\\"')) ^ 0 * '"'
  local plain = string + (R("09", "az", "AZ") + S "+-.") ^ 1
  local flat = "[" * (plain * (P "," / ", " * plain) ^ 0) ^ -1 * "]"
  local open, close = S "{[" / function(bracket) return bracket .. line(1) end, S "}]" / function(bracket) return line(-1) .. bracket end
  local token = plain + flat + "{}" + open + close + P "," / function() return "," .. line(0) end + P ":" / ": "
  return lpeg.match(lpeg.Cs(token ^ 0), compact)
end
