-- SPDX-License-Identifier: Apache-2.0
-- cynode-sba --lua compare.lua EXPECTED RESULT STATUS: exits 0 if the result is as expected, else prints each difference.
-- EXPECTED is {"exit_status", "result"}. What it leaves out of an object (times, sizes) may be anything in the result;
-- arrays must be as long, all else must be equal.
local json = require "sba.util.json"

local differences = 0
local function differ(path, ...)
  differences = differences + 1
  print(("   %s: %s"):format(path, string.format(...)))
end

local function compare(path, expected, found)
  if type(expected) ~= "table" or type(found) ~= "table" then
    if expected ~= found then differ(path, "expected %s, found %s", json.encode(expected), json.encode(found)) end
    return
  end
  if json.is_array(expected) and #expected ~= #found then differ(path, "expected %d entries, found %d", #expected, #found) end
  for key, value in pairs(expected) do
    if found[key] == nil then
      differ(path .. "/" .. key, "expected %s, found nothing", json.encode(value))
    else
      compare(path .. "/" .. key, value, found[key])
    end
  end
end

local function read(path)
  local handle = assert(io.open(path, "rb"))
  local text = handle:read("a")
  handle:close()
  local value, failure = json.decode(text)
  return value or error(path .. ": " .. failure.message)
end

local expected = read(arg[1])
compare("exit status", expected.exit_status, math.tointeger(arg[3]))
compare("", expected.result, read(arg[2]))
print(differences == 0 and "-- as expected" or ("-- %d differences"):format(differences))
os.exit(differences == 0, true)
