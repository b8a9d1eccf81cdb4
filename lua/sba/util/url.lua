-- SPDX-License-Identifier: Apache-2.0
-- URLs: their origin, how a message names them, and where a redirect leads.

local printable = require "sba.util.printable"

local url = {}

local ports = { http = "80", https = "443" }

--- Scheme (in lower case), authority, and the rest of a URL.
local function split(given)
  local scheme, authority, rest = given:match("^(%a[%w+.-]*)://([^/?#]*)(.*)$")
  return scheme and scheme:lower(), authority, rest
end

---What two URLs have in common if a token for one may be sent to the other; nil if it is not a URL.
---@param given string
---@return string?
function url.origin(given)
  local scheme, authority = split(given)
  if not scheme then return nil end
  if scheme == "http+unix" then return scheme .. "://" .. authority end
  local address = authority:gsub("^.*@", ""):lower()
  local host = address:match("^(.*):") or address
  local port = address:sub(#host + 2)
  if not port:find("^%d*$") then host, port = address, "" end -- the colon is inside an IPv6 address
  return ("%s://%s:%s"):format(scheme, host, port ~= "" and port or ports[scheme] or "")
end

---A URL as messages show it: never with a user name, a path or a query.
---@param given string
---@return string
function url.shown(given)
  local scheme, authority = split(given)
  if not scheme then return "its URL" end
  if scheme ~= "http+unix" then return ("%s://%s"):format(scheme, printable.line((authority:gsub("^.*@", "")))) end
  local path = authority:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end)
  return "the socket " .. printable.line(path)
end

---The URL that a Location names, if it has the same origin; otherwise nil.
---@param given string
---@param location string
---@return string?
function url.redirected(given, location)
  local scheme, authority = split(given)
  if location:find("^/[^/\\]") or location == "/" then return ("%s://%s%s"):format(scheme, authority, location) end
  local target = url.origin(location)
  if not target or target ~= url.origin(given) then return nil end
  local _, _, rest = split(location)
  return ("%s://%s%s"):format(scheme, authority, rest)
end

return url
