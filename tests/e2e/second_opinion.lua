-- SPDX-License-Identifier: Apache-2.0
-- For test_validate.py: reads a file of texts, each after its length, and prints for each 1 (JSON) or 0.
local json = require "sba.util.json"

local file = assert(io.open((...), "rb"))
local verdicts = {}
for size in function() return file:read "n" end do
  file:read(1)
  local _, failure = json.decode(file:read(size) or "")
  verdicts[#verdicts + 1] = failure and "0" or "1"
end
print(table.concat(verdicts))
