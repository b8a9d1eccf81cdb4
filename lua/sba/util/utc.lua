-- SPDX-License-Identifier: Apache-2.0
-- Times of the Gregorian calendar. Not os.time, which takes them for local ones.

---@param year integer|string each may be a number in digits
---@param month integer|string from 1
---@param day integer|string from 1
---@param hour integer|string
---@param minute integer|string
---@param second number|string
---@return number seconds since 1970-01-01, in UTC
return function(year, month, day, hour, minute, second)
  year, month = math.tointeger(year), math.tointeger(month)
  if month <= 2 then year, month = year - 1, month + 12 end -- the year begins in March, so that a leap day is its last
  local days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day - 719469
  return days * 86400 + hour * 3600 + minute * 60 + second
end
