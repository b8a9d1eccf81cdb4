-- SPDX-License-Identifier: Apache-2.0
-- What may follow a name in a diff, behind blanks: a date or a revision.

local lpeg = require "lpeg"

local P, R, S = lpeg.P, lpeg.R, lpeg.S
local Cg, Ct = lpeg.Cg, lpeg.Ct

local dates = {}

local digit <const>, letter <const>, blanks <const> = R "09", R("az", "AZ"), S " \t" ^ 1
local two <const>, three <const> = digit * digit, letter * letter * letter
local four <const> = two * two
local clock <const> = two * ":" * two * ":" * Cg(two, "second") * ("." * digit ^ 1) ^ -1
local zone <const> = S "+-" * two * P ":" ^ -1 * two + letter ^ 1
local day_number <const> = digit * digit ^ -1
local function captured(...) return Cg(..., "day") end
-- By who writes them.
local forms <const> = {
  { name = "diff, git", example = "2024-08-01 19:44:26.123456789 +0200",
    pattern = captured(four * "-" * two * "-" * two) * S " T" * clock * (blanks ^ -1 * zone) ^ -1 },
  { name = "hg, BSD, Solaris", example = "Thu Aug  1 19:44:26 2024 +0200",
    pattern = three * blanks * captured(three * blanks * day_number) * blanks * clock
      * (blanks * letter ^ 1) ^ -1 * blanks * Cg(four, "year") * (blanks * zone) ^ -1 },
  { name = "CVS", example = "1 Aug 2024 19:44:26 -0000   1.7",
    pattern = (three * "," * blanks) ^ -1 * captured(day_number * blanks * three) * blanks
      * Cg(four, "year") * blanks * clock * (blanks * zone) ^ -1
      * (blanks * digit ^ 1 * ("." * digit ^ 1) ^ 1) ^ -1 },
  { name = "svn", example = "(revision 7)",
    pattern = P "(" * (P "revision " * digit ^ 1 + "working copy" + "nonexistent"
      + "working revision" + ".../" * (1 - P ")") ^ 1) * ")"
      * (blanks * "(revision " * digit ^ 1 * ")") ^ -1 },
}
local date = P(false)
for _, form in ipairs(forms) do date = date + form.pattern end
date = Ct(date) * S " \t" ^ 0 * -1

local epochs <const> = {
  ["1970-01-01"] = true, ["Jan 1 1970"] = true, ["1 Jan 1970"] = true,
  ["1969-12-31"] = true, ["Dec 31 1969"] = true, ["31 Dec 1969"] = true,
}

local function is_epoch(found)
  local day = found.day or ""
  if found.year then day = day .. " " .. found.year end
  return found.second == "00" and epochs[day:gsub("%s+", " "):gsub("%f[%d]0(%d )", "%1")] == true
end

dates.forms = forms

---@param written string
---@param from integer
---@return boolean is_date it stands there, and up to the end
---@return boolean? is_epoch a second of 00 on the first day of Unix, in any zone: of a file that is not there
function dates.at(written, from)
  local found = lpeg.match(date, written, from)
  if not found then return false end
  return true, is_epoch(found)
end

return dates
