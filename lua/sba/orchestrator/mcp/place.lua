-- SPDX-License-Identifier: Apache-2.0
-- Where a URL points: its origin, and where a redirect leads.

local printable = require "sba.util.printable"

local place = {}

local ports = { http = "80", https = "443" }

--- Scheme, authority and the rest of a URL; the scheme in lower case.
local function split(url)
  local scheme, authority, rest = url:match("^(%a[%w+.-]*)://([^/?#]*)(.*)$")
  return scheme and scheme:lower(), authority, rest
end

---What two URLs share if a token for one may go to the other; nil for what is no URL.
---@param url string
---@return string?
function place.origin(url)
  local scheme, authority = split(url)
  if not scheme then return nil end
  if scheme == "http+unix" then return scheme .. "://" .. authority end
  local address = authority:gsub("^.*@", ""):lower()
  local host = address:match("^(.*):") or address
  local port = address:sub(#host + 2)
  if not port:find("^%d*$") then host, port = address, "" end -- the colon is inside an IPv6 address
  return ("%s://%s:%s"):format(scheme, host, port ~= "" and port or ports[scheme] or "")
end

---What is at a URL, for people: never a user name, a path or a query.
---@param url string
---@param what? string default: the MCP gateway
---@return string
function place.shown(url, what)
  what = what or "the MCP gateway"
  local scheme, authority = split(url)
  if not scheme then return what end
  if scheme == "http+unix" then
    local path = authority:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end)
    return ("%s at the socket %s"):format(what, printable.line(path))
  end
  return ("%s %s://%s"):format(what, scheme, printable.line((authority:gsub("^.*@", ""))))
end

---The URL that a Location names, where it has the same origin; nil where it has not.
---@param url string
---@param location string
---@return string?
function place.redirected(url, location)
  local scheme, authority = split(url)
  if location:find("^/[^/\\]") or location == "/" then return ("%s://%s%s"):format(scheme, authority, location) end
  local target = place.origin(location)
  if not target or target ~= place.origin(url) then return nil end
  local _, _, rest = split(location)
  return ("%s://%s%s"):format(scheme, authority, rest)
end

return place
