-- SPDX-License-Identifier: Apache-2.0
-- URLs: their origin, how a message names them, and where a redirect leads.

local lpeg = require "lpeg"
local printable = require "sba.util.printable"

local url = {}

local P, S, R, C, Cg, Ct = lpeg.P, lpeg.S, lpeg.R, lpeg.C, lpeg.Cg, lpeg.Ct
local ports = { http = "80", https = "443" }

local letter <const>, digit <const>, character <const> = R("az", "AZ"), R "09", 1 - S "/?#"
local scheme <const> = letter * (letter + digit + S "+.-") ^ 0
local user <const> = ((character - "@") ^ 0 * "@") ^ 0 -- all up to the last @
local after_scheme <const> = Cg(C(user), "user") * Cg(C(character ^ 0), "address") * Cg(C(P(1) ^ 0), "rest")
local whole <const> = Ct(Cg(scheme / string.lower, "scheme") * "://" * after_scheme)
local host <const> = "[" * (1 - P "]") ^ 0 * "]" + (1 - P ":") ^ 0
local host_and_port <const> = C(host) * (":" * C(digit ^ 1)) ^ -1 * P ":" ^ -1 * -1

---Decodes percent-encoded bytes.
---@param given string
---@return string
function url.unescaped(given)
  return (given:gsub("%%(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end))
end

---What two URLs share if a token for one may be sent to the other; nil where it is not a URL.
---@param given string
---@return string?
function url.origin(given)
  local parts = lpeg.match(whole, given)
  if not parts then return nil end
  if parts.scheme == "http+unix" then return parts.scheme .. "://" .. parts.address end
  local name, port = lpeg.match(host_and_port, parts.address:lower())
  return ("%s://%s:%s"):format(parts.scheme, name or parts.address, port or ports[parts.scheme] or "")
end

---A URL as messages show it: never with a user name, a path or a query.
---@param given string
---@return string
function url.shown(given)
  local parts = lpeg.match(whole, given)
  if not parts then return "its URL" end
  if parts.scheme == "http+unix" then return "the socket " .. printable.line(url.unescaped(parts.address)) end
  return parts.scheme .. "://" .. printable.line(parts.address)
end

---The URL that a Location names, if it is one and has the same origin; otherwise nil.
---@param given string
---@param location string
---@return string?
function url.redirected(given, location)
  if location:find "[%c ]" then return nil end
  local from, to = lpeg.match(whole, given), lpeg.match(whole, location)
  local is_path = location == "/" or location:find("^/[^/\\]")
  if not is_path and not (to and url.origin(location) == url.origin(given)) then return nil end
  return ("%s://%s%s%s"):format(from.scheme, from.user, from.address, is_path and location or to.rest)
end

return url
