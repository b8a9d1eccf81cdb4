-- SPDX-License-Identifier: Apache-2.0
-- Percent-encoding (RFC 3986, section 2.1): %41 is A.

local percent = {}

---@param byte string one
---@return string for gsub: "%41"
function percent.encode(byte) return ("%%%02X"):format(byte:byte()) end

---@param text string what is no encoded byte stays
---@return string
function percent.decode(text)
  return (text:gsub("%%(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end))
end

return percent
