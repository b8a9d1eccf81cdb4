-- SPDX-License-Identifier: Apache-2.0
-- Where in a JSON text a JSON Pointer (RFC 6901) leads. The text must be valid: json.decode has read it.

local json = require "sba.util.json"
local lpeg = require "lpeg"

local json_place = {}

local P, S = lpeg.P, lpeg.S
lpeg.setmaxstack(1024) -- json.decode allows 64 levels; each takes up to seven entries

local space <const> = S " \t\r\n" ^ 0
local text <const> = '"' * ((1 - S '"\\') ^ 1 + "\\" * P(1)) ^ 0 * '"'
local colon <const> = space * ":" * space
local comma <const> = space * P "," ^ -1 * space

local function list(open, element, close)
  return open * space * (element * (space * "," * space * element) ^ 0) ^ -1 * space * close
end

local value <const> = P {
  text + list("{", text * colon * lpeg.V(1), "}") + list("[", lpeg.V(1), "]") + (1 - S ",]} \t\r\n") ^ 1,
}

local function unescaped(token)
  return (token:gsub("~1", "/"):gsub("~0", "~"))
end

--- Where each member of an object begins, by its name. Found once, for an object may have many members and be asked for many.
local function members(self, object)
  local bytes, known = self.bytes, self.objects[object]
  if known then return known end
  known = {}
  local at = lpeg.match(space, bytes, object + 1)
  while bytes:byte(at) == 0x22 do
    local after = lpeg.match(text, bytes, at)
    known[json.decode(bytes:sub(at, after - 1))] = at
    at = lpeg.match(comma, bytes, lpeg.match(value, bytes, lpeg.match(colon, bytes, after)))
  end
  self.objects[object] = known
  return known
end

--- Where a member's name and its value begin; nil if there is none.
local function member(self, object, wanted)
  local at = members(self, object)[wanted]
  if at then return at, lpeg.match(colon, self.bytes, lpeg.match(text, self.bytes, at)) end
end

--- Where an element begins, twice; nil if there is none. Continues from the last one that was found in this array.
local function element(self, array, wanted)
  local known = self.arrays[array] or { index = 0, at = lpeg.match(space, self.bytes, array + 1) }
  if wanted < known.index then known = { index = 0, at = lpeg.match(space, self.bytes, array + 1) } end
  while known.index < wanted and self.bytes:byte(known.at) ~= 0x5D do
    known.index, known.at = known.index + 1, lpeg.match(comma, self.bytes, lpeg.match(value, self.bytes, known.at))
  end
  self.arrays[array] = known
  if self.bytes:byte(known.at) ~= 0x5D then return known.at, known.at end
end

---@class json_place.finder
local finder = {}
finder.__index = finder

--- Where a pointer leads, or how far it leads; whether it leads all the way; and where the value begins. Positions from 1.
local function follow(self, pointer)
  local found = lpeg.match(space, self.bytes, 1)
  local at = found
  for token in pointer:gmatch("/([^/]*)") do
    local first, index = self.bytes:byte(at), math.tointeger(token)
    local name, inside
    if first == 0x7B then
      name, inside = member(self, at, unescaped(token))
    elseif first == 0x5B and index then
      name, inside = element(self, at, index)
    end
    if not name then return found, false end
    found, at = name, inside
  end
  return found, true, at
end

---Where a member's name or an element begins, for comparing; where there is none, what should hold it.
---@param pointer string
---@return integer
function finder:offset(pointer)
  return (follow(self, pointer))
end

---Line and column of a member's name or of an element; where there is none, of what should hold it.
---@param pointer string
---@return integer line from 1
---@return integer column in characters, from 1
function finder:place(pointer)
  local offset = follow(self, pointer) - 1
  local line, column = json.place(self.bytes, offset, self.last)
  self.last = { offset = offset, line = line, column = column }
  return line, column
end

---The value at a pointer as it is written there: a decoded object has lost the order of its keys.
---@param pointer string
---@return string? nil: there is none
function finder:text(pointer)
  local _, is_found, at = follow(self, pointer)
  return is_found and self.bytes:sub(at, lpeg.match(value, self.bytes, at) - 1) or nil
end

---@param bytes string
---@return json_place.finder
function json_place.of(bytes)
  return setmetatable({ bytes = bytes, objects = {}, arrays = {} }, finder)
end

return json_place
