-- SPDX-License-Identifier: Apache-2.0
-- JSON (RFC 8259, and nothing else), by lua-cjson with our patches (vendor/patches/lua-cjson). Here
-- is what cjson does not do: UTF-8, the order of keys by a schema, and where a mistake is.
--
-- Objects are tables with string keys, arrays carry a mark (even empty ones), null is json.null. A
-- number without fraction and exponent is an integer. One that neither 64 bits nor a double hold is
-- kept as its text.

local cjson = require "cjson"
local lpeg = require "lpeg"
local printable = require "sba.util.printable"
local redact = require "native.secret".redact
local text = require "native.text"

local json = { null = cjson.null }

local LIMITS <const> = { size = 64 * 1024 * 1024, depth = 64, values = 1000000 }
-- Levels of what is written: a tree of list_tree has 128, and a result adds to that.
local OWN_DEPTH <const> = 200
local OWN_VALUES <const> = 8 * 1024 * 1024
local SHOWN_DIGITS <const>, SHOWN_NAME <const> = 40, 60 -- bytes in a message

local array_mark <const>, long_number_mark <const> = cjson.array_mt, cjson.long_number_mt

local codec = cjson.new()
codec.encode_max_depth(OWN_DEPTH)

---Marks a list as an array.
---@generic T: table
---@param list T
---@return T list
function json.array(list) return setmetatable(list, array_mark) end

---@param value any decoded
---@return boolean
function json.is_array(value) return type(value) == "table" and getmetatable(value) == array_mark end

---@param value any decoded
---@return boolean
function json.is_object(value)
  if type(value) ~= "table" then return false end
  local mark = getmetatable(value)
  return mark ~= array_mark and mark ~= long_number_mark
end

---@param value any
---@return string kind "null", "boolean", "number", "long number" (its text), "string", "array",
---"object"; else the Lua type
function json.kind(value)
  local kind = type(value)
  if kind ~= "table" then return value == json.null and "null" or kind end
  local mark = getmetatable(value)
  if mark == long_number_mark then return "long number" end
  if mark == array_mark or value[1] ~= nil then return "array" end
  return "object"
end

---@param value any decoded
---@return any value, nil in place of null
function json.given(value)
  if value ~= json.null then return value end
end

---@param value any
---@return table value, or an empty one
function json.table_of(value) return type(value) == "table" and value or {} end

---@generic T
---@param value T decoded
---@return T copy with its marks
function json.copy(value)
  if type(value) ~= "table" then return value end
  local result = setmetatable({}, getmetatable(value))
  for key, part in pairs(value) do result[key] = json.copy(part) end
  return result
end

-- Reading

local function found(bytes, offset)
  local at = offset + 1
  if at > #bytes then return "the end of the text" end
  local word = bytes:match("^[%w_.+-]+", at)
  if word then return "'" .. text.cut(redact(word), 20) .. "'" end
  local byte = bytes:byte(at)
  if byte < 0x20 or byte == 0x7F then return ("the control character U+%04X"):format(byte) end
  return "'" .. bytes:match("^" .. utf8.charpattern, at) .. "'" -- bounded: one character
end

---@param bytes string
---@param offset integer from 0
---@param known? { offset: integer, line: integer, column: integer } an earlier place to count from
---@return integer line, integer column in characters, from 1
function json.place(bytes, offset, known)
  if not known or known.offset > offset then known = { offset = 0, line = 1, column = 1 } end
  local lines, characters = text.distance(bytes, known.offset, offset)
  return known.line + lines, (lines > 0 and 1 or known.column) + characters
end

local function name_at(bytes, offset)
  local last = offset + 2
  while bytes:byte(last) ~= 0x22 do last = last + (bytes:byte(last) == 0x5C and 2 or 1) end
  local name = redact(codec.decode(bytes:sub(offset + 1, last)))
  return codec.encode(printable.cut(name, SHOWN_NAME))
end

-- What cjson expects, in words.
local expectations = {
  ["value"] = "a value", ["colon"] = "':'", ["the end"] = "the end of the text",
  ["object key string"] = "a member name in double quotes",
  ["comma or object end"] = "',' or '}'", ["comma or array end"] = "',' or ']'",
}
-- What people write who have another language in mind, by the character that was found.
local HINTS <const> = {
  ["'"] = "JSON has double quotes only",
  ["/"] = "JSON has no comments", ["#"] = "JSON has no comments",
  ["}"] = "JSON has no comma before it", ["]"] = "JSON has no comma before it",
}
local after_comma <const> = { value = true, ["object key string"] = true }

local function hint(what, character)
  local is_end = character == "}" or character == "]"
  if not HINTS[character] or is_end and not after_comma[what] then return "" end
  return "; " .. HINTS[character]
end

-- What cjson found, in words, where that says more than what it expected.
local findings = {
  ["unexpected end of string"] = function(bytes, offset)
    return 'expected a character, an escape or the closing ", found ' .. found(bytes, offset)
  end,
  ["invalid unicode escape code"] = function()
    return "\\u requires four hex digits, and surrogates only in pairs"
  end,
  ["number too large"] = function(bytes, offset)
    local number = bytes:match("^[%d.eE+-]+", offset + 1)
    return ("the number %s is too large"):format(number:sub(1, SHOWN_DIGITS))
  end,
  ["duplicate key"] = function(bytes, offset)
    return ("the member name %s is there twice"):format(name_at(bytes, offset))
  end,
}
findings["invalid escape code"] = findings["unexpected end of string"]

local EXPECTED <const> = "^Expected (.-) but found (.-) at character (%d+)$"

-- Returns offset, words and code (default: invalid_json).
local function read_message(bytes, message, depth, most)
  local what, how, at = message:match(EXPECTED) -- bounded: cjson's words
  if what then
    local offset, finding = at - 1, findings[how]
    if finding then return offset, finding(bytes, offset) end
    local words = ("expected %s, found %s"):format(expectations[what], found(bytes, offset))
    return offset, words .. hint(what, bytes:sub(at, at))
  end
  what, at = message:match "^Found too many (%a+).* at character (%d+)$" -- bounded: likewise
  if what == "values" then return at - 1, ("holds more than %d values"):format(most), "too_large" end
  if what then return at - 1, ("nested deeper than %d levels"):format(depth), "too_deep" end
  -- It is not about the text; memory may be refused, for example.
  error(message, 0)
end

local function failure_at(bytes, offset, message, code)
  local line, column = json.place(bytes, offset)
  local what = message:gsub("\x7F", "\\u007f")
  return {
    code = code or "invalid_json", what = what, line = line, column = column, offset = offset,
    message = ("line %d, column %d: %s"):format(line, column, what),
  }
end

local function mistake_in_bytes(bytes, max_size)
  if #bytes > max_size then
    return failure_at(bytes, max_size, ("larger than %d bytes"):format(max_size), "too_large")
  end
  if bytes:find "^\xEF\xBB\xBF" then
    return failure_at(bytes, 0, "begins with a byte order mark; remove it")
  end
  if not text.is_utf8(bytes) then
    local _, bad = utf8.len(bytes)
    return failure_at(bytes, bad - 1, ("the byte 0x%02X is not UTF-8"):format(bytes:byte(bad)))
  end
end

---@class sba.json.failure
---@field code "invalid_json"|"too_deep"|"too_large"
---@field message string "line 3, column 13: expected ',' or '}', found 'x'"
---@field what string without the place
---@field line integer from 1
---@field column integer characters, from 1
---@field offset integer bytes, from 0

---@param bytes string
---@param limits? { size?: integer, depth?: integer, values?: integer } bytes, levels (at least 1);
---default: 64 MiB, 64, a million
---@return any value, sba.json.failure? failure
function json.decode(bytes, limits)
  limits = limits or LIMITS
  local mistake = mistake_in_bytes(bytes, limits.size or LIMITS.size)
  local depth, most = limits.depth or LIMITS.depth, limits.values or LIMITS.values
  if mistake then return nil, mistake end
  codec.decode_max_depth(depth)
  local ok, value = pcall(codec.decode, bytes, most)
  if ok then return value end
  return nil, failure_at(bytes, read_message(bytes, value, depth, most))
end

---@param bytes string that the runner has written: a result, or a line of a journal
---@return any value, sba.json.failure? failure
function json.decode_own(bytes)
  return json.decode(bytes, { size = #bytes, depth = OWN_DEPTH, values = OWN_VALUES })
end

---@param list any[]
---@param wanted any
---@return boolean
function json.contains(list, wanted)
  for i = 1, #list do
    if list[i] == wanted then return true end
  end
  return false
end

-- Writing

---@param schema table
---@return string[] names those of `order`, then other required ones
---@return table<string, true> known the same names
function json.key_order(schema)
  local names, known = {}, {}
  for _, list in ipairs { schema.order or {}, schema.required or {} } do
    for _, name in ipairs(list) do
      if not known[name] then names[#names + 1], known[name] = name, true end
    end
  end
  return names, known
end

-- As cjson takes them (vendor/patches/lua-cjson/4-order.patch): names, the same as keys, the orders
-- of members and that of elements.
local orders <const> = setmetatable({}, { __mode = "k" })

local function order_of(schema)
  if orders[schema] or type(schema) ~= "table" then return orders[schema] end
  if not (schema.order or schema.required or schema.properties or schema.items) then return nil end
  local members, names, known = {}, json.key_order(schema)
  -- It is known before its parts are read: a schema may hold itself.
  orders[schema] = { names, known, members }
  for name, part in next, schema.properties or {} do members[name] = order_of(part) end
  orders[schema][4] = order_of(schema.items)
  return orders[schema]
end

---Compact JSON. Tables that are marked as arrays or have a first element are arrays; others are
---objects. Keys come in the schema's order, then as required, then by bytes. Strings are repaired.
---Floats have the fewest digits that read back. Raises for what JSON cannot hold (NaN, functions,
---mixed keys, great depth).
---@param value any
---@param schema? table of which order, required, properties and items count; not to be changed once
---used
---@return string
function json.encode(value, schema)
  if value == nil then error("cannot encode: nil", 2) end
  return (text.repair(codec.encode(value, order_of(schema))))
end

---@param known string JSON
---@return table value that is written as that
function json.verbatim(known) return setmetatable({ known }, long_number_mark) end

---Adds members: '{"a":1' and { b = 2 } give '{"a":1,"b":2}'.
---@param head string an object with at least one member, not closed; its end suffices
---@param members table
---@param schema table as of encode
---@return string
function json.continue(head, members, schema)
  return (text.repair(codec.encode(members, order_of(schema), head)))
end

---@param compact string from json.encode
---@return string for people: two spaces a level; arrays of plain values on one line
function json.indented(compact)
  local P, R, S = lpeg.P, lpeg.R, lpeg.S
  local level = 0
  -- A line end and the indent of the next line, which is so much deeper.
  local function line(deeper)
    level = level + deeper
    return "\n" .. ("  "):rep(level)
  end
  local function after_open(bracket) return bracket .. line(1) end
  local function before_close(bracket) return line(-1) .. bracket end
  local function after_comma_of(comma) return comma .. line(0) end
  local string = '"' * ("\\" * P(1) + (1 - S '\\"')) ^ 0 * '"'
  local plain = string + (R("09", "az", "AZ") + S "+-.") ^ 1
  local flat = "[" * (plain * (P "," / ", " * plain) ^ 0) ^ -1 * "]"
  local mark = S "{[" / after_open + S "}]" / before_close + P "," / after_comma_of + P ":" / ": "
  return lpeg.match(lpeg.Cs((plain + flat + "{}" + mark) ^ 0), compact)
end

return json
