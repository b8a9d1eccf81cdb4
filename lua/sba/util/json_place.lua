-- SPDX-License-Identifier: Apache-2.0
-- Where in a JSON text, which json.decode or json_tolerant.decode has read, a JSON Pointer (RFC
-- 6901) leads.

local json = require "sba.util.json"
local json_tolerant = require "sba.util.json_tolerant"
local lpeg = require "lpeg"

local json_place = {}

local OBJECT <const>, ARRAY <const> = 0x7B, 0x5B -- { and [
local P, S = lpeg.P, lpeg.S
-- json.decode allows 64 levels; each takes up to seven entries of LPeg's stack.
lpeg.setmaxstack(1024)

local space <const> = S " \t\r\n" ^ 0
local text <const> = '"' * ((1 - S '"\\') ^ 1 + "\\" * P(1)) ^ 0 * '"'
local colon <const> = space * ":" * space
local comma <const> = space * P "," ^ -1 * space

local function list(open, element, close)
  return open * space * (element * (space * "," * space * element) ^ 0) ^ -1 * space * close
end

local any <const> = lpeg.V(1)
local word <const> = (1 - S ",]} \t\r\n") ^ 1
local value <const> = P { text + list("{", text * colon * any, "}") + list("[", any, "]") + word }

local function unescaped(token) return (token:gsub("~1", "/"):gsub("~0", "~")) end

-- Where the name of each member, or each element, begins, by name or by index from 0. Found once:
-- many may be asked for.
local function children(self, container)
  local bytes, known = self.bytes, self.known[container]
  if known then return known end
  known = {}
  self.known[container] = known
  local at, index = lpeg.match(space, bytes, container + 1), 0
  while not bytes:find("^[]}]", at) do
    local inside = at -- where its value begins
    if bytes:byte(container) == OBJECT then
      local after = lpeg.match(text, bytes, at)
      local written = bytes:sub(at, after - 1)
      known[json_tolerant.decode(written) or written], inside = at, lpeg.match(colon, bytes, after)
    else
      known[index], index = at, index + 1
    end
    at = lpeg.match(comma, bytes, lpeg.match(value, bytes, inside))
  end
  return known
end

---@class json_place.finder positions are from 1
local finder = {}
finder.__index = finder

-- Returns where the pointer leads, or how far; whether all the way; and where the value begins.
local function follow(self, pointer)
  local bytes = self.bytes
  local found = lpeg.match(space, bytes, 1)
  local at = found
  for token in pointer:gmatch "/([^/]*)" do
    local first, place = bytes:byte(at), nil
    if first == ARRAY then place = children(self, at)[math.tointeger(token)] end
    if first == OBJECT then place = children(self, at)[unescaped(token)] end
    if not place then return found, false end
    found, at = place, place
    if first == OBJECT then at = lpeg.match(colon, bytes, lpeg.match(text, bytes, place)) end
  end
  return found, true, at
end

---@param pointer string
---@return integer of a member's name or an element, or of what should hold it
function finder:offset(pointer) return (follow(self, pointer)) end

---@param pointer string
---@return integer line, integer column in characters
function finder:place(pointer)
  local offset = follow(self, pointer) - 1
  local line, column = json.place(self.bytes, offset, self.last)
  self.last = { offset = offset, line = line, column = column }
  return line, column
end

---As it is written: a decoded object has lost the order of its keys.
---@param pointer string
---@return string?
function finder:text(pointer)
  local _, is_found, at = follow(self, pointer)
  return is_found and self.bytes:sub(at, lpeg.match(value, self.bytes, at) - 1) or nil
end

---@param bytes string
---@return json_place.finder
function json_place.of(bytes) return setmetatable({ bytes = bytes, known = {} }, finder) end

return json_place
