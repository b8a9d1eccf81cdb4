-- SPDX-License-Identifier: Apache-2.0
-- JSON for people.

local lpeg = require "lpeg"

---Spreads compact JSON over lines, two spaces a level; arrays of plain values stay on one line.
---@param compact string as json.encode writes it
---@return string
return function(compact)
  local P, R, S = lpeg.P, lpeg.R, lpeg.S
  local level = 0
  local function line()
    return "\n" .. ("  "):rep(level)
  end
  local function begin(bracket)
    level = level + 1
    return bracket .. line()
  end
  local function finish(bracket)
    level = level - 1
    return line() .. bracket
  end
  local string = '"' * ("\\" * P(1) + (1 - S '\\"')) ^ 0 * '"'
  local plain = string + (R("09", "az", "AZ") + S "+-.") ^ 1
  local flat = "[" * (plain * (P "," / ", " * plain) ^ 0) ^ -1 * "]"
  local token = plain + flat + "{}" + S "{[" / begin + S "}]" / finish + P "," / function() return "," .. line() end + P ":" / ": "
  return lpeg.match(lpeg.Cs(token ^ 0), compact)
end
